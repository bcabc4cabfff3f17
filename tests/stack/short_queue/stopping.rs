//! A dispatcher that is asked to stop does so, whatever waits.

use std::time::Duration;

use redial_proto::{RetryOverride, Submission};
use redial_testkit::{Process, Servers, Stack, unique_path, until, until_within};

use super::fixture::{LONG, calls, states, submit_down, tool};

const DOWN: u64 = 20_000;
const GONE: u64 = 2_000;

async fn dispatcher(stack: &Stack) -> Process {
    let dispatcher = Process::start(env!("CARGO_BIN_EXE_redial"), |command| {
        // While no dispatcher runs, the worker cannot send a heartbeat; its tool stays served.
        command.args(["dispatcher", "--lease", "10m", "--nats-url", stack.servers.nats_url()]);
        command.args(["--database-url", stack.servers.database_url()]);
    });
    dispatcher.line("Dispatcher started").await;
    dispatcher
}

async fn count(stack: &Stack, which: &'static str) -> i64 {
    sqlx::query_scalar(sqlx::AssertSqlSafe(format!("SELECT count(*) FROM calls WHERE {which}")))
        .fetch_one(stack.db())
        .await
        .unwrap()
}

#[tokio::test]
async fn a_dispatcher_stops_before_its_backlog_is_empty_and_another_goes_on() {
    let mut stack = Stack::on(Servers::start().await).await;
    let first = dispatcher(&stack).await;
    stack.work(vec![tool(&stack, "gone")]).await;
    stack.stop_workers().await;
    stack.work(vec![tool(&stack, "down")]).await;
    let down = unique_path("down");
    std::fs::write(&down, "").unwrap();
    // None reaches its deadline, however slow the machine is.
    let retry = Some(RetryOverride { deadline_ms: Some(3_600_000), ..RetryOverride::default() });
    let gone: Vec<Submission> = calls("gone", GONE).into_iter().map(|call| Submission { retry, ..call }).collect();
    for batch in gone.chunks(1_000) {
        stack.call_all(batch).await;
    }
    submit_down(&stack, &down, DOWN, Duration::from_hours(1)).await;
    // Now there is everything: jobs on the stream and in the backlog, attempts that run, retries that are due, and others that
    // wait for a token.
    until_within(LONG, "retries wait", async || (count(&stack, "backlog_retry").await > 1_000).then_some(())).await;
    first.terminate();
    until("the dispatcher ends", async || (!first.runs()).then_some(())).await;
    assert!(first.ended().await.success(), "{}", first.output());
    assert!(!first.output().contains("Stopped before"), "{}", first.output());
    assert_eq!(count(&stack, "wake_at IS NOT NULL").await, 22_000, "all calls still wait");

    std::fs::remove_file(&down).unwrap();
    let second = dispatcher(&stack).await;
    until_within(LONG, "calls run", async || (states(&stack, "down", "succeeded").await > 1_000).then_some(())).await;
    second.terminate();
    until("the other dispatcher ends", async || (!second.runs()).then_some(())).await;
    assert!(second.ended().await.success(), "{}", second.output());
    assert!(!second.output().contains("Stopped before"), "{}", second.output());
    let kept = count(&stack, "wake_at IS NOT NULL OR state = 'succeeded'").await;
    assert_eq!((kept, states(&stack, "gone", "ready").await), (22_000, 2_000), "no call is lost");
    stack.leaves_calls();
    stack.finish().await;
}
