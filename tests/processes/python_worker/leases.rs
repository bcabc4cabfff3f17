//! Leases: renewed, lost and given back.

use std::time::Duration;

use redial_proto::{CallId, CallState};
use redial_test_stack::{Stack, unique_path, until};
use serde_json::json;
use tokio::io::AsyncWriteExt as _;

use super::{beside_worker, finish, greet, python, read_greeting, server, start_worker, with_worker};

#[tokio::test]
async fn a_worker_that_lost_its_lease_while_suspended_reports_nothing() {
    let Some(python) = python::find() else { return };
    let (stack, sleeper) = with_worker(&python).await;
    stack.workers_will_die();
    let (listener, port) = server().await;
    let call = stack.accepted(&read_greeting(port)).await;
    let (mut first, _) = listener.accept().await.unwrap();
    sleeper.pause();
    let other = start_worker(&stack, &python, Duration::from_mins(1), &unique_path("notes")).await;
    greet(listener.accept().await.unwrap().0).await;
    assert_eq!(stack.output(call).await, r#"{"greeting":"220 hello","attempt":2}"#);
    sleeper.resume();
    let closed = tokio::io::AsyncReadExt::read(&mut first, &mut [0; 1]).await;
    assert!(matches!(closed, Ok(0) | Err(_)), "it stops what is not its own any more");
    sleeper.terminate();
    assert!(sleeper.ended().await.success(), "{}", sleeper.output());
    let evidence = finish(stack, other).await;
    assert_eq!(evidence.late_reports, 0);
}

#[tokio::test]
async fn sigterm_lets_quick_calls_finish_and_releases_slow_ones() {
    let Some(python) = python::find() else { return };
    let stack = Stack::start_leasing(Duration::from_secs(15)).await;
    let notes = unique_path("notes");
    let leaving = start_worker(&stack, &python, Duration::from_secs(5), &notes).await;
    let (quick, quick_port) = server().await;
    let (slow, slow_port) = server().await;
    let quick_call = stack.accepted(&read_greeting(quick_port)).await;
    let slow_call = stack.accepted(&read_greeting(slow_port)).await;
    let (quick_connection, _) = quick.accept().await.unwrap();
    let (_slow_connection, _) = slow.accept().await.unwrap();
    leaving.terminate();
    leaving.line("Started draining").await;
    greet(quick_connection).await;
    assert!(leaving.ended().await.success(), "{}", leaving.output());
    assert_eq!(stack.get(quick_call).await.state, CallState::Succeeded, "on record before the process ends");
    assert_eq!(stack.get(slow_call).await.state, CallState::Ready, "released");
    let staying = start_worker(&stack, &python, Duration::from_mins(1), &notes).await;
    greet(slow.accept().await.unwrap().0).await;
    assert_eq!(stack.output(slow_call).await, r#"{"greeting":"220 hello","attempt":1}"#, "no attempt was burned");
    finish(stack, staying).await;
}

/// The lease of a call, as text: it changes with each renewal.
async fn lease(stack: &Stack, call: CallId) -> Option<String> {
    stack.value(&format!("SELECT lease_until::text FROM calls WHERE id = '{call}'")).await
}

#[tokio::test]
async fn a_coroutine_that_blocks_its_loop_costs_no_lease() {
    let Some(python) = python::find() else { return };
    let (stack, worker) = beside_worker(Stack::start_leasing(Duration::from_secs(6)).await, &python).await;
    let (listener, port) = server().await;
    let blocking = stack.call("block_the_loop", json!({"port": port})).await;
    let (mut connection, _) = listener.accept().await.unwrap();
    let mut leases = std::collections::BTreeSet::new();
    until("the lease was renewed until the first one had ended", async || {
        leases.insert(lease(&stack, blocking).await.unwrap());
        (leases.len() > 4).then_some(())
    })
    .await;
    connection.write_all(b"go on\n").await.unwrap();
    assert_eq!(stack.output(blocking).await, r#""go on""#);
    let evidence = finish(stack, worker).await;
    assert_eq!(evidence.attempts().count(), 1, "its lease was longer than the first one");
}
