use redial_proto::{ErrorClass, WorkerNotice};
use redial_worker::Tool;

use crate::{
    dispatcher::{Dispatcher, Said},
    tools, within,
};

#[tokio::test]
async fn a_report_is_sent_again_until_it_is_on_record() {
    let mut dispatcher = Dispatcher::start().await;
    dispatcher.script().ingest = false;
    dispatcher.script().lease_ms = 600;
    let worker = dispatcher.worker(4, [Tool::echo()]).await;
    let job = dispatcher.submit("echo").await;
    let first = dispatcher.report().await;
    // Held until it is on record, so that the lease lives on.
    dispatcher.next(|said| matches!(said, Said::Renewed(renewal) if renewal.running == [job]).then_some(())).await;
    let again = dispatcher.report().await;
    assert_eq!((first.job_ref(), again.job_ref()), (job, job));
    assert_eq!(again.output.unwrap().get(), first.output.unwrap().get());
    dispatcher.tell(&worker.id, &WorkerNotice { ingested: vec![job], ..WorkerNotice::default() }).await;
    dispatcher.next(|said| matches!(said, Said::Renewed(renewal) if renewal.running.is_empty()).then_some(())).await;
    worker.stop().await;
}

#[tokio::test]
async fn after_a_reconnection_reports_are_sent_at_once() {
    let mut dispatcher = Dispatcher::start().await;
    dispatcher.script().ingest = false;
    let worker = dispatcher.worker(4, [Tool::echo()]).await;
    let job = dispatcher.submit("echo").await;
    assert_eq!(dispatcher.report().await.job_ref(), job);
    dispatcher.script().ingest = true;
    dispatcher.restart_nats(true).await;
    assert_eq!(within(4, dispatcher.report()).await.job_ref(), job);
    worker.stop().await;
}

#[tokio::test]
async fn a_report_that_was_lost_meanwhile_is_forgotten() {
    let mut dispatcher = Dispatcher::start().await;
    dispatcher.script().ingest = false;
    dispatcher.script().lease_ms = 600;
    let worker = dispatcher.worker(4, [Tool::echo()]).await;
    let job = dispatcher.submit("echo").await;
    dispatcher.report().await;
    dispatcher.script().lost = vec![job];
    dispatcher.next(|said| matches!(said, Said::Renewed(renewal) if renewal.running.is_empty()).then_some(())).await;
    // With a report in hand, stopping would take 10 s.
    within(5, worker.stop()).await;
}

#[tokio::test]
async fn an_output_over_the_limit_is_an_error() {
    let mut dispatcher = Dispatcher::start().await;
    let worker = dispatcher.worker(4, [tools::wordy(512 * 1024 + 1)]).await;
    dispatcher.submit("wordy").await;
    let error = dispatcher.report().await.error.unwrap();
    assert_eq!(error.class, ErrorClass::OutputTooLarge);
    worker.stop().await;
}

#[tokio::test]
async fn large_outputs_travel_in_messages_of_their_own() {
    let mut dispatcher = Dispatcher::start().await;
    let worker = dispatcher.worker(8, [tools::wordy(512 * 1024)]).await;
    dispatcher.submit_many("default", "wordy", 8, 2).await;
    for _ in 0..8 {
        assert_eq!(dispatcher.report().await.output.unwrap().get().len(), 512 * 1024);
    }
    worker.stop().await;
}
