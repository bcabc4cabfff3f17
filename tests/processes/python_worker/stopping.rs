//! Tools that are stopped: their call is cancelled, their deadline has passed, or their worker is killed.

use std::{path::Path, time::Duration};

use redial_proto::CallState;
use redial_test_stack::{Process, Stack, unique_path, until};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    net::{TcpListener, TcpStream},
};

use super::{beside_worker, finish, python, server, start_worker, with_worker};

/// A worker whose tools run for as long as a test wants, also on a machine that stands still for seconds.
async fn leasing_worker(python: &Path) -> (Stack, Process) {
    beside_worker(Stack::start_leasing(Duration::from_secs(15)).await, python).await
}

#[tokio::test]
async fn a_function_in_a_thread_is_asked_to_stop() {
    let Some(python) = python::find() else { return };
    let (stack, worker) = leasing_worker(&python).await;
    let (listener, port) = server().await;
    let call = stack.call("block_a_thread", json!({"port": port})).await;
    let (mut connection, _) = listener.accept().await.unwrap();
    stack.cancel(call).await;
    let view = stack.ended(call).await;
    assert_eq!(view.state, CallState::Cancelled);
    assert_eq!(view.message.as_deref(), Some("cancelled while it ran; the tool may have done its work"));
    let closed = tokio::io::AsyncReadExt::read(&mut connection, &mut [0; 1]).await;
    assert!(matches!(closed, Ok(0) | Err(_)), "the tool has let go of the server");
    finish(stack, worker).await;
}

/// The process that a call of `compute` runs in, and its connection.
async fn computing(listener: &TcpListener) -> (u32, BufReader<TcpStream>) {
    let mut connection = BufReader::new(listener.accept().await.unwrap().0);
    let mut line = String::new();
    connection.read_line(&mut line).await.unwrap();
    (line.trim().parse().unwrap(), connection)
}

fn lives(process: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{process}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

#[tokio::test]
async fn a_function_in_a_process_is_killed_with_its_call_and_with_its_worker() {
    let Some(python) = python::find() else { return };
    let (stack, killed) = with_worker(&python).await;
    let (listener, port) = server().await;
    let quick = stack.call("compute", json!({"port": port, "rounds": 10})).await;
    let (process, _connection) = computing(&listener).await;
    let output: Value = serde_json::from_str(&stack.output(quick).await).unwrap();
    assert_eq!((&output["process"], process == killed.pid()), (&json!(process), false));

    let endless = stack.call("compute", json!({"port": port, "rounds": 0})).await;
    let (process, _connection) = computing(&listener).await;
    stack.cancel(endless).await;
    assert_eq!(stack.ended(endless).await.state, CallState::Cancelled);
    until("the process has ended with its call", async || (!lives(process)).then_some(())).await;

    stack.workers_will_die();
    let again = stack.call("compute", json!({"port": port, "rounds": 0})).await;
    let (process, _connection) = computing(&listener).await;
    killed.kill().await;
    until("the process has ended with its worker", async || (!lives(process)).then_some(())).await;
    let other = start_worker(&stack, &python, Duration::from_mins(1), &unique_path("notes")).await;
    let (_, _connection) = computing(&listener).await;
    stack.cancel(again).await;
    assert_eq!(stack.ended(again).await.state, CallState::Cancelled);
    finish(stack, other).await;
}
