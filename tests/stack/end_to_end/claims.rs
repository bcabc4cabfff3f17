//! An attempt runs only if Postgres grants its claim; any other message on the job stream is harmless.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use futures_util::future::join_all;
use redial_proto::{
    CallId, CallState, ClaimId, ClaimReply, ErrorClass, GrantRef, ReleaseReply, ReleaseRequest, ToolEffect, ToolSpec,
    subjects::ControlVerb,
};
use redial_test_stack::{Stack, until};
use serde_json::json;

use super::{by_hand::Hand, fixture::ANSWER};

/// Nothing renews the leases here.
const LEASE: Duration = Duration::from_secs(30);

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

/// A copy of a claim may wait in a dispatcher, or for the end of an outage, until its worker is gone: then nobody would run the attempt,
/// and an unsafe call would end `unknown` though it never began.
#[tokio::test]
async fn a_claim_is_granted_until_its_time_and_answered_again_afterwards() {
    let stack = Stack::start_leasing(LEASE).await;
    let mut worker = Hand::new(&stack, vec![ToolSpec::named("pay")]).await;
    let call = stack.call("pay", json!({})).await;
    worker.job().await;
    let (late, claim) = (ClaimId::generate(), ClaimId::generate());
    let now = async || stack.value::<DateTime<Utc>>("SELECT clock_timestamp()").await;
    assert!(worker.claim_until(now().await, late, call, 1).await.is_empty(), "its time was over");
    assert_eq!((stack.get(call).await.state, worker.beat().await.lost.len()), (CallState::Ready, 0));
    let until = now().await + TimeDelta::seconds(60);
    assert_eq!(worker.claim_until(until, claim, call, 1).await.len(), 1);
    assert_eq!(worker.claim_until(now().await, claim, call, 1).await.len(), 1, "it was granted before");
    let request = json!({
        "claim": claim, "worker": worker.id, "not_after": "+262142-12-31T23:59:59Z",
        "jobs": [{"call": call, "attempt": 1, "tool": "pay"}],
    });
    let refused = stack.queue().request::<_, ClaimReply>(&worker.subject(ControlVerb::Claim), &request, ANSWER).await;
    let error = refused.unwrap_err().to_string();
    assert!(error.contains("a time in the years 1970..=9999 is needed"), "{error}");
    worker.report(call, 1, Ok("1")).await;
    stack.finish().await;
}

/// Postgres hangs, and answers when the worker is gone: nothing may be granted to it then.
#[tokio::test]
async fn a_claim_that_waited_for_the_database_is_not_granted_after_its_time() {
    let stack = Stack::start_leasing(LEASE).await;
    let mut worker = Hand::new(&stack, vec![ToolSpec::named("pay")]).await;
    let call = stack.call("pay", json!({})).await;
    worker.job().await;
    let mut lock = stack.db().begin().await.unwrap();
    sqlx::query("LOCK TABLE calls IN ACCESS EXCLUSIVE MODE").execute(&mut *lock).await.unwrap();
    let until = stack.value::<DateTime<Utc>>("SELECT clock_timestamp() + interval '500 ms'").await;
    let unlock = async {
        stack.waits_for_lock().await;
        stack.holds("its time is over", &format!("SELECT clock_timestamp() > '{until}'")).await;
        lock.rollback().await.unwrap();
    };
    let (granted, ()) = tokio::join!(worker.claim_until(until, ClaimId::generate(), call, 1), unlock);
    assert!(granted.is_empty());
    assert_eq!(worker.claim(call, 1).await.len(), 1, "it is still free");
    worker.report(call, 1, Ok("1")).await;
    stack.finish().await;
}

/// Makes the database forget everything of a call since it was submitted, as a failover does to the last commits.
async fn forget_grant(stack: &Stack, call: CallId) {
    let forget = format!(
        "UPDATE calls SET state = 'ready', attempt = 0, claim_id = NULL, worker = NULL, started_at = NULL, lease_until = NULL,
                wake_at = deadline_at
         WHERE id = '{call}'"
    );
    stack.execute(&forget).await;
}

