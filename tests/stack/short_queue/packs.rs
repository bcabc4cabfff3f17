//! Packs: jobs that are published together share messages, and are divided among workers.

use redial_proto::{Submission, WorkerId};
use redial_testkit::{Stack, arguments, until_within};
use serde_json::json;

use super::fixture::{LONG, count, jobs, published_again, states, steady, steady_with_notes, submit, tool};

/// Calls that run until the file exists.
async fn hold(stack: &Stack, count: usize, release: &std::path::Path) {
    let held = |_| Submission::new("slow", arguments(json!({"hold": release})));
    stack.call_all(&(0..count).map(held).collect::<Vec<_>>()).await;
}

async fn runs(stack: &Stack, worker: &WorkerId) -> i64 {
    let count = "SELECT count(*) FROM calls WHERE worker = $1 AND state = 'running'";
    sqlx::query_scalar(count).bind(worker.as_str()).fetch_one(stack.db()).await.unwrap()
}

async fn messages(stack: &Stack) -> u64 {
    stack.queue().ensure_streams().await.unwrap().jobs
}

#[tokio::test]
async fn a_busy_worker_takes_what_it_has_slots_for_and_others_take_the_rest() {
    let mut stack = steady_with_notes().await;
    let release = redial_testkit::unique_path("release");
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

#[tokio::test]
async fn packs_are_spread_evenly() {
    let mut stack = steady().await;
    let mut workers = Vec::new();
    for _ in 0..3 {
        workers.push(stack.work(vec![tool(&stack, "slow")]).await);
    }
    let mut shares = [0; 3];
    // In one round a worker may ask a moment later than the others.
    for _ in 0..3 {
        let release = redial_testkit::unique_path("release");
        hold(&stack, 96, &release).await;
        count(&stack, "slow", "running", 96).await;
        for (share, worker) in shares.iter_mut().zip(&workers) {
            *share += runs(&stack, worker).await;
        }
        std::fs::write(&release, "").unwrap();
        stack.drained(LONG).await;
    }
    assert!(shares.iter().all(|share| (48..=144).contains(share)), "{shares:?} of 288");
    assert_eq!(states(&stack, "slow", "succeeded").await, 288);
    stack.finish().await;
}

/// Each worker that asks for jobs gets some, also of what waited in the backlog.
#[tokio::test]
async fn a_backlog_is_fed_in_packs() {
    let mut stack = steady().await;
    let release = redial_testkit::unique_path("release");
    stack.work(vec![tool(&stack, "slow")]).await;
    hold(&stack, 64, &release).await;
    count(&stack, "slow", "running", 64).await;
    submit(&stack, "slow", 1_000).await;
    until_within(LONG, "they wait on the stream", async || (jobs(&stack, "slow").await == 1_000).then_some(())).await;
    assert!(messages(&stack).await <= 250, "{} messages for 1,000 jobs", messages(&stack).await);
    std::fs::write(&release, "").unwrap();
    stack.drained(LONG).await;
    stack.finish().await;
}
