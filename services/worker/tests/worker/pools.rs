use std::collections::HashSet;

use redial_proto::{ClaimJob, JobRef, ReturnedPack};
use redial_worker::{Tool, WorkerConfig};

use crate::{
    dispatcher::{Dispatcher, Received, jobs_of},
    tools, within,
};

#[tokio::test]
async fn a_free_permit_is_used_at_once_and_a_worker_never_holds_more_jobs_than_permits() {
    let mut dispatcher = Dispatcher::start().await;
    let (gated, gate) = tools::gated("gated");
    let worker = dispatcher.worker(4, [gated]).await;
    // One pull for 4 jobs is open when the first job arrives, and stays open for the others.
    for running in 1..=4 {
        dispatcher.submit("gated").await;
        within(20, gate.until_running(running)).await;
    }
    dispatcher.submit_many("default", "gated", 20, 2).await;
    for _ in 0..20 {
        gate.open(1);
        dispatcher.report().await;
        within(20, gate.until_running(4)).await;
        let backlog = dispatcher.queue.ensure_jobs("default").await.unwrap();
        assert!(backlog.unacked <= 4, "{backlog:?}");
    }
    assert_eq!(gate.most(), 4);
    gate.open(4);
    worker.stop().await;
}

/// After a job of its own message, a worker asks for a message for each slot.
#[tokio::test]
async fn packs_for_which_no_slot_is_left_go_to_others() {
    let mut dispatcher = Dispatcher::start().await;
    let (gated, gate) = tools::gated("gated");
    let busy = dispatcher.worker(4, [gated.clone()]).await;
    dispatcher.submit("gated").await;
    gate.open(1);
    dispatcher.report().await;
    for _ in 0..4 {
        dispatcher.submit_pack("gated", 8).await;
    }
    within(5, gate.until_running(4)).await;
    let idle = dispatcher.worker(24, [gated]).await;
    // What the busy one kept would come after 30 s.
    within(20, gate.until_running(4 + 24)).await;
    gate.open(4 + 24);
    idle.stop().await;
    busy.stop().await;
}

#[tokio::test]
async fn what_does_not_fit_of_a_pack_goes_back_with_the_claim() {
    let mut dispatcher = Dispatcher::start().await;
    let (gated, gate) = tools::gated("gated");
    let worker = dispatcher.worker(3, [gated]).await;
    let jobs = dispatcher.submit_pack("gated", 10).await;
    let claim = dispatcher.claim().await;
    assert_eq!(claim.jobs.iter().map(ClaimJob::job_ref).collect::<Vec<_>>(), jobs[..3]);
    let [ReturnedPack { consumer, pack }] = &claim.returned[..] else { panic!("{claim:?}") };
    assert_eq!((consumer.as_str(), pack.tool.as_str()), ("default", "gated"));
    assert_eq!(
        pack.jobs.iter().map(|job| job.call).collect::<Vec<_>>(),
        jobs[3..].iter().map(|job| job.call).collect::<Vec<_>>()
    );
    dispatcher.stream_is_empty().await;
    // A pack of which nothing fits stays on the stream, until a slot is free.
    let more = dispatcher.submit_pack("gated", 5).await;
    gate.open(1);
    assert_eq!(dispatcher.claim().await.jobs[0].job_ref(), more[0]);
    gate.open(7);
    worker.stop().await;
}

/// It is published again at once only if something of the same claim is granted.
#[tokio::test]
async fn what_goes_back_of_a_pack_goes_with_the_claim_of_its_jobs() {
    let mut dispatcher = Dispatcher::start().await;
    let (gated, gate) = tools::gated("gated");
    // The answer to a claim has room for two of these.
    dispatcher.submit_many("default", "gated", 3, 250 * 1024).await;
    let pack = dispatcher.submit_pack("gated", 4).await;
    let worker = dispatcher.worker(4, [gated]).await;
    let gives_back = |received| match received {
        Received::Claim(claim) if !claim.returned.is_empty() => Some(claim),
        _ => None,
    };
    let claim = dispatcher.next(gives_back).await;
    assert_eq!((jobs_of(&claim).last(), claim.returned[0].pack.jobs.len()), (Some(&pack[0]), 3));
    gate.open(4);
    worker.stop().await;
}

