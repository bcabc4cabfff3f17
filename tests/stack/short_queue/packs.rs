//! Packs: jobs that are published together share messages, and are divided among workers.

use redial_proto::Submission;
use redial_test_stack::{Stack, arguments, until_within};
use serde_json::json;

use super::fixture::{LONG, count, jobs, published_again, steady_with_notes, tool};

/// Calls that run until the file exists.
async fn hold(stack: &Stack, count: usize, release: &std::path::Path) {
    let held = |_| Submission::new("slow", arguments(json!({"hold": release})));
    stack.call_all(&(0..count).map(held).collect::<Vec<_>>()).await;
}

async fn messages(stack: &Stack) -> u64 {
    stack.queue().ensure_streams().await.unwrap().jobs
}

#[tokio::test]
async fn a_busy_worker_takes_what_it_has_slots_for_and_others_take_the_rest() {
    let mut stack = steady_with_notes().await;
    let release = redial_test_stack::unique_path("release");
    stack.work(vec![tool(&stack, "slow")]).await;
    hold(&stack, 60, &release).await;
    count(&stack, "slow", "running", 60).await;
    // Four slots are free, and each pack has more jobs.
    hold(&stack, 128, &release).await;
    count(&stack, "slow", "running", 64).await;
    until_within(LONG, "the others are on the stream again", async || {
        (jobs(&stack, "slow").await == 124).then_some(())
    })
    .await;
    assert!(messages(&stack).await <= 62, "{} messages for 124 jobs", messages(&stack).await);
    stack.work(vec![tool(&stack, "slow")]).await;
    count(&stack, "slow", "running", 128).await;
    until_within(LONG, "the rest waits", async || (jobs(&stack, "slow").await == 60).then_some(())).await;
    assert_eq!(published_again(&stack).await, 0, "a job was lost");
    std::fs::write(&release, "").unwrap();
    stack.drained(LONG).await;
    stack.finish().await;
}
