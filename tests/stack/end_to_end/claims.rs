//! An attempt runs only if Postgres grants its claim; any other message on the job stream is harmless.

use chrono::{DateTime, TimeDelta, Utc};
use futures_util::future::join_all;
use redial_proto::{
    CallState, ClaimId, GrantRef, JobRef, ReleaseReply, ReleaseRequest, ToolEffect, ToolSpec, subjects::ControlVerb,
};
use redial_test_stack::{Stack, until};
use serde_json::json;

use super::{by_hand::Hand, fixture::ANSWER};

/// A worker without an answer sends its claim again, so the copies are answered together once the database is available.
#[tokio::test]
async fn every_copy_of_a_claim_gets_the_grant() {
    let stack = Stack::start().await;
    let mut worker = Hand::new(&stack, vec![ToolSpec::named("read")]).await;
    let call = stack.call("read", json!({})).await;
    worker.job().await;
    let mut lock = stack.db().begin().await.unwrap();
    sqlx::query("SELECT FROM calls FOR UPDATE").execute(&mut *lock).await.unwrap();
    let claim = ClaimId::generate();
    let copies = join_all((0..12).map(|_| worker.claim_as(claim, call, 1)));
    let unlock = async {
        stack.waits_for_lock().await;
        stack.queue().health().await.unwrap();
        lock.rollback().await.unwrap();
    };
    let (grants, ()) = tokio::join!(copies, unlock);
    let counts: Vec<usize> = grants.iter().map(Vec::len).collect();
    assert_eq!(counts, [1; 12]);
    worker.report(call, 1, Ok("1")).await;
    stack.finish().await;
}

/// A worker that gets no answer sends copies of its claim. One that is late may be granted after another was refused, because
/// the call was released in between: then nobody runs the attempt, and the worker's heartbeats prove it. Of an unsafe tool they do not
/// prove that it never began.
#[tokio::test]
async fn a_grant_that_its_worker_never_learned_of_burns_no_attempt() {
    let mut stack = Stack::start().await;
    // They are claimed without their jobs.
    stack.leaves_jobs();
    stack.workers_will_die();
    let tools = ToolEffect::ALL.map(|effect| ToolSpec { effect, ..ToolSpec::named(effect.as_str()) });
    let mut worker = Hand::new(&stack, tools.to_vec()).await;
    for effect in ToolEffect::ALL {
        let call = stack.call(effect.as_str(), json!({})).await;
        let (first, late) = (ClaimId::generate(), ClaimId::generate());
        assert_eq!(worker.claim_as(first, call, 1).await.len(), 1);
        assert!(worker.claim_as(late, call, 1).await.is_empty(), "another claim holds it");
        assert_eq!(worker.release(first, call, 1).await, 1);
        assert_eq!(worker.claim_as(late, call, 1).await.len(), 1);
        let state = until("the attempt is given back, or has ended", async || {
            worker.beat().await;
            Some(stack.get(call).await.state).filter(|state| *state != CallState::Running)
        })
        .await;
        if effect == ToolEffect::Unsafe {
            assert_eq!(state, CallState::Unknown);
            continue;
        }
        assert_eq!(state, CallState::Ready, "{effect}");
        assert_eq!(worker.claim(call, 1).await.len(), 1);
        worker.report(call, 1, Ok("1")).await;
        let view = stack.ended(call).await;
        assert_eq!((view.state, view.attempts), (CallState::Succeeded, 1), "{effect}");
    }
    stack.finish().await;
}

