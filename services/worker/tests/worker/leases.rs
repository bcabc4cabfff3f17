use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use redial_proto::{ClaimId, ControlMessage, ErrorClass, ToolEffect};
use redial_worker::Tool;
use serde_json::{Map, Value};

use crate::{
    dispatcher::{Dispatcher, Received, running},
    tools::{self, Event, StuckCall},
    within,
};

/// A lease of 12 s, with a heartbeat every 4 s: it lasts, although the machine stands still for some seconds.
const LEASE_MS: u64 = 12_000;

#[tokio::test]
async fn heartbeats_renew_running_calls_and_continue_while_idle() {
    let mut dispatcher = Dispatcher::start().await;
    dispatcher.script().lease_ms = LEASE_MS;
    let (stuck, mut events) = tools::stuck();
    let worker = dispatcher.worker(4, [stuck]).await;
    assert!(dispatcher.heartbeat().await.running.is_empty());
    let job = dispatcher.submit("stuck").await;
    assert_eq!(within(20, events.recv()).await, Some(Event::Started));
    dispatcher.received();
    let granted = dispatcher.grant_of(job);
    // Each heartbeat renews two thirds of the lease.
    for _ in 0..4 {
        let heartbeat = dispatcher.heartbeat().await;
        assert_eq!((&heartbeat.worker, heartbeat.slots, heartbeat.draining), (&worker.id, 4, false));
        assert_eq!(heartbeat.running, [granted]);
    }
    assert!(events.try_recv().is_err(), "the tool was stopped");
    worker.stop().await;
}

#[tokio::test]
async fn a_lost_lease_stops_the_tool_and_nothing_is_reported() {
    let mut dispatcher = Dispatcher::start().await;
    dispatcher.script().lease_ms = LEASE_MS;
    let StuckCall { worker, job, mut events } = tools::start_stuck(&mut dispatcher).await;
    // Of another grant of the same attempt: it was released, and granted again.
    let (other, granted) = (job.granted_to(ClaimId::generate()), dispatcher.grant_of(job));
    dispatcher.script().heartbeat.lost = vec![other];
    dispatcher.received();
    for _ in 0..2 {
        assert_eq!(dispatcher.heartbeat().await.running, [granted]);
    }
    assert!(events.try_recv().is_err(), "the answer to an older heartbeat stopped a newer grant");
    dispatcher.script().heartbeat.lost = vec![granted];
    assert_eq!(within(20, events.recv()).await, Some(Event::Dropped));
    // Those from before the call are idle, too.
    let mut received = dispatcher.received();
    let idle = dispatcher.next(|next| {
        let is_idle = matches!(&next, Received::Heartbeat(heartbeat) if heartbeat.running.is_empty());
        received.push(next);
        is_idle.then_some(())
    });
    idle.await;
    worker.stop().await;
    received.extend(dispatcher.received());
    // A release would say that the lease had expired, and not that a reply stopped the tool.
    let told = received.iter().filter(|received| matches!(received, Received::Report(_) | Received::Release(_)));
    assert_eq!(told.count(), 0, "{received:?}");
}

/// The dispatchers were started again with another setting. The lease of before would end later than this waits.
#[tokio::test]
async fn a_lease_that_changed_is_that_of_the_answer_to_a_heartbeat() {
    let mut dispatcher = Dispatcher::start().await;
    dispatcher.script().lease_ms = 45_000;
    let StuckCall { worker, mut events, .. } = tools::start_stuck(&mut dispatcher).await;
    dispatcher.script().lease_ms = 600;
    dispatcher.received();
    // One comes with the lease of before, another at once.
    for _ in 0..2 {
        dispatcher.heartbeat().await;
    }
    dispatcher.script().ignores_heartbeats = true;
    assert_eq!(within(20, events.recv()).await, Some(Event::Dropped));
    worker.stop().await;
}

/// If one of two dispatchers hangs, a retry must not depend on which one gets it.
#[tokio::test]
async fn a_failed_heartbeat_is_repeated_in_copies() {
    let mut dispatcher = Dispatcher::start().await;
    dispatcher.script().lease_ms = 6000;
    let StuckCall { worker, mut events, .. } = tools::start_stuck(&mut dispatcher).await;
    dispatcher.script().ignores_heartbeats = true;
    dispatcher.received();
    // One, three copies and five.
    let nine = async {
        for _ in 0..9 {
            dispatcher.heartbeat().await;
        }
    };
    // One at a time would come after the lease.
    within(60, nine).await;
    assert!(events.try_recv().is_err(), "the lease had not ended");
    worker.stop().await;
}

