//! An attempt runs only if Postgres grants its claim; any other message on the job stream is harmless.

use chrono::{DateTime, TimeDelta, Utc};
use futures_util::future::join_all;
use redial_proto::{
    CallId, CallState, ClaimId, ErrorClass, Failure, GrantRef, Job, JobRef, ReleaseReply, ReleaseRequest,
    RetryOverride, Submission, ToolEffect, ToolSpec, subjects::ControlVerb,
};
use redial_queue::OutgoingJob;
use redial_testkit::{Stack, ToolEvent, arguments, scripted_tool, until};
use serde_json::json;
use uuid::Uuid;

use super::by_hand::Hand;

/// Puts a job on the stream that no dispatcher sent.
async fn forge(stack: &Stack, call: CallId, attempt: u32, publish_no: u32) {
    let job = Job { call, attempt, tool: "read".to_owned(), bytes: 2 };
    let forged = OutgoingJob { job, consumer: "default".to_owned(), publish_no, traceparent: None };
    stack.queue().publish_packs(&[&[forged]]).await.remove(0).unwrap();
}

#[tokio::test]
async fn a_job_that_is_delivered_again_runs_nothing() {
    let mut stack = Stack::start().await;
    stack.work(vec![scripted_tool("read", ToolEffect::Read, &stack.ledger)]).await;
    let call = stack.call("read", json!({"fail": "unavailable", "times": 1})).await;
    assert_eq!(stack.output(call).await, r#"{"attempt":2}"#);
    for (n, attempt) in [1, 2, 3, 99].into_iter().enumerate() {
        forge(&stack, call, attempt, 100 + u32::try_from(n).unwrap()).await;
    }
    forge(&stack, CallId::generate(), 1, 1).await;
    let after = stack.call("read", json!({})).await;
    stack.output(after).await;
    let ledger = stack.ledger.clone();
    // The stream is empty at the end: every forged job was acknowledged.
    stack.finish().await;
    assert_eq!(ledger.count(ToolEvent::Started, call), 2);
}

#[tokio::test]
async fn a_running_call_is_not_granted_to_a_second_worker() {
    let stack = Stack::start().await;
    let mut first = Hand::new(&stack, vec![ToolSpec::named("read")]).await;
    let second = Hand::new(&stack, vec![ToolSpec::named("read")]).await;
    let call = stack.call("read", json!({})).await;
    assert!(first.claim(call, 2).await.is_empty(), "an attempt that is not the next one");
    let grant = first.granted().await;
    assert_eq!((grant.call, grant.attempt), (call, 1));
    for attempt in [1, 2] {
        assert!(second.claim(call, attempt).await.is_empty(), "attempt {attempt}");
        assert!(first.claim(call, attempt).await.is_empty(), "attempt {attempt} under another claim id");
    }
    first.report(call, 1, Ok("{}")).await;
    assert!(second.claim(call, 1).await.is_empty() && second.claim(call, 2).await.is_empty(), "it has ended");
    stack.finish().await;
}

#[tokio::test]
async fn the_same_claim_sent_again_gets_the_same_grant() {
    let stack = Stack::start().await;
    let mut worker = Hand::new(&stack, vec![ToolSpec::named("read")]).await;
    let stranger = Hand::new(&stack, vec![ToolSpec::named("read")]).await;
    let call = stack.call("read", json!({"a": 1})).await;
    let job = worker.job().await;
    let claim = ClaimId::generate();
    let first = worker.claim_as(claim, job.call, job.attempt).await;
    let again = worker.claim_as(claim, job.call, job.attempt).await;
    assert_eq!(serde_json::to_string(&first).unwrap(), serde_json::to_string(&again).unwrap());
    assert_eq!((again.len(), again[0].arguments.get()), (1, r#"{"a":1}"#));
    assert!(stranger.claim_as(claim, job.call, job.attempt).await.is_empty(), "another worker with a stolen claim id");
    worker.report(call, 1, Ok("1")).await;
    assert!(worker.claim_as(claim, job.call, job.attempt).await.is_empty(), "the attempt is over");
    let evidence = stack.finish().await;
    assert_eq!(evidence.calls[&call].attempt, 1);
}

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

/// A registration and a heartbeat of before do not say what a worker holds now.
#[tokio::test]
async fn a_worker_that_does_not_tell_what_it_holds_loses_its_attempts() {
    let stack = Stack::start().await;
    stack.workers_will_die();
    let tool = ToolSpec { effect: ToolEffect::Keyed, ..ToolSpec::named("pay") };
    let mut worker = Hand::new(&stack, vec![tool.clone()]).await;
    let call = stack.call("pay", json!({})).await;
    worker.granted().await;
    let after = until("the lease has ended", async || {
        worker.register(vec![tool.clone()]).await;
        worker.beat_of_before().await;
        Some(stack.get(call).await).filter(|view| view.state != CallState::Running)
    })
    .await;
    assert_eq!(after.attempts, 1, "the attempt was lost, and counts");
    worker.granted().await;
    worker.report(call, 2, Ok("1")).await;
    stack.finish().await;
}

/// With attempts and without, which are two statements.
#[tokio::test]
async fn a_heartbeat_is_written_after_a_time_that_can_be_true() {
    let stack = Stack::start().await;
    let mut worker = Hand::new(&stack, vec![ToolSpec::named("pay")]).await;
    let call = stack.call("pay", json!({})).await;
    worker.granted().await;
    let heard = async || {
        let heard = sqlx::query_scalar::<_, Option<DateTime<Utc>>>("SELECT heard_after FROM workers");
        heard.fetch_one(stack.db()).await.unwrap()
    };
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
async fn a_claim_after_the_total_deadline_is_refused() {
    let stack = Stack::start().await;
    let worker = Hand::new(&stack, vec![ToolSpec::named("read")]).await;
    // Long enough for its job to be published on a busy machine.
    let retry = RetryOverride { deadline_ms: Some(3_000), ..RetryOverride::default() };
    let submission = Submission { retry: Some(retry), ..Submission::new("read", arguments(json!({}))) };
    let call = stack.accepted(&submission).await;
    let job = worker.job().await;
    // The sweeper skips a locked call, so only the claim itself can notice that the deadline has passed.
    let mut lock = stack.db().begin().await.unwrap();
    sqlx::query("SELECT FROM calls FOR UPDATE").execute(&mut *lock).await.unwrap();
    until("the deadline has passed", async || {
        let passed = sqlx::query_scalar("SELECT clock_timestamp() > deadline_at FROM calls WHERE id = $1").bind(call.0);
        passed.fetch_one(stack.db()).await.unwrap_or(false).then_some(())
    })
    .await;
    assert!(worker.claim(job.call, job.attempt).await.is_empty());
    lock.rollback().await.unwrap();
    let view = stack.ended(call).await;
    assert_eq!((view.state, view.class, view.attempts), (CallState::Failed, Some(ErrorClass::BudgetExhausted), 0));
    stack.finish().await;
}

#[tokio::test]
async fn invalid_messages_on_the_job_stream_are_discarded() {
    let mut stack = Stack::start().await;
    stack.work(vec![scripted_tool("read", ToolEffect::Read, &stack.ledger)]).await;
    let mut nats = stack.raw_nats().await;
    let no_id = br#"{"call":"x","attempt":1,"tool":"read"}"#;
    let no_number = format!(r#"{{"call":"{}","attempt":-1,"tool":"read"}}"#, CallId::generate());
    let rubbish: [&[u8]; 6] = [b"", b"\xff\x00", b"{", b"[]", no_id, no_number.as_bytes()];
    for payload in rubbish {
        nats.publish("redial.jobs.default.read", payload).await;
    }
    let call = stack.call("read", json!({})).await;
    stack.output(call).await;
    // The stream is empty at the end.
    stack.finish().await;
}

#[tokio::test]
async fn a_worker_that_lost_its_lease_cannot_change_the_call() {
    let stack = Stack::start().await;
    stack.workers_will_die();
    let tools = vec![ToolSpec { effect: ToolEffect::Read, ..ToolSpec::named("read") }];
    let mut slow = Hand::new(&stack, tools.clone()).await;
    let call = stack.call("read", json!({})).await;
    slow.granted().await;
    // The lease is not renewed, so the sweeper ends the attempt as lost, and the next one is for a worker that lives.
    let mut quick = Hand::new(&stack, tools).await;
    let job = quick.job().await;
    assert_eq!((job.call, job.attempt), (call, 2));
    slow.report(call, 1, Ok(r#""too late""#)).await;
    assert_eq!(quick.claim(call, 2).await.len(), 1);
    slow.report(call, 2, Err(Failure::new(ErrorClass::Auth, "not mine to say"))).await;
    quick.report(call, 2, Ok(r#""in time""#)).await;
    assert_eq!(stack.output(call).await, r#""in time""#);
    let evidence = stack.finish().await;
    assert_eq!((evidence.lost(), evidence.late_reports), (1, 2));
}

/// A worker without an answer abandons its claim. If a copy of it arrives later, no worker would use the grant.
#[tokio::test]
async fn an_abandoned_claim_is_not_granted() {
    let stack = Stack::start().await;
    let mut worker = Hand::new(&stack, vec![ToolSpec::named("read")]).await;
    let call = stack.call("read", json!({})).await;
    worker.job().await;
    let given_up = ClaimId::generate();
    assert_eq!(worker.release(given_up, call, 1).await, 0, "nothing was granted yet");
    assert!(worker.claim_as(given_up, call, 1).await.is_empty());
    assert_eq!(worker.claim(call, 1).await.len(), 1, "another claim is");
    worker.report(call, 1, Ok("1")).await;
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

#[tokio::test]
async fn a_call_whose_effect_is_unknown_is_not_granted_and_the_others_are() {
    let mut stack = Stack::start().await;
    let worker = Hand::new(&stack, vec![ToolSpec::named("read")]).await;
    let (unknown, good) = (stack.call("read", json!({})).await, stack.call("read", json!({})).await);
    sqlx::query("ALTER TABLE calls DROP CONSTRAINT calls_effect_check").execute(stack.db()).await.unwrap();
    let effect = async |effect: &'static str| {
        let change = sqlx::query("UPDATE calls SET effect = $1 WHERE id = $2").bind(effect).bind(unknown.0);
        change.execute(stack.db()).await.unwrap();
    };
    effect("quantum").await;
    let granted = worker.claim_all(&[unknown, good]).await;
    assert_eq!(granted.iter().map(|grant| grant.call).collect::<Vec<_>>(), [good]);
    assert_eq!(stack.get(unknown).await.state, CallState::Ready, "a newer version can still run it");
    effect("unsafe").await;
    assert_eq!(worker.claim(unknown, 1).await.len(), 1);
    stack.leaves_calls();
    stack.finish().await;
}

/// A stream that is set up otherwise fails each check of a dispatcher. It is not an outage: workers are heard.
#[tokio::test]
async fn trouble_with_one_stream_keeps_no_call_on_a_dead_worker() {
    let mut stack = Stack::start().await;
    let mut nats = stack.raw_nats().await;
    let mut intake = nats.jetstream("STREAM.INFO.INTAKE", &json!({})).await["config"].clone();
    intake["subjects"] = json!(["elsewhere.>"]);
    let spoiled = nats.jetstream("STREAM.UPDATE.INTAKE", &intake).await;
    assert_eq!(spoiled["config"]["subjects"], intake["subjects"], "{spoiled}");
    let read = ToolSpec { effect: ToolEffect::Read, ..ToolSpec::named("read") };
    let dead = Hand::new(&stack, vec![read]).await;
    stack.workers_died(vec![dead.id.to_string()]);
    let call = stack.call("read", json!({})).await;
    assert_eq!(dead.granted().await.attempt, 1);
    stack.work(vec![scripted_tool("read", ToolEffect::Read, &stack.ledger)]).await;
    assert_eq!(stack.output(call).await, r#"{"attempt":2}"#);
    let evidence = stack.finish().await;
    assert_eq!(evidence.calls[&call].attempts[0].class.as_deref(), Some("lost"));
}

/// A worker knows ids of calls that it was never given, from events or from its own past.
#[tokio::test]
async fn a_release_changes_no_call_of_a_tool_that_its_worker_does_not_serve() {
    let stack = Stack::start().await;
    let mut worker = Hand::new(&stack, vec![ToolSpec::named("read")]).await;
    let stranger = Hand::new(&stack, vec![ToolSpec::named("other")]).await;
    let call = stack.call("read", json!({})).await;
    let claim = ClaimId::generate();
    let claimed = async || {
        let found = sqlx::query_scalar::<_, Option<Uuid>>("SELECT claim_id FROM calls WHERE id = $1").bind(call.0);
        found.fetch_one(stack.db()).await.unwrap()
    };
    assert_eq!(stranger.release(claim, call, 1).await, 0);
    assert_eq!(claimed().await, None);
    assert_eq!(worker.release(claim, call, 1).await, 0);
    assert_eq!(claimed().await, Some(claim.0), "its own claim may still be under way");
    assert!(worker.claim_as(claim, call, 1).await.is_empty());
    let many = vec![GrantRef { call, attempt: 1, claim }; 257];
    let request = ReleaseRequest { worker: stranger.id.clone(), jobs: many };
    let subject = stranger.subject(ControlVerb::Release);
    let refused = stack.queue().request::<_, ReleaseReply>(&subject, &request, std::time::Duration::from_secs(25));
    let error = refused.await.unwrap_err().to_string();
    assert!(error.contains("jobs holds 257 attempts; allowed: 256"), "{error}");
    worker.granted().await;
    worker.report(call, 1, Ok("1")).await;
    stack.finish().await;
}
