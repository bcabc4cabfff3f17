//! SIGTERM: quick calls finish, slow ones are released, nothing is lost and no attempt is used up.

use std::{path::PathBuf, time::Duration};

use redial_proto::{CallState, Submission, ToolEffect};
use redial_test_stack::{
    Paused, Process, Servers, Stack, ToolEvent, arguments, start_scripted_worker, unique_path, until,
};
use serde_json::json;

/// Slots of a scripted worker.
const SLOTS: usize = 16;

fn held(effect: ToolEffect, n: usize, gate: &PathBuf) -> Submission {
    Submission::new(effect.as_str(), arguments(json!({"n": n, "hold": gate})))
}

#[tokio::test]
async fn a_stopped_worker_loses_nothing_and_uses_up_no_attempt() {
    let stack = Stack::start_leasing(Duration::from_mins(1)).await;
    let worker = |grace| start_scripted_worker(stack.servers.nats_url(), &stack.ledger, grace);
    let first = worker(Duration::from_secs(20));
    stack.offered(&ToolEffect::ALL.map(ToolEffect::as_str)).await;
    let (quick, slow) = (unique_path("quick"), unique_path("slow"));
    let mut calls: Vec<Submission> = (0..8).map(|n| held(ToolEffect::ALL[n % 4], n, &quick)).collect();
    calls.extend((8..SLOTS).map(|n| held([ToolEffect::Read, ToolEffect::Idempotent][n % 2], n, &slow)));
    stack.call_all(&calls).await;
    stack.ledger.reaches(ToolEvent::Started, SLOTS).await;
    // There is no permit for these: they wait on the stream.
    let waiting: Vec<Submission> = (0..20).map(|n| Submission::new("keyed", arguments(json!({"n": n})))).collect();
    stack.call_all(&waiting).await;
    first.terminate();
    until("the worker drains", async || {
        let draining = sqlx::query_scalar("SELECT bool_or(draining) FROM workers").fetch_one(stack.db()).await;
        draining.unwrap_or(false).then_some(())
    })
    .await;
    std::fs::write(&quick, "").unwrap();
    assert!(first.ended().await.success(), "{}", first.output());
    let ended: i64 =
        sqlx::query_scalar("SELECT count(*) FROM calls WHERE state = 'succeeded'").fetch_one(stack.db()).await.unwrap();
    assert_eq!(ended, 8, "what was quick is on record when the process ends");
    // Its last heartbeat may be handled after its end. The others make it live for as long as a lease.
    until("a worker that has ended is not listed as draining", async || {
        let gone = "SELECT bool_and(live_until < last_seen_at + interval '1 s') FROM workers";
        sqlx::query_scalar::<_, bool>(gone).fetch_one(stack.db()).await.ok()?.then_some(())
    })
    .await;
    stack.ledger.reaches(ToolEvent::Stopped, SLOTS - 8).await;
    std::fs::write(&slow, "").unwrap();
    let second = worker(Duration::from_mins(1));
    stack.drained(Duration::from_secs(30)).await;
    stack.wait_until_empty().await;
    second.terminate();
    assert!(second.ended().await.success(), "with nothing to do it ends long before its grace");
    let evidence = stack.finish().await;
    assert_eq!(evidence.count(CallState::Succeeded), SLOTS + 20);
    assert!(evidence.calls.values().all(|call| call.attempt == 1), "what was released keeps its attempt");
}

fn dispatcher(stack: &Stack) -> Process {
    Process::start(env!("CARGO_BIN_EXE_redial"), |command| {
        command.args(["dispatcher", "--nats-url", stack.servers.nats_url()]);
        command.args(["--database-url", stack.servers.database_url()]);
    })
}

/// nats-server loses what it has not read of a connection that the other side closes, so what was only written to the socket
/// may be lost.
#[tokio::test]
async fn a_dispatcher_waits_until_nats_has_read_its_acknowledgements() {
    let stack = Stack::on(Servers::start().await).await;
    let leaving = dispatcher(&stack);
    leaving.line("Dispatcher started").await;
    let paused = Paused::new(stack.servers.nats_pid());
    leaving.terminate();
    leaving.line("messages whose acknowledgements it lost will be delivered again").await;
    assert!(leaving.ended().await.success(), "{}", leaving.output());
    drop(paused);
    stack.finish().await;
}
