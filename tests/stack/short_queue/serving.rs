//! Tools that no worker has, or only some.

use redial_proto::{CallState, ErrorClass, RetryOverride, Submission};
use redial_test_stack::{arguments, until_within};
use serde_json::json;

use super::fixture::{
    LONG, busy, count, jobs, published_again, states, steady, steady_with_notes, submit, tool, waiting,
};

#[tokio::test]
async fn jobs_of_a_tool_that_nobody_has_any_more_are_in_nobodys_way() {
    let mut stack = steady().await;
    let release = redial_test_stack::unique_path("release");
    // The worker's slots are taken, so the others wait on the stream for it.
    busy(&mut stack, "default", "slow", &release).await;
    submit(&stack, "slow", 100).await;
    until_within(LONG, "the jobs are on the stream", async || (jobs(&stack, "slow").await == 100).then_some(())).await;
    std::fs::write(&release, "").unwrap();
    stack.stop_workers().await;
    until_within(LONG, "what was not done waits in the backlog", async || {
        let ready = states(&stack, "slow", "ready").await;
        (waiting(&stack, "slow").await == ready).then_some(())
    })
    .await;
    // They and those that come now are in the way of no other tool of the pool, and no worker without the tool gets them.
    submit(&stack, "slow", 300).await;
    stack.work(vec![tool(&stack, "good")]).await;
    let left = states(&stack, "slow", "ready").await;
    assert!(left > 300);
    submit(&stack, "good", 2_000).await;
    count(&stack, "good", "succeeded", 2_000).await;
    assert_eq!((states(&stack, "slow", "ready").await, waiting(&stack, "slow").await), (left, left));
    // They start as soon as a worker registers the tool.
    stack.work(vec![tool(&stack, "slow")]).await;
    stack.drained(LONG).await;
    stack.leaves_jobs();
    stack.finish().await;
}

#[tokio::test]
async fn a_tool_that_only_some_workers_have_runs_there_and_the_others_stay_busy() {
    let mut stack = steady_with_notes().await;
    let lacking = stack.work(vec![tool(&stack, "common")]).await;
    let having = stack.work(vec![tool(&stack, "common"), tool(&stack, "new")]).await;
    submit(&stack, "new", 1_000).await;
    submit(&stack, "common", 2_000).await;
    stack.drained(LONG).await;
    let by = async |worker: &redial_proto::WorkerId, tool: &str| {
        stack.count(&format!("calls WHERE worker = '{worker}' AND tool = '{tool}' AND attempt = 1")).await
    };
    assert_eq!((by(&lacking, "new").await, by(&having, "new").await), (0, 1_000));
    let (one, other) = (by(&lacking, "common").await, by(&having, "common").await);
    assert!(one + other == 2_000 && one > 200 && other > 200, "{one} and {other}");
    assert_eq!(published_again(&stack).await, 0, "a worker was handed a job that it cannot run");
    stack.finish().await;
}

#[tokio::test]
async fn a_call_without_a_worker_ends_at_its_deadline_and_says_why() {
    let mut stack = steady().await;
    stack.work(vec![tool(&stack, "removed")]).await;
    stack.stop_workers().await;
    // A dispatcher that starts knows that nobody has it.
    stack.stop_dispatchers().await;
    stack.dispatch().await;
    let retry = Some(RetryOverride { deadline_ms: Some(1_000), ..RetryOverride::default() });
    let call = stack.accepted(&Submission { retry, ..Submission::new("removed", arguments(json!({}))) }).await;
    let view = stack.ended(call).await;
    assert_eq!((view.state, view.class), (CallState::Failed, Some(ErrorClass::BudgetExhausted)));
    let message = view.message.unwrap();
    let wanted = "no live worker had the tool \"removed\" before the call's total deadline; one was last seen at 20";
    assert!(message.starts_with(wanted), "{message}");
    stack.finish().await;
}
