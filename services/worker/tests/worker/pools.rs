use redial_worker::Tool;

use crate::{
    dispatcher::{Dispatcher, Received},
    tools, within,
};

#[tokio::test]
async fn a_worker_never_holds_more_jobs_than_permits() {
    let mut dispatcher = Dispatcher::start().await;
    let (gated, gate) = tools::gated("gated");
    let worker = dispatcher.worker(4, [gated]).await;
    dispatcher.submit_many("default", "gated", 40, 2).await;
    for _ in 0..40 {
        within(5, async {
            while gate.running() == 0 {
                tokio::task::yield_now().await;
            }
        })
        .await;
        let backlog = dispatcher.queue.pool_backlog("default").await.unwrap();
        assert!(backlog.unacked <= 4, "{backlog:?}");
        gate.open(1);
        dispatcher.report().await;
    }
    assert!(gate.most() <= 4, "{}", gate.most());
    assert!(gate.most() > 1, "permits were not used");
    worker.stop().await;
}

#[tokio::test]
async fn a_free_permit_is_used_at_once() {
    let mut dispatcher = Dispatcher::start().await;
    let (gated, gate) = tools::gated("gated");
    let worker = dispatcher.worker(8, [gated]).await;
    // One pull for 8 jobs is open when the first job arrives, and stays open for the others.
    for running in 1..=8 {
        dispatcher.submit("gated").await;
        within(2, gate.until_running(running)).await;
    }
    dispatcher.submit("gated").await;
    gate.open(1);
    dispatcher.report().await;
    within(2, gate.until_running(8)).await;
    gate.open(8);
    worker.stop().await;
}

#[tokio::test]
async fn a_limited_tool_does_not_block_others() {
    let mut dispatcher = Dispatcher::start().await;
    let (limited, gate) = tools::gated("limited");
    let worker = dispatcher.worker(8, [limited.concurrency(2), Tool::echo()]).await;
    dispatcher.submit_many("limited", "limited", 10, 2).await;
    within(5, gate.until_running(2)).await;
    let quick = dispatcher.submit("echo").await;
    assert_eq!(within(2, dispatcher.report()).await.job_ref(), quick);
    gate.open(10);
    for _ in 0..10 {
        dispatcher.report().await;
    }
    assert_eq!(gate.most(), 2);
    worker.stop().await;
}

#[tokio::test]
async fn a_job_that_cannot_be_parsed_is_discarded() {
    let mut dispatcher = Dispatcher::start().await;
    dispatcher.queue.put("redial.jobs.default.echo", &"no job").await.unwrap();
    dispatcher.queue.put("redial.jobs.default.echo", &serde_json::json!({"call": 1})).await.unwrap();
    let worker = dispatcher.worker(4, [Tool::echo()]).await;
    dispatcher.stream_is_empty().await;
    let job = dispatcher.submit("echo").await;
    assert_eq!(dispatcher.report().await.job_ref(), job);
    worker.stop().await;
    assert!(!dispatcher.received().iter().any(|received| matches!(received, Received::Claim(_))));
}

#[tokio::test]
async fn a_job_for_another_worker_of_the_pool_is_returned() {
    let mut dispatcher = Dispatcher::start().await;
    let one = dispatcher.worker(4, [Tool::echo()]).await;
    let job = dispatcher.submit("echo_context").await;
    let other = dispatcher.worker(4, [tools::echo_context()]).await;
    let claim = dispatcher.claim().await;
    assert_eq!((&claim.worker, &claim.jobs[..]), (&other.id, &[job][..]));
    assert_eq!(dispatcher.report().await.job_ref(), job);
    one.stop().await;
    other.stop().await;
}