/// With attempts and without, which are two statements.
#[tokio::test]
async fn a_heartbeat_is_written_after_a_time_that_can_be_true() {
    let stack = Stack::start().await;
    let mut worker = Hand::new(&stack, vec![ToolSpec::named("pay")]).await;
    let call = stack.call("pay", json!({})).await;
    worker.granted().await;
    let heard = async || stack.value::<Option<DateTime<Utc>>>("SELECT heard_after FROM workers").await;
    for running in [vec![JobRef { call, attempt: 1 }], Vec::new()] {
        let at = worker.beat_with(running.clone(), None).await.at;
        assert!(at.is_some());
        for (after, proven, what) in [
            (at, at, "an answer"),
            (None, at, "nothing new"),
            (at.map(|at| at + TimeDelta::days(1)), None, "tomorrow"),
            (at, at, "an answer"),
            (Some(DateTime::<Utc>::MIN_UTC), at, "what no database holds"),
        ] {
            assert!(worker.beat_with(running.clone(), after).await.at.is_some(), "{what}");
            assert_eq!(heard().await, proven, "{what}");
        }
    }
    worker.report(call, 1, Ok("1")).await;
    stack.ended(call).await;
    // A lease that ended before is looked at after the worker's end, perhaps: an outage had kept the dispatchers from it.
    let proven = heard().await;
    worker.say_goodbye().await;
    assert_eq!((proven.is_some(), heard().await), (true, proven));
    stack.finish().await;
}

#[tokio::test]
async fn a_released_attempt_is_not_used_up() {
    let stack = Stack::start().await;
    let mut worker = Hand::new(&stack, vec![ToolSpec::named("read")]).await;
    let stranger = Hand::new(&stack, Vec::new()).await;
    let call = stack.call("read", json!({})).await;
    let (first, second) = (ClaimId::generate(), ClaimId::generate());
    worker.job().await;
    assert_eq!(worker.claim_as(first, call, 1).await.len(), 1);
    assert_eq!(stranger.release(first, call, 1).await, 0, "not its to give back");
    assert_eq!(worker.release(first, call, 1).await, 1);
    let job = worker.job().await;
    assert_eq!((job.call, job.attempt), (call, 1), "published again under the same number");
    assert_eq!(worker.claim_as(second, call, 1).await.len(), 1);
    // The first release request timed out and was sent again; now it arrives late.
    assert_eq!(worker.release(first, call, 1).await, 0, "the later grant is another one");
    assert_eq!(stack.get(call).await.state, CallState::Running);
    assert_eq!(worker.release(second, call, 1).await, 1);
    assert!(worker.claim_as(second, call, 1).await.is_empty(), "a copy of a claim that was released");
    worker.job().await;
    assert_eq!(worker.claim(call, 1).await.len(), 1);
    worker.report(call, 1, Ok("1")).await;
    assert_eq!(stack.output(call).await, "1");
    let evidence = stack.finish().await;
    assert_eq!(evidence.calls[&call].attempt, 1);
}

/// A worker knows ids of calls that it was never given, from events or from its own past.
#[tokio::test]
async fn a_release_changes_no_call_of_a_tool_that_its_worker_does_not_serve() {
    let stack = Stack::start().await;
    let mut worker = Hand::new(&stack, vec![ToolSpec::named("read")]).await;
    let stranger = Hand::new(&stack, vec![ToolSpec::named("other")]).await;
    let call = stack.call("read", json!({})).await;
    let claim = ClaimId::generate();
    let claimed = format!("calls WHERE claim_id = '{claim}'");
    assert_eq!(stranger.release(claim, call, 1).await, 0);
    assert_eq!(stack.count(&claimed).await, 0);
    assert_eq!(worker.release(claim, call, 1).await, 0);
    assert_eq!(stack.count(&claimed).await, 1, "its own claim may still be under way");
    assert!(worker.claim_as(claim, call, 1).await.is_empty());
    let many = vec![GrantRef { call, attempt: 1, claim }; 257];
    let request = ReleaseRequest { worker: stranger.id.clone(), jobs: many };
    let subject = stranger.subject(ControlVerb::Release);
    let refused = stack.queue().request::<_, ReleaseReply>(&subject, &request, ANSWER);
    let error = refused.await.unwrap_err().to_string();
    assert!(error.contains("jobs holds 257 attempts; allowed: 256"), "{error}");
    worker.granted().await;
    worker.report(call, 1, Ok("1")).await;
    stack.finish().await;
}
