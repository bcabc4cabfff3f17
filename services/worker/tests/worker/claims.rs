use std::time::Duration;

use redial_worker::{Tool, Worker, WorkerConfig};

use crate::{
    dispatcher::{Dispatcher, Received, RunningWorker},
    tools,
};

#[tokio::test]
async fn a_worker_that_never_connected_can_be_stopped() {
    let config = WorkerConfig::new("nats://127.0.0.1:1", "unreachable");
    RunningWorker::start(Worker::new(config).add(Tool::echo())).stop().await;
}

#[tokio::test]
async fn only_a_granted_job_runs_and_is_reported() {
    let mut dispatcher = Dispatcher::start().await;
    let refused = dispatcher.submit("echo").await;
    dispatcher.script().refused.insert(refused);
    let worker = dispatcher.worker(4, [tools::echo_context(), Tool::echo()]).await;
    let job = dispatcher.submit("echo_context").await;
    let report = dispatcher.report().await;
    assert_eq!(report.job_ref(), job, "the refused job ran");
    let output: serde_json::Value = serde_json::from_str(report.output.unwrap().get()).unwrap();
    let wanted = serde_json::json!({
        "arguments": {"call": job.call},
        "attempt": 1,
        "key": "key",
        "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "timeout_ms": 60_000,
    });
    assert_eq!(output, wanted);
    dispatcher.stream_is_empty().await;
    worker.stop().await;
}

/// After a restart of nats-server thousands of workers connect again at the same moment.
#[tokio::test]
async fn a_worker_that_connects_again_sends_a_heartbeat_pulls_again_and_registers_only_if_it_is_asked_to() {
    let mut dispatcher = Dispatcher::start().await;
    let worker = dispatcher.worker(4, [Tool::echo()]).await;
    for request_registration in [false, true] {
        // The registration of before is over, also one that was sent twice on a busy machine.
        let job = dispatcher.submit("echo").await;
        while dispatcher.report().await.job_ref() != job {}
        dispatcher.received();
        dispatcher.script().heartbeat.register = request_registration;
        Box::pin(dispatcher.restart_nats()).await;
        let job = dispatcher.submit("echo").await;
        let (mut heartbeats, mut registrations, mut reported) = (0, 0, false);
        let seen = dispatcher.next(|received| {
            match received {
                Received::Heartbeat(_) => heartbeats += 1,
                Received::Registration(_) => registrations += 1,
                Received::Report(report) => reported |= report.job_ref() == job,
                _ => {}
            }
            // A registration that nobody asked for would come before the report.
            (reported && heartbeats > 0 && (registrations > 0) == request_registration).then_some(())
        });
        seen.await;
    }
    worker.stop().await;
}

#[tokio::test]
async fn an_unanswered_claim_is_repeated_in_copies_with_the_same_id() {
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
    assert!(!dispatcher.received().iter().any(|received| matches!(received, Received::Report(_))), "it ran twice");
}

/// A copy of the first request may be granted later, when the call is ready again; but not after its time.
#[tokio::test]
async fn what_a_repeated_claim_was_not_granted_is_released_once_its_time_is_over() {
    let mut dispatcher = Dispatcher::start().await;
    let refused = dispatcher.submit("echo").await;
    dispatcher.script().refused.insert(refused);
    dispatcher.script().unanswered_claims = 1;
    dispatcher.script().lease_ms = 3_000;
    // The clocks of the two machines need not agree.
    dispatcher.script().clock_ahead = Duration::from_hours(24 * 365);
    let worker = dispatcher.worker(4, [Tool::echo()]).await;
    let claim = dispatcher.claim().await;
    assert!(claim.not_after > dispatcher.script().now() - Duration::from_hours(1), "{claim:?}");
    let released =
        dispatcher.next(|received| if let Received::Release(release) = received { Some(release) } else { None }).await;
    assert_eq!(released.jobs, [refused.granted_to(claim.claim)]);
    let now = dispatcher.script().now();
    assert!(now > claim.not_after, "a copy may still be granted");
    worker.stop().await;
}

/// Postgres hangs: a claim would be granted when its worker may be gone.
#[tokio::test]
async fn a_worker_without_answers_takes_no_jobs_and_its_claims_end() {
    let mut dispatcher = Dispatcher::start().await;
    dispatcher.script().lease_ms = 6_000;
    let worker = dispatcher.worker(4, [Tool::echo()]).await;
    dispatcher.heartbeat().await;
    (dispatcher.script().ignores_heartbeats, dispatcher.script().unanswered_claims) = (true, usize::MAX);
    let last_answer = dispatcher.script().now();
    dispatcher.submit("echo").await;
    let claim = dispatcher.claim().await;
    assert!(claim.not_after <= last_answer + Duration::from_secs(4), "two thirds of a lease: {claim:?}");
    // It is asked again until then, under the same id; then no other claim follows.
    let released = dispatcher.next(|received| match received {
        Received::Release(release) => Some(release),
        Received::Claim(again) => {
            assert_eq!(again.claim, claim.claim);
            None
        }
        _ => None,
    });
    assert_eq!(released.await.jobs[0].claim, claim.claim);
    dispatcher.received();
    for _ in 0..12 {
        dispatcher.heartbeat().await;
    }
    assert!(!dispatcher.received().iter().any(|received| matches!(received, Received::Claim(_))));
    (dispatcher.script().ignores_heartbeats, dispatcher.script().unanswered_claims) = (false, 0);
    assert_eq!(dispatcher.report().await.call, claim.jobs[0].call, "the job is back on the stream");
    worker.stop().await;
}

#[tokio::test]
async fn the_reply_to_a_claim_fits_into_one_message() {
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
async fn fast_calls_are_claimed_in_batches() {
    const CALLS: usize = 1_000;
    let mut dispatcher = Dispatcher::start().await;
    dispatcher.submit_many("default", "echo", CALLS, 2).await;
    let worker = dispatcher.worker(256, [Tool::echo()]).await;
    let (mut reports, mut claims) = (0, 0);
    while reports < CALLS {
        let counted = dispatcher.next(|received| {
            match received {
                Received::Report(_) => reports += 1,
                Received::Claim(_) => claims += 1,
                _ => return None,
            }
            Some(())
        });
        counted.await;
    }
    assert!(claims < CALLS / 4, "{claims} claims for {CALLS} calls");
    worker.stop().await;
}
