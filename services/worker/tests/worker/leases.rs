use redial_proto::{ErrorClass, WorkerNotice};
use redial_worker::Tool;

use crate::{
    dispatcher::{Dispatcher, Said},
    tools::{self, Event},
    within,
};

fn reports(dispatcher: &mut Dispatcher) -> usize {
    dispatcher.said().iter().filter(|said| matches!(said, Said::Reported(_))).count()
}

#[tokio::test]
async fn running_calls_are_renewed_and_an_idle_worker_is_heard_of() {
    let mut dispatcher = Dispatcher::start().await;
    dispatcher.script().lease_ms = 600;
    let (stuck, mut events) = tools::stuck();
    let worker = dispatcher.worker(4, [stuck]).await;
    assert!(dispatcher.renewal().await.running.is_empty());
    let job = dispatcher.submit("stuck").await;
    assert_eq!(within(5, events.recv()).await, Some(Event::Started));
    // Far longer than the lease of 600 ms.
    dispatcher.said();
    for _ in 0..6 {
        let renewal = dispatcher.renewal().await;
        assert_eq!((&renewal.worker, renewal.slots, renewal.draining), (&worker.id, 4, false));
        assert_eq!(renewal.running, [job]);
    }
    assert!(events.try_recv().is_err(), "the tool was stopped");
    worker.stop().await;
}

#[tokio::test]
async fn a_lost_lease_stops_the_tool_and_nothing_is_reported() {
    let mut dispatcher = Dispatcher::start().await;
    // Renewed every 2 s: the tool is stopped by the answer, long before the lease would have ended.
    dispatcher.script().lease_ms = 6000;
    let (stuck, mut events) = tools::stuck();
    let worker = dispatcher.worker(4, [stuck]).await;
    let job = dispatcher.submit("stuck").await;
    assert_eq!(within(5, events.recv()).await, Some(Event::Started));
    dispatcher.script().lost = vec![job];
    assert_eq!(within(4, events.recv()).await, Some(Event::Gone));
    dispatcher.next(|said| matches!(said, Said::Renewed(renewal) if renewal.running.is_empty()).then_some(())).await;
    worker.stop().await;
    assert_eq!(reports(&mut dispatcher), 0);
}

/// With one that does not answer, the next try must not depend on where a single message goes.
#[tokio::test]
async fn a_heartbeat_that_failed_is_sent_in_copies() {
    let mut dispatcher = Dispatcher::start().await;
    dispatcher.script().lease_ms = 6000;
    let (stuck, mut events) = tools::stuck();
    let worker = dispatcher.worker(4, [stuck]).await;
    dispatcher.submit("stuck").await;
    assert_eq!(within(5, events.recv()).await, Some(Event::Started));
    dispatcher.renewal().await;
    dispatcher.script().answer_renewals = false;
    dispatcher.said();
    let silent = async {
        // Single ones would be 1.5 s apart.
        dispatcher.renewal().await;
        for copies in [3, 5, 5] {
            dispatcher.renewal().await;
            for _ in 1..copies {
                within(1, dispatcher.renewal()).await;
            }
        }
    };
    within(20, silent).await;
    worker.stop().await;
}

#[tokio::test]
async fn without_renewals_the_lease_ends_by_the_workers_own_clock() {
    let mut dispatcher = Dispatcher::start().await;
    dispatcher.script().lease_ms = 1000;
    dispatcher.script().answer_renewals = false;
    let (stuck, mut events) = tools::stuck();
    let worker = dispatcher.worker(4, [stuck]).await;
    dispatcher.submit("stuck").await;
    assert_eq!(within(5, events.recv()).await, Some(Event::Started));
    let started = std::time::Instant::now();
    assert_eq!(within(5, events.recv()).await, Some(Event::Gone));
    // At most the lease; its start is counted from the claim.
    assert!((500..1100).contains(&started.elapsed().as_millis()), "{:?}", started.elapsed());
    worker.stop().await;
    assert_eq!(reports(&mut dispatcher), 0);
}

#[tokio::test]
async fn a_cancelled_call_is_stopped_and_says_so() {
    let mut dispatcher = Dispatcher::start().await;
    dispatcher.script().lease_ms = 600;
    let (stuck, mut events) = tools::stuck();
    let worker = dispatcher.worker(4, [stuck]).await;
    for by_notice in [true, false] {
        let job = dispatcher.submit("stuck").await;
        assert_eq!(within(5, events.recv()).await, Some(Event::Started));
        if by_notice {
            let notice = WorkerNotice { cancelled: vec![job], ..WorkerNotice::default() };
            dispatcher.tell(&worker.id, &notice).await;
        } else {
            dispatcher.script().cancelled = vec![job];
        }
        assert_eq!(within(5, events.recv()).await, Some(Event::Gone));
        let report = dispatcher.report().await;
        let error = report.error.as_ref().unwrap();
        assert_eq!((report.job_ref(), error.class), (job, ErrorClass::Cancelled));
        assert!(error.effect_possible);
    }
    worker.stop().await;
}

#[tokio::test]
async fn at_its_deadline_a_tool_is_stopped() {
    let mut dispatcher = Dispatcher::start().await;
    dispatcher.script().timeout_ms = 50;
    let (stuck, mut events) = tools::stuck();
    let worker = dispatcher.worker(4, [stuck]).await;
    dispatcher.submit("stuck").await;
    let report = dispatcher.report().await;
    assert!((50..1000).contains(&report.duration_ms), "{}", report.duration_ms);
    let error = report.error.unwrap();
    assert_eq!((error.class, error.effect_possible), (ErrorClass::Timeout, true));
    assert_eq!(within(5, events.recv()).await, Some(Event::Started));
    assert_eq!(within(5, events.recv()).await, Some(Event::Gone));
    worker.stop().await;
}

#[tokio::test]
async fn a_panic_is_one_failed_attempt() {
    let mut dispatcher = Dispatcher::start().await;
    let worker = dispatcher.worker(4, [tools::panics(), Tool::echo()]).await;
    dispatcher.submit("panics").await;
    let error = dispatcher.report().await.error.unwrap();
    assert_eq!(error.class, ErrorClass::Internal);
    assert!(error.message.contains("oh no"), "{}", error.message);
    dispatcher.submit("echo").await;
    assert!(dispatcher.report().await.output.is_some());
    worker.stop().await;
}
