use redial_proto::{Effect, ErrorClass, GrantRef};
use redial_worker::Tool;

use crate::{
    dispatcher::{Dispatcher, Said},
    tools::{self, Event},
    within,
};

#[tokio::test]
async fn what_finishes_within_the_grace_is_reported() {
    let mut dispatcher = Dispatcher::start().await;
    let (gated, gate) = tools::gated("gated");
    let worker = dispatcher.worker(1, [gated]).await;
    let jobs = dispatcher.submit_many("default", "gated", 2, 2).await;
    within(5, gate.until_running(1)).await;
    worker.shutdown.cancel();
    dispatcher.next(|said| matches!(said, Said::Renewed(renewal) if renewal.draining).then_some(())).await;
    gate.open(2);
    let report = dispatcher.report().await;
    assert!(report.output.is_some() && jobs.contains(&report.job_ref()));
    worker.ended().await;
    assert!(dispatcher.said().is_empty(), "nothing is given back, nothing more is claimed");
    // The other job waits for another worker, now.
    let (gated, gate) = tools::gated("gated");
    gate.open(1);
    let other = dispatcher.worker(1, [gated]).await;
    assert_ne!(within(5, dispatcher.report()).await.job_ref(), report.job_ref());
    other.stop().await;
}

#[tokio::test]
async fn what_may_run_twice_is_given_back() {
    for effect in [Effect::Read, Effect::Idempotent, Effect::Keyed] {
        let mut dispatcher = Dispatcher::start().await;
        dispatcher.script().effect = effect;
        let (stuck, mut events) = tools::stuck();
        let worker = dispatcher.worker(4, [stuck]).await;
        let job = dispatcher.submit("stuck").await;
        assert_eq!(within(5, events.recv()).await, Some(Event::Started));
        worker.shutdown.cancel();
        let released = dispatcher.next(|said| if let Said::Released(released) = said { Some(released) } else { None });
        assert_eq!(released.await.jobs.iter().map(GrantRef::job_ref).collect::<Vec<_>>(), [job]);
        assert_eq!(events.try_recv(), Ok(Event::Gone), "given back while the tool still ran");
        worker.ended().await;
        assert!(!dispatcher.said().iter().any(|said| matches!(said, Said::Reported(_))));
    }
}

#[tokio::test]
async fn what_must_not_run_twice_is_reported_as_lost() {
    let mut dispatcher = Dispatcher::start().await;
    dispatcher.script().effect = Effect::Unsafe;
    let (stuck, mut events) = tools::stuck();
    let worker = dispatcher.worker(4, [stuck]).await;
    let job = dispatcher.submit("stuck").await;
    assert_eq!(within(5, events.recv()).await, Some(Event::Started));
    worker.shutdown.cancel();
    let report = dispatcher.report().await;
    let error = report.error.as_ref().unwrap();
    assert_eq!((report.job_ref(), error.class, error.effect_possible), (job, ErrorClass::Lost, true));
    worker.ended().await;
    assert!(!dispatcher.said().iter().any(|said| matches!(said, Said::Released(_))));
}

#[tokio::test]
async fn a_claim_that_nobody_answers_is_given_back() {
    let mut dispatcher = Dispatcher::start().await;
    dispatcher.script().unanswered_claims = usize::MAX;
    let worker = dispatcher.worker(4, [Tool::echo()]).await;
    let job = dispatcher.submit("echo").await;
    dispatcher.claim().await;
    worker.shutdown.cancel();
    let released = dispatcher.next(|said| if let Said::Released(released) = said { Some(released) } else { None });
    assert_eq!(released.await.jobs.iter().map(GrantRef::job_ref).collect::<Vec<_>>(), [job]);
    worker.ended().await;
    // Its message is back on the stream for another worker.
    dispatcher.script().unanswered_claims = 0;
    let other = dispatcher.worker(4, [Tool::echo()]).await;
    assert_eq!(within(5, dispatcher.report()).await.job_ref(), job);
    other.stop().await;
}

#[tokio::test]
async fn a_second_signal_ends_the_grace() {
    let mut dispatcher = Dispatcher::start().await;
    let (stuck, mut events) = tools::stuck();
    let kill = redial_worker::CancellationToken::new();
    let worker = dispatcher
        .worker_with(
            |config| {
                config.drain_grace = std::time::Duration::from_secs(3600);
                config.kill = kill.clone();
            },
            [stuck],
        )
        .await;
    dispatcher.submit("stuck").await;
    assert_eq!(within(5, events.recv()).await, Some(Event::Started));
    worker.shutdown.cancel();
    kill.cancel();
    within(8, worker.ended()).await;
}
