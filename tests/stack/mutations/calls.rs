//! Scenarios of calls.

use std::time::Duration;

use redial_proto::{
    CallState, ErrorClass, Failure, GetRequest, Job, Language, RetryOverride, RetryPolicy, Submission, SubmitResult,
    ToolEffect, ToolSpec, subjects::Verb,
};
use redial_queue::{OutgoingJob, QueueError};
use redial_test_stack::{Ear, ToolEvent, arguments, canary, unique_path, until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::fixture::Fixture;
use crate::end_to_end::by_hand::Hand;

const PATIENCE: Duration = Duration::from_mins(1);
/// How long an answer to a user may take.
const ANSWER: Duration = Duration::from_secs(25);
/// A message that is not acknowledged is redelivered after this time instead of 30 s.
const REDELIVERED: Duration = Duration::from_secs(1);

/// For scenarios in which a lease ends. In all others it is so long that none does.
const SHORT_LEASE: Duration = Duration::from_secs(1);
/// Longer than any scenario, in ms.
const LONG: u64 = 3_600_000;

fn tool(effect: ToolEffect) -> ToolSpec {
    let retry = RetryPolicy { initial_ms: 1, cap_ms: 1, ..RetryPolicy::default() };
    ToolSpec { effect, retry, ..ToolSpec::named("tool") }
}

/// A worker reports an error; while another one runs the next attempt, it reports a success of the first after all.
pub(crate) async fn stale_result(fixture: &mut Fixture) {
    fixture.dispatch().await;
    let mut first = Hand::new(&fixture.stack, vec![tool(ToolEffect::Read)]).await;
    let mut second = Hand::new(&fixture.stack, Vec::new()).await;
    let call = fixture.stack.call("tool", json!({})).await;
    first.granted().await;
    first.report(call, 1, Err(Failure::new(ErrorClass::Unavailable, "busy"))).await;
    assert_eq!(second.granted().await.attempt, 2);
    first.report(call, 1, Ok("1")).await;
    second.report(call, 2, Ok("2")).await;
    fixture.stack.ended(call).await;
}

/// A dispatcher dies while a submission from the intake stream waits for Postgres.
pub(crate) async fn submission_in_a_crash(fixture: &mut Fixture) {
    fixture.stack.redeliver_after(REDELIVERED).await;
    let first = fixture.dispatch().await;
    fixture.serve(ToolEffect::Read).await;
    first.silence_postgres();
    let submission = Submission { key: Some("k".into()), ..Submission::new("tool", arguments(json!({}))) };
    fixture.stack.submit_to_intake(&submission).await;
    fixture.delivered("INTAKE").await;
    if fixture.mutated {
        fixture.answered("INTAKE").await;
    }
    first.kill();
    fixture.dispatch().await;
    // Without the mutation the submission is redelivered.
    fixture.answered("INTAKE").await;
    fixture.stack.drained(PATIENCE).await;
}

/// A dispatcher dies while a result waits for Postgres.
pub(crate) async fn result_in_a_crash(fixture: &mut Fixture) {
    fixture.stack.dispatcher.lease = SHORT_LEASE;
    fixture.stack.redeliver_after(REDELIVERED).await;
    let first = fixture.dispatch().await;
    fixture.serve(ToolEffect::Read).await;
    let hold = unique_path("hold");
    let call = fixture.stack.call("tool", json!({"hold": hold})).await;
    fixture.stack.ledger.reaches(ToolEvent::Started, 1).await;
    first.silence_postgres();
    std::fs::write(&hold, "").unwrap();
    fixture.delivered("RESULTS").await;
    if fixture.mutated {
        fixture.answered("RESULTS").await;
    }
    first.kill();
    fixture.dispatch().await;
    fixture.stack.ended(call).await;
}

/// Postgres is killed right after submissions were accepted. Its write-ahead log is flushed by every commit, and
/// otherwise by a process that is stopped here.
pub(crate) async fn killed_postgres(fixture: &mut Fixture) {
    let database = fixture.stack.servers.database().to_owned();
    for setting in ["wal_writer_delay = '10s'", "bgwriter_lru_maxpages = 0", "autovacuum = off"] {
        fixture.stack.execute(&format!("ALTER SYSTEM SET {setting}")).await;
    }
    fixture.stack.execute("SELECT pg_reload_conf()").await;
    if fixture.mutated {
        fixture.stack.execute(&format!("ALTER DATABASE {database} SET synchronous_commit = off")).await;
    }
    let walwriter = Stopped::walwriter(fixture).await;
    fixture.dispatch().await;
    Hand::new(&fixture.stack, vec![tool(ToolEffect::Read)]).await;
    for _ in 0..5 {
        fixture.stack.call("tool", json!({})).await;
    }
    fixture.stack.leaves_calls();
    fixture.stack.servers.kill_postgres().await;
    drop(walwriter);
    fixture.stack.servers.start_postgres().await;
}

/// A stopped process, which is killed at the end because it would not notice the end of its server.
struct Stopped(Pid);

impl Stopped {
    /// The process that flushes the log for others, stopped at a moment when it holds nothing that others wait for.
    async fn walwriter(fixture: &Fixture) -> Self {
        let asleep = "SELECT pid FROM pg_stat_activity
                      WHERE backend_type = 'walwriter' AND wait_event = 'WalWriterMain'";
        let find = async || fixture.stack.values(asleep).await.pop().and_then(Pid::from_raw);
        until("the writer of the log is stopped while it is idle", async || {
            let walwriter = find().await?;
            kill_process(walwriter, Signal::STOP).unwrap();
            if find().await.is_some() {
                return Some(Self(walwriter));
            }
            kill_process(walwriter, Signal::CONT).unwrap();
            None
        })
        .await
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        let _gone_already = kill_process(self.0, Signal::KILL);
    }
}

/// A tool fails once.
pub(crate) async fn one_retry(fixture: &mut Fixture) {
    fixture.dispatch().await;
    fixture.serve(ToolEffect::Read).await;
    let call = fixture.stack.call("tool", json!({"fail": "unavailable", "times": 1})).await;
    fixture.ends(fixture.stack.ended(call)).await;
}

/// A worker dies between the pull of a job and its claim.
pub(crate) async fn lost_job(fixture: &mut Fixture) {
    fixture.dispatch().await;
    let dead = Hand::new(&fixture.stack, vec![tool(ToolEffect::Read)]).await;
    let call = fixture.stack.call("tool", json!({})).await;
    dead.job().await;
    fixture.serve(ToolEffect::Read).await;
    until("the job is published again", async || {
        // The sweeper would look after ten seconds.
        fixture
            .stack
            .execute("UPDATE calls SET wake_at = clock_timestamp() WHERE state = 'ready' AND publish_no = 1")
            .await;
        fixture.stack.value::<bool>("SELECT publish_no > 1 FROM calls").await.then_some(())
    })
    .await;
    fixture.ends(fixture.stack.ended(call)).await;
}

/// A job is handed back once before it is claimed.
pub(crate) async fn second_delivery(fixture: &mut Fixture) {
    fixture.dispatch().await;
    Hand::new(&fixture.stack, vec![tool(ToolEffect::Read)]).await;
    let call = fixture.stack.call("tool", json!({})).await;
    let deliveries = fixture.stack.queue().jobs("default").unwrap().pull(1, PATIENCE).await.unwrap();
    deliveries[0].nak(Duration::ZERO).await;
    fixture.serve(ToolEffect::Read).await;
    fixture.stack.ended(call).await;
}

/// A worker gets no notice that its result is ingested, and sends it again.
pub(crate) async fn result_twice(fixture: &mut Fixture) {
    fixture.dispatch().await;
    let mut worker = Hand::new(&fixture.stack, vec![tool(ToolEffect::Read)]).await;
    let call = fixture.stack.call("tool", json!({})).await;
    worker.granted().await;
    for _ in 0..2 {
        worker.report(call, 1, Ok("1")).await;
    }
}

/// A tool that always fails may be tried twice.
pub(crate) async fn capped_retries(fixture: &mut Fixture) {
    fixture.dispatch().await;
    fixture.serve(ToolEffect::Read).await;
    let retry = RetryOverride { max_attempts: Some(2), ..RetryOverride::default() };
    let arguments = arguments(json!({"fail": "unavailable"}));
    let call = fixture.stack.accepted(&Submission { retry: Some(retry), ..Submission::new("tool", arguments) }).await;
    if fixture.mutated {
        fixture.stack.ledger.reaches(ToolEvent::Started, 3).await;
        fixture.stack.cancel(call).await;
    }
    fixture.stack.ended(call).await;
}

/// While a worker runs a call, a second copy of its job reaches another worker.
pub(crate) async fn two_copies_of_a_job(fixture: &mut Fixture) {
    fixture.dispatch().await;
    let ledger = fixture.stack.ledger.clone();
    fixture.serve(ToolEffect::Unsafe).await;
    let call = fixture.stack.call("tool", json!({"after_ms": LONG})).await;
    ledger.reaches(ToolEvent::Effect, 1).await;
    // The first one has no free permit.
    fixture.serve(ToolEffect::Unsafe).await;
    let job = Job { call, attempt: 1, tool: "tool".to_owned(), bytes: 2 };
    let copy = OutgoingJob { job, consumer: "default".to_owned(), publish_no: 100, traceparent: None };
    fixture.stack.queue().publish_packs(&[&[copy]]).await.remove(0).unwrap();
    fixture.answered("JOBS").await;
    if fixture.mutated {
        ledger.reaches(ToolEvent::Effect, 2).await;
    }
    fixture.stack.cancel(call).await;
    fixture.stack.ended(call).await;
}

/// A worker dies in the middle of an unsafe tool, after it has changed the world.
pub(crate) async fn lost_worker(fixture: &mut Fixture) {
    fixture.stack.dispatcher.lease = SHORT_LEASE;
    fixture.dispatch().await;
    fixture.stack.workers_will_die();
    let ledger = fixture.stack.ledger.clone();
    let first = fixture.serve(ToolEffect::Unsafe).await;
    let call = fixture.stack.call("tool", json!({"after_ms": LONG})).await;
    ledger.reaches(ToolEvent::Effect, 1).await;
    fixture.answered("JOBS").await;
    first.kill();
    fixture.serve(ToolEffect::Unsafe).await;
    if fixture.mutated {
        ledger.reaches(ToolEvent::Effect, 2).await;
    } else {
        // Its time is over, and so is the time in which its worker could have come back.
        fixture
            .stack
            .execute("UPDATE calls SET started_at = started_at - interval '1 h', wake_at = clock_timestamp()")
            .await;
        assert_eq!(fixture.stack.ended(call).await.state, CallState::Unknown);
    }
}

/// A call is cancelled while its job waits on the stream.
pub(crate) async fn cancelled_call(fixture: &mut Fixture) {
    fixture.dispatch().await;
    Hand::new(&fixture.stack, vec![tool(ToolEffect::Read)]).await;
    let call = fixture.stack.call("tool", json!({})).await;
    // A call that is cancelled before is never published.
    until("its job is on the stream", async || {
        let jobs = fixture.stack.queue().unclaimed_jobs().await.ok()?;
        (jobs.values().map(|unclaimed| unclaimed.jobs).sum::<u64>() == 1).then_some(())
    })
    .await;
    assert_eq!(fixture.stack.cancel(call).await, CallState::Cancelled);
    fixture.serve(ToolEffect::Read).await;
    fixture.answered("JOBS").await;
    if fixture.mutated {
        fixture.stack.is(call, CallState::Succeeded).await;
    }
}

/// A worker is cut off from NATS while its tool runs.
pub(crate) async fn cut_off_worker(fixture: &mut Fixture) {
    // Without the mutation no lease may end before the worker is cut off, also if the machine stands still for a moment.
    fixture.stack.dispatcher.lease = if fixture.mutated { SHORT_LEASE } else { 3 * SHORT_LEASE };
    fixture.dispatch().await;
    fixture.stack.workers_will_die();
    let ledger = fixture.stack.ledger.clone();
    let first = fixture.serve(ToolEffect::Read).await;
    let hold = unique_path("hold");
    let call = fixture.stack.call("tool", json!({"hold": hold})).await;
    ledger.reaches(ToolEvent::Started, 1).await;
    fixture.answered("JOBS").await;
    first.silence_nats();
    fixture.serve(ToolEffect::Read).await;
    ledger.reaches(ToolEvent::Started, 2).await;
    std::fs::write(&hold, "").unwrap();
    ledger.reaches(ToolEvent::Ended, if fixture.mutated { 2 } else { 1 }).await;
    fixture.stack.ended(call).await;
}

/// A service asks for a pause before it is asked again.
pub(crate) async fn patient_retry(fixture: &mut Fixture) {
    fixture.dispatch().await;
    fixture.serve(ToolEffect::Read).await;
    // With the mutation nobody waits for the time, so it may be too long for any pause of the machine.
    let retry_after = if fixture.mutated { 60_000 } else { 2_000 };
    let orders = json!({"fail": "rate_limited", "times": 1, "retry_after_ms": retry_after});
    let call = fixture.stack.call("tool", orders).await;
    fixture.stack.ended(call).await;
}

/// A user asks for a call of another tenant, whose id it has come across.
pub(crate) async fn two_tenants(fixture: &mut Fixture) {
    fixture.dispatch().await;
    fixture.serve(ToolEffect::Read).await;
    let (alice, bob) = (fixture.stack.user("acme", "alice").await, fixture.stack.user("globex", "bob").await);
    let orders = json!({"output": json!(canary("acme")).to_string()});
    let submission = Submission::new("tool", arguments(orders));
    let result: SubmitResult = alice.ask(Verb::CallSubmit, &submission, ANSWER).await.unwrap();
    let call = result.call.unwrap();
    fixture.stack.wait_for_end(call).await;
    let request = GetRequest { call, language: Language::En };
    for user in [&alice, &bob] {
        let ear = Ear::new(user.user().as_str(), Some(user.tenant().as_str()));
        let answer: Result<Value, QueueError> = user.ask(Verb::CallGet, &request, ANSWER).await;
        ear.hear("an inbox", format!("{answer:?}").as_bytes());
        let owns = user.tenant().as_str() == "acme";
        assert!(fixture.mutated || owns == ear.heard().canaries.contains_key("acme"), "{answer:?}");
        fixture.stack.was_heard(ear.heard());
    }
}
