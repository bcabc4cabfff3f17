use redial_worker::{Tool, Worker, WorkerConfig};

use crate::{
    dispatcher::{Dispatcher, Running, Said},
    tools, within,
};

#[tokio::test]
async fn a_granted_job_runs_and_is_reported() {
    let mut dispatcher = Dispatcher::start().await;
    let worker = dispatcher.worker(4, [tools::tells(), Tool::echo()]).await;
    let job = dispatcher.submit("tells").await;
    let report = dispatcher.report().await;
    assert_eq!(report.job_ref(), job);
    let output: serde_json::Value = serde_json::from_str(report.output.unwrap().get()).unwrap();
    let wanted = serde_json::json!({
        "arguments": {"call": job.call},
        "attempt": 1,
        "key": "key",
        "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "timeout_ms": 60_000,
    });
    assert_eq!(output, wanted);
    dispatcher.all_answered().await;
    worker.stop().await;
}

#[tokio::test]
async fn the_registration_tells_tools_and_slots() {
    let mut dispatcher = Dispatcher::start().await;
    let (limited, _gate) = tools::gated("limited");
    let worker = dispatcher.worker(4, [Tool::echo()]).await;
    worker.stop().await;
    let config = WorkerConfig { slots: 5, ..WorkerConfig::new("nats://127.0.0.1:1", "no NATS here") };
    let lonely = Running::start(Worker::new(config).add(Tool::echo()));
    lonely.stop().await;
    let worker = dispatcher.worker(4, [Tool::echo(), limited.concurrency(2)]).await;
    dispatcher.script().ask_to_announce = true;
    // A lease that is shorter than thought brings a heartbeat at once, and its answer asks.
    dispatcher.script().lease_ms = 5000;
    dispatcher.submit("echo").await;
    let again = dispatcher.next(|said| if let Said::Registered(again) = said { Some(again) } else { None }).await;
    let names: Vec<_> = again.tools.iter().map(|tool| (tool.name.as_str(), tool.pool.as_str())).collect();
    assert_eq!((names, again.slots), (vec![("echo", "default"), ("limited", "limited")], 6));
    assert_eq!(again.worker, worker.id);
    worker.stop().await;
}

#[tokio::test]
async fn a_job_that_is_not_granted_is_dropped() {
    let mut dispatcher = Dispatcher::start().await;
    let refused = dispatcher.submit("echo").await;
    dispatcher.script().refused.insert(refused);
    let worker = dispatcher.worker(4, [Tool::echo()]).await;
    assert_eq!(dispatcher.claim().await.jobs, [refused]);
    dispatcher.all_answered().await;
    let granted = dispatcher.submit("echo").await;
    assert_eq!(dispatcher.report().await.job_ref(), granted, "the refused job must not have run");
    worker.stop().await;
}

#[tokio::test]
async fn a_claim_without_an_answer_is_sent_again_in_copies_with_its_id() {
    let mut dispatcher = Dispatcher::start().await;
    dispatcher.script().unanswered_claims = 1;
    let worker = dispatcher.worker(4, [Tool::echo()]).await;
    let job = dispatcher.submit("echo").await;
    let first = dispatcher.claim().await;
    for _ in 0..3 {
        assert_eq!(dispatcher.claim().await, first);
    }
    assert_eq!(dispatcher.report().await.job_ref(), job);
    worker.stop().await;
    assert!(!dispatcher.said().iter().any(|said| matches!(said, Said::Reported(_))), "it ran twice");
}

#[tokio::test]
async fn claims_ask_for_no_more_than_one_message_can_carry() {
    let mut dispatcher = Dispatcher::start().await;
    dispatcher.submit_many("default", "echo", 7, 256 * 1024).await;
    let worker = dispatcher.worker(64, [Tool::echo()]).await;
    let mut asked = 0;
    while asked < 7 {
        let claim = dispatcher.claim().await;
        assert!((1..=2).contains(&claim.jobs.len()), "{} jobs of 256 KiB", claim.jobs.len());
        asked += claim.jobs.len();
    }
    worker.stop().await;
}

#[tokio::test]
async fn a_worker_pulls_again_after_the_store_was_wiped() {
    let mut dispatcher = Dispatcher::start().await;
    let worker = dispatcher.worker(4, [Tool::echo()]).await;
    for wipe in [false, true] {
        dispatcher.restart_nats(wipe).await;
        let job = dispatcher.submit("echo").await;
        // What was on its way to the killed server may come again before it.
        within(10, async { while dispatcher.report().await.job_ref() != job {} }).await;
    }
    worker.stop().await;
}