#[tokio::test]
async fn a_grant_that_the_database_lost_is_taken_back_from_a_heartbeat_or_a_report() {
    let stack = Stack::start_leasing(LEASE).await;
    let mut worker = Hand::new(&stack, vec![ToolSpec::named("pay")]).await;
    let mut rogue = Hand::of_identity(&stack, "rogue").await;
    rogue.register(vec![ToolSpec::named("other")]).await;
    for by_report in [false, true] {
        let call = stack.call("pay", json!({})).await;
        worker.granted().await;
        let granted = worker.grant_of(call, 1);
        forget_grant(&stack, call).await;
        // Somebody who may not serve the tool cannot have held it.
        rogue.beat_with(vec![granted]).await;
        rogue.report(call, 1, Ok("\"stolen\"")).await;
        assert_eq!(stack.get(call).await.state, CallState::Ready);
        if !by_report {
            let reply = worker.beat_with(vec![granted]).await;
            assert_eq!((reply.lost.len(), reply.locked.len()), (0, 0));
            let view = stack.get(call).await;
            assert_eq!((view.state, view.attempts), (CallState::Running, 1));
            assert!(worker.claim(call, 1).await.is_empty(), "it is not granted to another claim");
        }
        worker.report(call, 1, Ok("1")).await;
        assert_eq!(stack.get(call).await.state, CallState::Succeeded, "by a report: {by_report}");
    }
    assert_eq!(stack.count("late_reports WHERE worker LIKE 'rogue%'").await, 2);
    stack.finish().await;
}

/// A database that lost the registration, too, knows nothing of what the worker may serve.
#[tokio::test]
async fn a_lost_grant_of_an_unknown_worker_is_kept_until_it_has_registered() {
    let stack = Stack::start_leasing(LEASE).await;
    let tools = || vec![ToolSpec::named("pay")];
    let mut worker = Hand::new(&stack, tools()).await;
    let call = stack.call("pay", json!({})).await;
    worker.granted().await;
    let granted = worker.grant_of(call, 1);
    forget_grant(&stack, call).await;
    stack.execute("DELETE FROM workers").await;
    let reply = worker.beat_with(vec![granted]).await;
    assert_eq!((reply.register, reply.lost.len(), reply.locked), (true, 0, vec![granted]));
    worker.register(tools()).await;
    let reply = worker.beat_with(vec![granted]).await;
    assert_eq!((reply.register, reply.lost.len(), reply.locked.len()), (false, 0, 0));
    worker.report(call, 1, Ok("1")).await;
    stack.finish().await;
}

/// A heartbeat may be late: what it names was released, granted again and released again since.
#[tokio::test]
async fn a_released_grant_is_not_taken_back() {
    let mut stack = Stack::start_leasing(LEASE).await;
    stack.leaves_jobs();
    let mut worker = Hand::new(&stack, vec![ToolSpec::named("pay")]).await;
    let call = stack.call("pay", json!({})).await;
    worker.granted().await;
    let (released, held_at) = (worker.grant_of(call, 1), stack.value("SELECT clock_timestamp()").await);
    assert_eq!(worker.release(released.claim, call, 1).await, 1);
    let lost = async || worker.beat_at(Some(held_at), vec![released]).await.lost;
    assert_eq!(lost().await, [released], "its claim is on record");
    let again = ClaimId::generate();
    assert_eq!(worker.claim_as(again, call, 1).await.len(), 1);
    assert_eq!(worker.release(again, call, 1).await, 1);
    assert_eq!(lost().await, [released], "it was held before the last start");
    assert_eq!(stack.get(call).await.state, CallState::Ready);
    assert_eq!(worker.claim(call, 1).await.len(), 1);
    worker.report(call, 1, Ok("1")).await;
    stack.finish().await;
}

/// Nobody else gets it, so it may be heard of again at any time until its own is over.
#[tokio::test]
async fn an_unsafe_attempt_outlives_its_lease() {
    let mut stack = Stack::start_leasing(Duration::from_secs(1)).await;
    stack.leaves_jobs();
    stack.workers_will_die();
    let mut worker = Hand::new(&stack, vec![ToolSpec::named("pay")]).await;
    let calls = [stack.call("pay", json!({})).await, stack.call("pay", json!({})).await];
    for call in calls {
        assert_eq!(worker.claim(call, 1).await.len(), 1);
    }
    let unheard = async |call| stack.get(call).await.attempts_made[0].unheard_since;
    for call in calls {
        until("its lease has ended, and the sweep leaves it", async || {
            worker.beat().await;
            // The sweep has looked at it since.
            let due = format!("calls WHERE id = '{call}' AND wake_at > lease_until + interval '10 s'");
            (unheard(call).await.is_some() && stack.count(&due).await == 1).then_some(())
        })
        .await;
    }
    let reply = worker.beat_with(vec![worker.grant_of(calls[0], 1)]).await;
    assert_eq!((reply.lost, unheard(calls[0]).await), (Vec::new(), None), "it is renewed");
    worker.report(calls[0], 1, Ok("1")).await;
    assert_eq!(stack.ended(calls[0]).await.state, CallState::Succeeded);
    // Its time is over, and nothing was heard.
    stack.execute("UPDATE calls SET started_at = started_at - interval '1 h', wake_at = clock_timestamp() WHERE wake_at IS NOT NULL").await;
    let view = stack.ended(calls[1]).await;
    assert_eq!((view.state, view.class), (CallState::Unknown, Some(ErrorClass::Lost)));
    worker.report(calls[1], 1, Ok("1")).await;
    assert_eq!(stack.get(calls[1]).await.state, CallState::Unknown, "it is settled");
    stack.finish().await;
}

