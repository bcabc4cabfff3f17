use redial_worker::Tool;

use crate::{
    dispatcher::{Dispatcher, Said},
    tools, within,
};

#[tokio::test]
async fn a_worker_never_holds_more_jobs_than_slots() {
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
    assert!(gate.most() > 1, "slots were not used");
    worker.stop().await;
}

#[tokio::test]
async fn a_free_slot_is_filled_at_once() {
    let mut dispatcher = Dispatcher::start().await;
    let (gated, gate) = tools::gated("gated");
    let worker = dispatcher.worker(8, [gated]).await;
    // One pull with 8 slots is open when the first job comes, and stays so for the others.
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
async fn a_limited_tool_does_not_slow_others() {
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
async fn a_job_that_is_none_is_thrown_away() {
    let mut dispatcher = Dispatcher::start().await;
    dispatcher.queue.put("redial.jobs.default.echo", &"no job").await.unwrap();
    dispatcher.queue.put("redial.jobs.default.echo", &serde_json::json!({"call": 1})).await.unwrap();
    let worker = dispatcher.worker(4, [Tool::echo()]).await;
    dispatcher.all_answered().await;
    let job = dispatcher.submit("echo").await;
    assert_eq!(dispatcher.report().await.job_ref(), job);
    worker.stop().await;
    assert!(!dispatcher.said().iter().any(|said| matches!(said, Said::Claimed(_))));
}

#[tokio::test]
async fn a_job_for_another_worker_of_the_pool_is_handed_back() {
    let mut dispatcher = Dispatcher::start().await;
    let one = dispatcher.worker(4, [Tool::echo()]).await;
    let job = dispatcher.submit("tells").await;
    let other = dispatcher.worker(4, [tools::tells()]).await;
    let claim = dispatcher.claim().await;
    assert_eq!((&claim.worker, &claim.jobs[..]), (&other.id, &[job][..]));
    assert_eq!(dispatcher.report().await.job_ref(), job);
    one.stop().await;
    other.stop().await;
}
