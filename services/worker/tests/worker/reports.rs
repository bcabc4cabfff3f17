use std::time::{Duration, Instant};

use redial_proto::{ControlMessage, ErrorClass};
use redial_worker::Tool;

use crate::{
    dispatcher::{Dispatcher, Received},
    tools,
};

#[tokio::test]
async fn a_report_is_repeated_until_it_is_on_record() {
    let mut dispatcher = Dispatcher::start().await;
    dispatcher.script().ingest = false;
    dispatcher.script().lease_ms = 6000;
    let worker = dispatcher.worker(4, [Tool::echo()]).await;
    let job = dispatcher.submit("echo").await;
    let first = dispatcher.report().await;
    // The lease is renewed until the report is on record.
    dispatcher
        .next(|received| matches!(received, Received::Heartbeat(heartbeat) if heartbeat.running == [job]).then_some(()))
        .await;
    let again = dispatcher.report().await;
    assert_eq!((first.job_ref(), again.job_ref()), (job, job));
    assert_eq!(again.output.unwrap().get(), first.output.unwrap().get());
    dispatcher.send_control(&worker.id, &ControlMessage { ingested: vec![job], ..ControlMessage::default() }).await;
    dispatcher
        .next(|received| {
            matches!(received, Received::Heartbeat(heartbeat) if heartbeat.running.is_empty()).then_some(())
        })
        .await;
    worker.stop().await;
}

#[tokio::test]
async fn reports_are_repeated_right_after_a_reconnection() {
    let mut dispatcher = Dispatcher::start().await;
    dispatcher.script().ingest = false;
    let worker = dispatcher.worker(4, [Tool::echo()]).await;
    let job = dispatcher.submit("echo").await;
    for _ in 0..2 {
        assert_eq!(dispatcher.report().await.job_ref(), job);
    }
    // So long after the last one, the next one would come without a reconnection. On a slow machine that proves nothing.
    for due in [10, 20, 40] {
        let last = Instant::now();
        Box::pin(dispatcher.restart_nats(true)).await;
        assert_eq!(dispatcher.report().await.job_ref(), job);
        if last.elapsed() < Duration::from_secs(due - 1) {
            break;
        }
    }
    dispatcher.send_control(&worker.id, &ControlMessage { ingested: vec![job], ..ControlMessage::default() }).await;
    worker.stop().await;
}

#[tokio::test]
async fn the_report_of_a_lost_attempt_is_dropped() {
    let mut dispatcher = Dispatcher::start().await;
    dispatcher.script().ingest = false;
    dispatcher.script().lease_ms = 6000;
    let worker = dispatcher.worker(4, [Tool::echo()]).await;
    let job = dispatcher.submit("echo").await;
    dispatcher.report().await;
    dispatcher.script().lost = vec![job];
    dispatcher
        .next(|received| {
            matches!(received, Received::Heartbeat(heartbeat) if heartbeat.running.is_empty()).then_some(())
        })
        .await;
    // A pending report would hold the worker up for 10 s, in which it is repeated.
    worker.stop().await;
    assert!(!dispatcher.received().iter().any(|received| matches!(received, Received::Report(_))));
}

#[tokio::test]
async fn an_output_over_the_limit_becomes_an_error() {
    let mut dispatcher = Dispatcher::start().await;
    let worker = dispatcher.worker(4, [tools::with_output_of(16 * 1024 * 1024 + 1)]).await;
    dispatcher.submit("with_output_of").await;
    let error = dispatcher.report().await.error.unwrap();
    assert_eq!(error.class, ErrorClass::OutputTooLarge);
    worker.stop().await;
}

#[tokio::test]
async fn a_large_output_gets_its_own_message() {
    let mut dispatcher = Dispatcher::start().await;
    let worker = dispatcher.worker(8, [tools::with_output_of(512 * 1024)]).await;
    dispatcher.submit_many("default", "with_output_of", 8, 2).await;
    for _ in 0..8 {
        assert_eq!(dispatcher.report().await.output.unwrap().get().len(), 512 * 1024);
    }
    worker.stop().await;
}
