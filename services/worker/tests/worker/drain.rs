use std::time::Duration;

use redial_proto::{ErrorClass, ToolEffect};
use redial_worker::{CancellationToken, Tool, WorkerConfig};

use crate::{
    dispatcher::{Dispatcher, Received},
    tools::{self, Event, StuckCall},
    within,
};

#[tokio::test]
async fn a_tool_that_finishes_within_the_grace_period_is_reported() {
    let mut dispatcher = Dispatcher::start().await;
    let (gated, gate) = tools::gated("gated");
    // It ends as soon as the tool does.
    let patient = |config: &mut WorkerConfig| (config.slots, config.drain_grace) = (1, Duration::from_secs(20));
    let worker = dispatcher.worker_with(patient, [gated]).await;
    let jobs = dispatcher.submit_many("default", "gated", 2, 2).await;
    within(5, gate.until_running(1)).await;
    worker.shutdown.cancel();
    dispatcher
        .next(|received| matches!(received, Received::Heartbeat(heartbeat) if heartbeat.draining).then_some(()))
        .await;
    gate.open(2);
    let report = dispatcher.report().await;
    assert!(report.output.is_some() && jobs.contains(&report.job_ref()));
    worker.ended().await;
    let received = dispatcher.received();
    let last = received.iter().any(|received| matches!(received, Received::Heartbeat(beat) if beat.slots == 0));
    assert!(last, "the worker did not say that it has ended");
    let others = received.iter().filter(|received| !matches!(received, Received::Heartbeat(_)));
    assert_eq!(others.count(), 0, "the worker released or claimed something");
    // Another worker takes the other job.
    let (gated, gate) = tools::gated("gated");
    gate.open(1);
    let other = dispatcher.worker(1, [gated]).await;
    assert_ne!(within(5, dispatcher.report()).await.job_ref(), report.job_ref());
    other.stop().await;
}

#[tokio::test]
async fn a_stopped_attempt_that_may_run_twice_is_released_and_an_unsafe_one_reported_as_lost() {
    for effect in [ToolEffect::Read, ToolEffect::Idempotent, ToolEffect::Keyed, ToolEffect::Unsafe] {
        let mut dispatcher = Dispatcher::start().await;
        dispatcher.script().effect = effect;
        let StuckCall { worker, job, mut events } = tools::start_stuck(&mut dispatcher).await;
        worker.shutdown.cancel();
        if effect == ToolEffect::Unsafe {
            let report = dispatcher.report().await;
            let error = report.error.as_ref().unwrap();
            assert_eq!((report.job_ref(), error.class, error.effect_possible), (job, ErrorClass::Lost, true));
        } else {
            assert_eq!(dispatcher.released().await, [job]);
            assert_eq!(events.try_recv(), Ok(Event::Dropped), "the attempt was released while the tool still ran");
        }
        worker.ended().await;
        let others = dispatcher.received();
        let others = others.iter().filter(|received| matches!(received, Received::Report(_) | Received::Release(_)));
        assert_eq!(others.count(), 0, "{effect:?}");
    }
}

#[tokio::test]
async fn an_unanswered_claim_is_released() {
    let mut dispatcher = Dispatcher::start().await;
    dispatcher.script().unanswered_claims = usize::MAX;
    let worker = dispatcher.worker(4, [Tool::echo()]).await;
    let jobs = dispatcher.submit_pack("echo", 3).await;
    dispatcher.claim().await;
    worker.shutdown.cancel();
    assert_eq!(dispatcher.released().await, jobs);
    worker.ended().await;
    // The jobs are back on the stream, and another worker takes them.
    dispatcher.script().unanswered_claims = 0;
    let other = dispatcher.worker(4, [Tool::echo()]).await;
    for _ in &jobs {
        assert!(jobs.contains(&dispatcher.report().await.job_ref()));
    }
    other.stop().await;
}

#[tokio::test]
async fn the_kill_token_ends_the_grace_period() {
    let mut dispatcher = Dispatcher::start().await;
    let (stuck, mut events) = tools::stuck();
    let kill = CancellationToken::new();
    let patient =
        |config: &mut WorkerConfig| (config.drain_grace, config.kill) = (Duration::from_hours(1), kill.clone());
    let worker = dispatcher.worker_with(patient, [stuck]).await;
    dispatcher.submit("stuck").await;
    assert_eq!(within(5, events.recv()).await, Some(Event::Started));
    worker.shutdown.cancel();
    kill.cancel();
    worker.ended().await;
}