/// The answer to an older heartbeat must not stop a newer grant of the same attempt.
#[tokio::test]
async fn a_heartbeat_is_answered_for_grants_and_not_for_attempts() {
    let stack = Stack::start_leasing(LEASE).await;
    let mut worker = Hand::new(&stack, vec![ToolSpec::named("read")]).await;
    let call = stack.call("read", json!({})).await;
    worker.granted().await;
    let older = worker.grant_of(call, 1);
    assert_eq!(worker.release(older.claim, call, 1).await, 1);
    worker.granted().await;
    let newer = worker.grant_of(call, 1);
    let reply = worker.beat_with(vec![older, newer]).await;
    assert_eq!((reply.lost, reply.lease_ms), (vec![older], 30_000));
    stack.cancel(call).await;
    assert_eq!(worker.beat_with(vec![older, newer]).await.cancelled, [newer]);
    worker.report(call, 1, Ok("1")).await;
    stack.finish().await;
}

/// An operator holds the row of one call locked: its own end has to wait, and no other call does.
#[tokio::test]
async fn one_locked_call_keeps_no_other_waiting() {
    let mut stack = Stack::start_leasing(LEASE).await;
    stack.leaves_jobs();
    let mut worker = Hand::new(&stack, vec![ToolSpec::named("read"), ToolSpec::named("other")]).await;
    let (held, ready) = (stack.call("read", json!({})).await, stack.call("read", json!({})).await);
    let others = [stack.call("other", json!({})).await, stack.call("other", json!({})).await];
    let waiting = stack.call("other", json!({})).await;
    for call in [held, others[0], others[1]] {
        assert_eq!(worker.claim(call, 1).await.len(), 1);
    }
    let grants = [held, others[0], others[1]].map(|call| worker.grant_of(call, 1));
    let lease =
        async |call| stack.value::<String>(&format!("SELECT lease_until::text FROM calls WHERE id = '{call}'")).await;
    let before = (lease(held).await, lease(others[0]).await);
    let mut lock = stack.db().begin().await.unwrap();
    sqlx::query("SELECT FROM calls WHERE tool = 'read' FOR UPDATE").execute(&mut *lock).await.unwrap();
    let reply = worker.beat_with(grants.to_vec()).await;
    assert_eq!((reply.lost, reply.locked), (Vec::new(), vec![grants[0]]));
    let after = (lease(held).await, lease(others[0]).await);
    assert!(after.0 == before.0 && after.1 > before.1, "{before:?} {after:?}");
    assert_eq!(worker.claim_and_return(&[ready, waiting], Vec::new()).await.len(), 1, "the one that is free");
    assert_eq!(worker.release(worker.claim_of(waiting, 1), waiting, 1).await, 1);
    // In one message, and then the rest.
    let report = |grant: &GrantRef| json!({"call": grant.call, "attempt": 1, "claim": grant.claim, "duration_ms": 1, "output": 1});
    let batch = json!({"worker": worker.id, "reports": grants.iter().map(report).collect::<Vec<_>>()});
    stack.queue().put(&worker.results(), &batch).await.unwrap();
    worker.ingested(grants[2]).await;
    for call in others {
        assert_eq!(stack.ended(call).await.state, CallState::Succeeded);
    }
    assert_eq!(stack.get(held).await.state, CallState::Running, "its report waits");
    lock.rollback().await.unwrap();
    worker.ingested(grants[0]).await;
    assert_eq!(stack.ended(held).await.state, CallState::Succeeded);
    for call in [ready, waiting] {
        stack.cancel(call).await;
    }
    stack.finish().await;
}