/// Each copy of a claim would publish once more what it gives back.
#[tokio::test]
async fn only_the_first_request_of_a_claim_gives_jobs_back() {
    let mut dispatcher = Dispatcher::start().await;
    let (gated, gate) = tools::gated("gated");
    let worker = dispatcher.worker(2, [gated.clone()]).await;
    dispatcher.script().unanswered_claims = 1;
    let jobs = dispatcher.submit_pack("gated", 6).await;
    assert_eq!(dispatcher.claim().await.returned.len(), 1);
    let again = dispatcher.claim().await;
    assert_eq!((again.jobs.len(), again.returned.len()), (2, 0));
    within(20, gate.until_running(2)).await;
    // Nobody knows whether the others were published again, so the message is for whoever has slots: now, and not after 30 s.
    dispatcher.script().refused.extend(&jobs[..2]);
    let idle = dispatcher.worker(24, [gated]).await;
    within(20, gate.until_running(6)).await;
    dispatcher.stream_is_empty().await;
    gate.open(6);
    idle.stop().await;
    worker.stop().await;
}

#[tokio::test]
async fn a_job_that_cannot_be_parsed_or_whose_tool_it_does_not_have_is_discarded() {
    let mut dispatcher = Dispatcher::start().await;
    dispatcher.submit("echo_context").await;
    dispatcher.queue.put("redial.jobs.default.echo", &"no job").await.unwrap();
    dispatcher.queue.put("redial.jobs.default.echo", &serde_json::json!({"call": 1})).await.unwrap();
    dispatcher.queue.put("redial.jobs.default.echo", &serde_json::json!({"tool": "echo", "jobs": []})).await.unwrap();
    let worker = dispatcher.worker(4, [Tool::echo()]).await;
    dispatcher.stream_is_empty().await;
    let job = dispatcher.submit("echo").await;
    let claim = dispatcher.claim().await;
    assert_eq!((&claim.worker, jobs_of(&claim)), (&worker.id, vec![job]));
    assert_eq!(dispatcher.report().await.job_ref(), job);
    worker.stop().await;
    assert!(!dispatcher.received().iter().any(|received| matches!(received, Received::Claim(_))));
}

/// From a pool in which all its tools wait it pulls nothing: the consumer would be that of others, and their jobs would be lost.
#[tokio::test]
async fn a_worker_pulls_from_the_consumers_that_its_last_registration_names() {
    let mut dispatcher = Dispatcher::start().await;
    dispatcher.script().waiting = [("echo".to_owned(), vec!["another identity".to_owned()])].into();
    let worker = dispatcher.worker(4, [Tool::echo()]).await;
    let waits = dispatcher.submit("echo").await;
    // Accepted, it registers again, and gets what waited.
    dispatcher.script().waiting.clear();
    dispatcher.script().heartbeat.register = true;
    assert_eq!(dispatcher.report().await.job_ref(), waits);
    // A later registration moves it.
    dispatcher.script().consumers = [("default".to_owned(), "default+2".to_owned())].into();
    dispatcher.script().heartbeat.register = true;
    let there = dispatcher.submit_many("default+2", "echo", 1, 2).await;
    assert_eq!(dispatcher.report().await.job_ref(), there[0]);
    worker.stop().await;
}

#[tokio::test]
async fn a_call_whose_program_must_wait_is_not_claimed_and_delays_no_other() {
    let mut dispatcher = Dispatcher::start().await;
    let (program, gate) = tools::gated("program");
    let program = program.pool("commands").starts_programs();
    let two_programs = |config: &mut WorkerConfig| config.command_slots = 2;
    let worker = dispatcher.worker_with(two_programs, [program.clone(), Tool::echo()]).await;
    let jobs: HashSet<JobRef> = dispatcher.submit_many("commands", "program", 5, 2).await.into_iter().collect();
    within(20, gate.until_running(2)).await;
    dispatcher.submit_many("default", "echo", 100, 2).await;
    let (mut claimed, mut reports) = (HashSet::new(), 0);
    while reports < 100 {
        let seen = dispatcher.next(|received| {
            match received {
                Received::Claim(claim) => claimed.extend(jobs_of(&claim)),
                Received::Report(_) => reports += 1,
                _ => {}
            }
            Some(())
        });
        seen.await;
    }
    let running: HashSet<JobRef> = claimed.intersection(&jobs).copied().collect();
    assert_eq!((running.len(), gate.most()), (2, 2));
    let backlog = dispatcher.queue.ensure_jobs("commands").await.unwrap();
    assert_eq!(backlog.unacked, 0, "a job waits in the worker, where no other can take it");
    // What waits is for others as soon as it stops; the dispatchers publish again what it releases.
    worker.shutdown.cancel();
    assert!(dispatcher.released().await.iter().all(|job| running.contains(job)));
    worker.ended().await;
    assert!(!dispatcher.received().iter().any(|received| matches!(received, Received::Claim(_))));
    gate.open(3);
    let other = dispatcher.worker_with(two_programs, [program]).await;
    let mut others = HashSet::new();
    while others.len() < 3 {
        others.insert(dispatcher.report().await.job_ref());
    }
    assert!(others.is_disjoint(&running) && others.is_subset(&jobs));
    other.stop().await;
}
