use std::time::{Duration, Instant};

use redial_proto::ControlMessage;
use redial_worker::Tool;

use crate::dispatcher::{Dispatcher, Received};

#[tokio::test]
async fn a_report_is_repeated_until_it_is_on_record_or_its_attempt_is_lost() {
    let mut dispatcher = Dispatcher::start().await;
    dispatcher.script().withholds_records = true;
    dispatcher.script().lease_ms = 6000;
    let worker = dispatcher.worker(4, [Tool::echo()]).await;
    let job = dispatcher.submit("echo").await;
    let first = dispatcher.report().await;
    // The lease is renewed until the report is on record.
    dispatcher.renewed(&[job]).await;
    let again = dispatcher.report().await;
    assert_eq!((first.job_ref(), again.job_ref()), (job, job));
    assert_eq!(again.output.unwrap().get(), first.output.unwrap().get());
    dispatcher
        .send_control(
            &worker.id,
            &ControlMessage { ingested: vec![dispatcher.grant_of(job)], ..ControlMessage::default() },
        )
        .await;
    dispatcher.renewed(&[]).await;

    let lost = dispatcher.submit("echo").await;
    assert_eq!(dispatcher.report().await.job_ref(), lost);
    let lost = dispatcher.grant_of(lost);
    dispatcher.script().heartbeat.lost = vec![lost];
    dispatcher.renewed(&[]).await;
    // A pending report would hold the worker up for 10 s, in which it is repeated.
    worker.stop().await;
    assert!(!dispatcher.received().iter().any(|received| matches!(received, Received::Report(_))));
}

#[tokio::test]
async fn reports_are_repeated_right_after_a_reconnection() {
    let mut dispatcher = Dispatcher::start().await;
    dispatcher.script().withholds_records = true;
    let worker = dispatcher.worker(4, [Tool::echo()]).await;
    let job = dispatcher.submit("echo").await;
    for _ in 0..2 {
        assert_eq!(dispatcher.report().await.job_ref(), job);
    }
    // So long after the last one, the next one would come without a reconnection. On a slow machine that proves nothing.
    for due in [10, 20, 40] {
        let last = Instant::now();
        Box::pin(dispatcher.restart_nats()).await;
        assert_eq!(dispatcher.report().await.job_ref(), job);
        if last.elapsed() < Duration::from_secs(due - 1) {
            break;
        }
    }
    dispatcher
        .send_control(
            &worker.id,
            &ControlMessage { ingested: vec![dispatcher.grant_of(job)], ..ControlMessage::default() },
        )
        .await;
    worker.stop().await;
}
