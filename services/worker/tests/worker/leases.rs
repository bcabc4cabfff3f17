use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use chrono::TimeDelta;
use redial_proto::{ControlMessage, ErrorClass};
use redial_worker::Tool;
use serde_json::{Map, Value};

use crate::{
    dispatcher::{Dispatcher, Received},
    tools::{self, Event, StuckCall},
    within,
};

fn reports(dispatcher: &mut Dispatcher) -> usize {
    dispatcher.received().iter().filter(|received| matches!(received, Received::Report(_))).count()
}

#[tokio::test]
async fn heartbeats_renew_running_calls_and_continue_while_idle() {
    let mut dispatcher = Dispatcher::start().await;
    dispatcher.script().lease_ms = 6000;
    let (stuck, mut events) = tools::stuck();
    let worker = dispatcher.worker(4, [stuck]).await;
    let first = dispatcher.heartbeat().await;
    assert!(first.running.is_empty());
    assert_eq!(first.after, None, "none was answered yet");
    let job = dispatcher.submit("stuck").await;
    assert_eq!(within(5, events.recv()).await, Some(Event::Started));
    // Longer than the lease of 6 s, of which each heartbeat renews two thirds.
    dispatcher.received();
    let mut after = dispatcher.heartbeat().await.after.unwrap();
    for _ in 0..4 {
        let heartbeat = dispatcher.heartbeat().await;
        assert_eq!((&heartbeat.worker, heartbeat.slots, heartbeat.draining), (&worker.id, 4, false));
        assert_eq!(heartbeat.running, [job]);
        after += TimeDelta::seconds(1);
        assert_eq!(heartbeat.after, Some(after), "the time of the answer to the one before it");
    }
    assert!(events.try_recv().is_err(), "the tool was stopped");
    worker.stop().await;
}

#[tokio::test]
async fn a_lost_lease_stops_the_tool_and_nothing_is_reported() {
    let mut dispatcher = Dispatcher::start().await;
    // The worker sends a heartbeat every 2 s: the reply stops the tool long before the lease would have expired.
    dispatcher.script().lease_ms = 6000;
    let StuckCall { worker, job, mut events } = tools::start_stuck(&mut dispatcher).await;
    dispatcher.script().lost = vec![job];
    assert_eq!(within(4, events.recv()).await, Some(Event::Dropped));
    dispatcher
        .next(|received| {
            matches!(received, Received::Heartbeat(heartbeat) if heartbeat.running.is_empty()).then_some(())
        })
        .await;
    worker.stop().await;
    assert_eq!(reports(&mut dispatcher), 0);
}

/// If one of two dispatchers hangs, a retry must not depend on which one gets it.
#[tokio::test]
async fn a_failed_heartbeat_is_repeated_in_copies() {
    let mut dispatcher = Dispatcher::start().await;
    dispatcher.script().lease_ms = 6000;
    let StuckCall { worker, .. } = tools::start_stuck(&mut dispatcher).await;
    dispatcher.heartbeat().await;
    dispatcher.script().reply_to_heartbeats = false;
    dispatcher.received();
    let retries = async {
        // Single heartbeats would be 1.5 s apart.
        dispatcher.heartbeat().await;
        for copies in [3, 5, 5] {
            dispatcher.heartbeat().await;
            for _ in 1..copies {
                within(1, dispatcher.heartbeat()).await;
            }
        }
    };
    within(20, retries).await;
    worker.stop().await;
}

/// By how much pauses of 10 ms were too long at most.
async fn longest_pause(during: Duration) -> Duration {
    const PAUSE: Duration = Duration::from_millis(10);
    let (began, mut longest) = (Instant::now(), Duration::ZERO);
    while began.elapsed() < during {
        let paused = Instant::now();
        tokio::time::sleep(PAUSE).await;
        longest = longest.max(paused.elapsed().saturating_sub(PAUSE));
    }
    longest
}

