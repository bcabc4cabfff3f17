//! SIGTERM: quick calls finish, slow ones are released, nothing is lost and no attempt is used up.

use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

use redial_proto::{CallState, Submission, ToolEffect};
use redial_testkit::{
    Paused, Process, Servers, Stack, ToolEvent, arguments, start_scripted_worker, unique_path, until,
};
use serde_json::json;
use tokio::sync::watch;

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

#[tokio::test]
async fn an_unsafe_tool_that_outlasts_the_grace_becomes_unknown() {
    let stack = Stack::start().await;
    stack.workers_will_die();
    let worker = start_scripted_worker(stack.servers.nats_url(), &stack.ledger, Duration::from_millis(100));
    stack.offered(&["unsafe"]).await;
    let call = stack.accepted(&held(ToolEffect::Unsafe, 0, &unique_path("never"))).await;
    stack.ledger.reaches(ToolEvent::Started, 1).await;
    worker.terminate();
    assert!(worker.ended().await.success());
    assert_eq!(stack.ended(call).await.state, CallState::Unknown);
    stack.wait_until_empty().await;
    stack.finish().await;
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

/// The longest time for which this process stood still since now, and likely the others with it.
fn longest_pause() -> watch::Receiver<Duration> {
    const PAUSE: Duration = Duration::from_millis(10);
    let (sender, longest) = watch::channel(Duration::ZERO);
    tokio::spawn(async move {
        while !sender.is_closed() {
            let paused = Instant::now();
            tokio::time::sleep(PAUSE).await;
            let still = paused.elapsed().saturating_sub(PAUSE);
            sender.send_modify(|longest| *longest = still.max(*longest));
        }
    });
    longest
}

#[tokio::test]
async fn a_dispatcher_that_is_stopped_under_load_loses_nothing() {
    let stack = Stack::on(Servers::start().await).await;
    let pause = longest_pause();
    let (mut leaving, staying) = (dispatcher(&stack), dispatcher(&stack));
    leaving.line("Dispatcher started").await;
    staying.line("Dispatcher started").await;
    let worker = start_scripted_worker(stack.servers.nats_url(), &stack.ledger, Duration::from_secs(30));
    stack.offered(&ToolEffect::ALL.map(ToolEffect::as_str)).await;
    for round in 0..3 {
        let one = |n: u64| Submission::new("unsafe", arguments(json!({"n": n, "before_ms": n % 20})));
        stack.call_all(&(0..100).map(one).collect::<Vec<_>>()).await;
        stack.ledger.reaches(ToolEvent::Effect, 100 * round + 50).await;
        leaving.terminate();
        assert!(leaving.ended().await.success(), "{}", leaving.output());
        leaving = dispatcher(&stack);
        leaving.line("Dispatcher started").await;
    }
    stack.drained(Duration::from_secs(30)).await;
    stack.wait_until_empty().await;
    worker.terminate();
    assert!(worker.ended().await.success());
    let (said, pause) = (worker.output(), *pause.borrow());
    // A request has 2 s. Where everything stands still, any may be without an answer.
    assert!(
        pause >= Duration::from_secs(1) || !said.contains("no answer from NATS"),
        "a dispatcher that leaves answers what was on its way to it: {pause:?}, {said}"
    );
    let evidence = stack.finish().await;
    assert_eq!(evidence.count(CallState::Succeeded), 300);
    assert_eq!(evidence.attempts().count(), 300);
}

/// Large arguments and results are on their way in pieces all the time.
#[tokio::test]
async fn dispatchers_and_workers_that_are_killed_amid_large_payloads_lose_nothing() {
    let stack = Stack::on(Servers::start().await).await;
    stack.workers_will_die();
    stack.redeliver_after(Duration::from_secs(2)).await;
    let mut dispatchers = [dispatcher(&stack), dispatcher(&stack)];
    for one in &dispatchers {
        one.line("Dispatcher started").await;
    }
    let worker = || start_scripted_worker(stack.servers.nats_url(), &stack.ledger, Duration::from_secs(30));
    let mut workers = [worker(), worker()];
    stack.offered(&["idempotent"]).await;
    let text = "好\" x".repeat(300_000);
    let output = json!(text).to_string();
    let one = |n: usize| {
        let key = Some(format!("large {n}"));
        Submission { key, ..Submission::new("idempotent", arguments(json!({"n": n, "output": output}))) }
    };
    let mut calls = Vec::new();
    for n in 0..12 {
        let submission = [one(n)];
        calls.push(until("it is on record", async || stack.try_submit_all(&submission).await.ok()?[0].call).await);
        if n % 3 == 2 {
            let dying = n / 3 % 2;
            dispatchers[dying].kill().await;
            dispatchers[dying] = dispatcher(&stack);
            workers[dying].kill().await;
            workers[dying] = worker();
        }
    }
    stack.drained(Duration::from_mins(2)).await;
    for call in calls {
        assert_eq!(stack.ended(call).await.state, CallState::Succeeded);
    }
    stack.wait_until_empty().await;
    for one in workers {
        one.terminate();
        assert!(one.ended().await.success());
    }
    let evidence = stack.finish().await;
    assert_eq!(evidence.count(CallState::Succeeded), 12);
}