/// While the row of a call is locked, its worker can neither renew nor report: it has a whole lease for that when the lock is gone.
#[tokio::test]
async fn a_lease_that_ends_while_its_call_is_locked_counts_anew() {
    let mut stack = Stack::start_leasing(Duration::from_secs(4)).await;
    stack.leaves_jobs();
    let worker = Hand::new(&stack, vec![ToolSpec { effect: ToolEffect::Read, ..ToolSpec::named("read") }]).await;
    let (first, call) = (stack.call("read", json!({})).await, stack.call("read", json!({})).await);
    let is = async |call: CallId, condition: &str| {
        stack.value::<bool>(&format!("SELECT {condition} FROM calls WHERE id = '{call}'")).await
    };
    // Once a lease has ended, the grace after the start of the dispatcher is over.
    stack.workers_will_die();
    assert_eq!(worker.claim(first, 1).await.len(), 1);
    until("a lease has ended", async || is(first, "state <> 'running'").await.then_some(())).await;
    assert_eq!(worker.claim(call, 1).await.len(), 1);
    let grant = worker.grant_of(call, 1);
    let mut lock = stack.db().begin().await.unwrap();
    sqlx::query("SELECT FROM calls WHERE id = $1 FOR UPDATE").bind(call.0).execute(&mut *lock).await.unwrap();
    until("the lease has ended", async || {
        is(call, "lease_until + interval '2 s' < clock_timestamp()").await.then_some(())
    })
    .await;
    lock.rollback().await.unwrap();
    until("a sweep has met it", async || is(call, "wake_at > clock_timestamp()").await.then_some(())).await;
    assert_eq!(stack.get(call).await.state, CallState::Running);
    let reply = worker.beat_with(vec![grant]).await;
    assert_eq!((reply.lost, reply.locked), (Vec::new(), Vec::new()));
    assert!(is(call, "lease_until > clock_timestamp()").await);
    stack.leaves_calls();
    stack.finish().await;
}

/// Something else than the row of a call is locked, for which nothing looks: the batch is halved until the report that meets it is alone.
#[tokio::test]
async fn a_batch_of_reports_that_times_out_is_halved_until_one_is_put_off() {
    let mut stack = Stack::start_leasing(LEASE).await;
    stack.leaves_jobs();
    let worker = Hand::new(&stack, vec![ToolSpec::named("read")]).await;
    let (held, other) = (stack.call("read", json!({})).await, stack.call("read", json!({})).await);
    for call in [held, other] {
        assert_eq!(worker.claim(call, 1).await.len(), 1);
    }
    let grants = [held, other].map(|call| worker.grant_of(call, 1));
    let mut lock = stack.db().begin().await.unwrap();
    let attempt = "INSERT INTO attempts (call_id, attempt, worker, started_at, ended_at, duration_ms, output) \
                   SELECT id, attempt, worker, now(), now(), 1, '1' FROM calls WHERE id = $1";
    sqlx::query(attempt).bind(held.0).execute(&mut *lock).await.unwrap();
    let report = |grant: &GrantRef| json!({"call": grant.call, "attempt": 1, "claim": grant.claim, "duration_ms": 1, "output": 1});
    let batch = json!({"worker": worker.id, "reports": grants.iter().map(report).collect::<Vec<_>>()});
    stack.queue().put(&worker.results(), &batch).await.unwrap();
    assert_eq!(stack.ended(other).await.state, CallState::Succeeded);
    assert_eq!(stack.get(held).await.state, CallState::Running, "its report waits");
    lock.rollback().await.unwrap();
    assert_eq!(stack.ended(held).await.state, CallState::Succeeded);
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
async fn a_release_of_what_was_not_granted_changes_nothing() {
    let stack = Stack::start().await;
    let mut worker = Hand::new(&stack, vec![ToolSpec::named("read")]).await;
    let stranger = Hand::new(&stack, vec![ToolSpec::named("other")]).await;
    let call = stack.call("read", json!({})).await;
    let claim = ClaimId::generate();
    for hand in [&stranger, &worker] {
        assert_eq!(hand.release(claim, call, 1).await, 0);
    }
    let many = vec![GrantRef { call, attempt: 1, claim }; 257];
    let request = ReleaseRequest { worker: stranger.id.clone(), jobs: many };
    let subject = stranger.subject(ControlVerb::Release);
    let refused = stack.queue().request::<_, ReleaseReply>(&subject, &request, ANSWER);
    let error = refused.await.unwrap_err().to_string();
    assert!(error.contains("jobs holds 257 attempts; allowed: 256"), "{error}");
    worker.job().await;
    assert_eq!(worker.claim_as(claim, call, 1).await.len(), 1);
    worker.report(call, 1, Ok("1")).await;
    stack.finish().await;
}