#[tokio::test]
async fn without_renewals_the_lease_expires_by_the_workers_clock() {
    let mut dispatcher = Dispatcher::start().await;
    dispatcher.script().lease_ms = 3000;
    dispatcher.script().ignores_heartbeats = true;
    let StuckCall { worker, mut events, .. } = tools::start_stuck(&mut dispatcher).await;
    assert_eq!(within(20, events.recv()).await, Some(Event::Dropped));
    worker.stop().await;
    assert!(!dispatcher.received().iter().any(|received| matches!(received, Received::Report(_))));
}

/// Nobody else is ever granted its attempt, so to stop it would only make it unknown what it did.
#[tokio::test]
async fn an_unsafe_tool_goes_on_after_its_lease_and_is_renewed_later() {
    let mut dispatcher = Dispatcher::start().await;
    dispatcher.script().lease_ms = 600;
    dispatcher.script().effect = ToolEffect::Unsafe;
    let (gated, gate) = tools::gated("gated");
    let worker = dispatcher.worker(4, [gated]).await;
    let job = dispatcher.submit("gated").await;
    within(20, gate.until_running(1)).await;
    dispatcher.script().ignores_heartbeats = true;
    dispatcher.received();
    let silent = dispatcher.script().now() + Duration::from_millis(2 * 600);
    while dispatcher.script().now() < silent {
        assert_eq!(running(&dispatcher.heartbeat().await), [job]);
    }
    dispatcher.script().ignores_heartbeats = false;
    for _ in 0..20 {
        assert_eq!(running(&dispatcher.heartbeat().await), [job]);
    }
    gate.open(1);
    assert!(dispatcher.report().await.output.is_some(), "it was not stopped");
    worker.stop().await;
}

/// Somebody else may get its call once its lease has ended: that it is not lost yet does not renew it.
#[tokio::test]
async fn a_lease_whose_call_is_locked_ends_and_no_other_does() {
    let mut dispatcher = Dispatcher::start().await;
    dispatcher.script().lease_ms = 3_000;
    let (gated, gate) = tools::gated("gated");
    let worker = dispatcher.worker(4, [gated]).await;
    let jobs = dispatcher.submit_many("default", "gated", 2, 2).await;
    within(20, gate.until_running(2)).await;
    let locked = dispatcher.grant_of(jobs[0]);
    dispatcher.script().heartbeat.locked = vec![locked];
    assert_eq!(dispatcher.released().await, [jobs[0]], "it is given back, and nothing is reported");
    gate.open(2);
    assert_eq!(dispatcher.report().await.job_ref(), jobs[1]);
    worker.stop().await;
}

#[tokio::test]
async fn a_cancelled_call_is_stopped_and_reported() {
    let mut dispatcher = Dispatcher::start().await;
    dispatcher.script().lease_ms = LEASE_MS;
    let (stuck, mut events) = tools::stuck();
    let worker = dispatcher.worker(4, [stuck]).await;
    for by_control_message in [true, false] {
        let job = dispatcher.submit("stuck").await;
        assert_eq!(within(20, events.recv()).await, Some(Event::Started));
        if by_control_message {
            let message = ControlMessage { cancelled: vec![dispatcher.grant_of(job)], ..ControlMessage::default() };
            dispatcher.send_control(&worker.id, &message).await;
        } else {
            let granted = dispatcher.grant_of(job);
            dispatcher.script().heartbeat.cancelled = vec![granted];
        }
        assert_eq!(within(20, events.recv()).await, Some(Event::Dropped));
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
    assert_eq!(within(20, events.recv()).await, Some(Event::Started));
    assert_eq!(within(20, events.recv()).await, Some(Event::Dropped));
    worker.stop().await;
}

/// Its future can be neither polled nor dropped, and heartbeats would renew its lease for as long as it blocks.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_tool_that_blocks_its_thread_is_reported_as_a_timeout_and_not_renewed() {
    let mut dispatcher = Dispatcher::start().await;
    (dispatcher.script().timeout_ms, dispatcher.script().lease_ms) = (100, 20_000);
    dispatcher.script().withholds_records = true;
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
        while running(&dispatcher.heartbeat().await) != [job] {}
        dispatcher.report().await
    };
    let report = within(60, renewed).await;
    assert_eq!((report.job_ref(), report.error.unwrap().class), (job, ErrorClass::Timeout));
    assert!(report.duration_ms >= 10_000, "{} ms", report.duration_ms);
    dispatcher.received();
    for _ in 0..2 {
        assert!(dispatcher.heartbeat().await.running.is_empty(), "its lease is renewed");
    }
    end.send(()).unwrap();
    dispatcher.script().withholds_records = false;
    worker.stop().await;
}