#[tokio::test]
async fn without_renewals_the_lease_expires_by_the_workers_clock() {
    let mut dispatcher = Dispatcher::start().await;
    dispatcher.script().lease_ms = 1000;
    dispatcher.script().reply_to_heartbeats = false;
    let StuckCall { worker, mut events, .. } = tools::start_stuck(&mut dispatcher).await;
    let started = Instant::now();
    let (stopped, still) = tokio::join!(within(20, events.recv()), longest_pause(Duration::from_millis(1200)));
    assert_eq!(stopped, Some(Event::Dropped));
    // At most the lease, which begins with the claim; longer only if the machine stood still.
    assert!(started.elapsed() < Duration::from_millis(1300) + 2 * still, "{:?}, {still:?}", started.elapsed());
    worker.stop().await;
    assert_eq!(reports(&mut dispatcher), 0);
}

#[tokio::test]
async fn a_cancelled_call_is_stopped_and_reported() {
    let mut dispatcher = Dispatcher::start().await;
    dispatcher.script().lease_ms = 6000;
    let (stuck, mut events) = tools::stuck();
    let worker = dispatcher.worker(4, [stuck]).await;
    for by_control_message in [true, false] {
        let job = dispatcher.submit("stuck").await;
        assert_eq!(within(5, events.recv()).await, Some(Event::Started));
        if by_control_message {
            let message = ControlMessage { cancelled: vec![job], ..ControlMessage::default() };
            dispatcher.send_control(&worker.id, &message).await;
        } else {
            dispatcher.script().cancelled = vec![job];
        }
        assert_eq!(within(5, events.recv()).await, Some(Event::Dropped));
        let report = dispatcher.report().await;
        let error = report.error.as_ref().unwrap();
        assert_eq!((report.job_ref(), error.class), (job, ErrorClass::Cancelled));
        assert!(error.effect_possible);
    }
    worker.stop().await;
}

#[tokio::test]
async fn a_tool_is_stopped_at_its_deadline() {
    let mut dispatcher = Dispatcher::start().await;
    dispatcher.script().timeout_ms = 50;
    let (stuck, mut events) = tools::stuck();
    let worker = dispatcher.worker(4, [stuck]).await;
    dispatcher.submit("stuck").await;
    let report = dispatcher.report().await;
    // After 10 s of overrunning it, the worker itself would end it.
    assert!((50..10_000).contains(&report.duration_ms), "{}", report.duration_ms);
    let error = report.error.unwrap();
    assert_eq!((error.class, error.effect_possible), (ErrorClass::Timeout, true));
    assert_eq!(within(5, events.recv()).await, Some(Event::Started));
    assert_eq!(within(5, events.recv()).await, Some(Event::Dropped));
    worker.stop().await;
}

#[tokio::test]
async fn a_panic_fails_only_its_attempt() {
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

/// Its future can be neither polled nor dropped, and heartbeats would renew its lease for as long as it blocks.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_tool_that_blocks_its_thread_is_reported_as_a_timeout_and_not_renewed() {
    let mut dispatcher = Dispatcher::start().await;
    (dispatcher.script().timeout_ms, dispatcher.script().lease_ms) = (100, 6000);
    dispatcher.script().ingest = false;
    let (end, ended) = std::sync::mpsc::channel::<()>();
    let ended = Arc::new(Mutex::new(ended));
    let blocks = Tool::new("blocks", move |_: Map<String, Value>| {
        let ended = Arc::clone(&ended);
        async move {
            let _ = ended.lock().unwrap().recv();
        }
    });
    let worker = dispatcher.worker(4, [blocks]).await;
    let job = dispatcher.submit("blocks").await;
    let renewed = async {
        while dispatcher.heartbeat().await.running != [job] {}
        dispatcher.report().await
    };
    let report = within(30, renewed).await;
    assert_eq!((report.job_ref(), report.error.unwrap().class), (job, ErrorClass::Timeout));
    assert!(report.duration_ms >= 10_000, "{} ms", report.duration_ms);
    dispatcher.received();
    for _ in 0..3 {
        let heartbeat = dispatcher.heartbeat().await;
        assert!(heartbeat.running.is_empty(), "its lease is renewed");
        assert_eq!(heartbeat.after, None, "it does not name all that the worker holds");
    }
    end.send(()).unwrap();
    dispatcher.script().ingest = true;
    worker.stop().await;
}
