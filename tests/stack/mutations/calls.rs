//! Scenarios of calls.

use std::time::Duration;

use redial_proto::{
    CallState, ErrorClass, Failure, GetRequest, Job, Language, RetryOverride, RetryPolicy, Submission, SubmitResult,
    ToolEffect, ToolSpec, subjects::Verb,
};
use redial_queue::{OutgoingJob, QueueError};
use redial_test_stack::{Ear, Servers, ToolEvent, Violation, arguments, canary, unique_path, until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::{fixture::Fixture, list::Mutation};
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

type Verdict = Vec<Violation>;

fn tool(effect: ToolEffect) -> ToolSpec {
    let retry = RetryPolicy { initial_ms: 1, cap_ms: 1, ..RetryPolicy::default() };
    ToolSpec { effect, retry, ..ToolSpec::named("tool") }
}

/// A worker reports an error; while another one runs the next attempt, it reports a success of the first after all.
pub(crate) async fn stale_result(mutation: &'static Mutation, mutated: bool) -> Verdict {
    let (fixture, _dispatcher) = Fixture::with_dispatcher(mutation, mutated).await;
    let mut first = Hand::new(&fixture.stack, vec![tool(ToolEffect::Read)]).await;
    let mut second = Hand::new(&fixture.stack, Vec::new()).await;
    let call = fixture.stack.call("tool", json!({})).await;
    first.granted().await;
    first.report(call, 1, Err(Failure::new(ErrorClass::Unavailable, "busy"))).await;
    assert_eq!(second.granted().await.attempt, 2);
    first.report(call, 1, Ok("1")).await;
    second.report(call, 2, Ok("2")).await;
    fixture.stack.ended(call).await;
    fixture.violations().await
}

/// A dispatcher dies while a submission from the intake stream waits for Postgres.
pub(crate) async fn submission_in_a_crash(mutation: &'static Mutation, mutated: bool) -> Verdict {
    let mut fixture = Fixture::new(mutation, mutated).await;
    fixture.stack.redeliver_after(REDELIVERED).await;
    let first = fixture.dispatch().await;
    let _worker = fixture.serve(ToolEffect::Read).await;
    first.silence_postgres();
    let submission = Submission { key: Some("k".into()), ..Submission::new("tool", arguments(json!({}))) };
    fixture.stack.submit_to_intake(&submission).await;
    fixture.delivered("INTAKE").await;
    if mutated {
        fixture.answered("INTAKE").await;
    }
    first.kill();
    let _second = fixture.dispatch().await;
    // Without the mutation the submission is redelivered.
    fixture.answered("INTAKE").await;
    fixture.stack.drained(PATIENCE).await;
    fixture.violations().await
}

/// A dispatcher dies while a result waits for Postgres.
pub(crate) async fn result_in_a_crash(mutation: &'static Mutation, mutated: bool) -> Verdict {
    let mut fixture = Fixture::new(mutation, mutated).await;
    fixture.stack.lease = SHORT_LEASE;
    fixture.stack.redeliver_after(REDELIVERED).await;
    let first = fixture.dispatch().await;
    let _worker = fixture.serve(ToolEffect::Read).await;
    let hold = unique_path("hold");
    let call = fixture.stack.call("tool", json!({"hold": hold})).await;
    fixture.stack.ledger.reaches(ToolEvent::Started, 1).await;
    first.silence_postgres();
    std::fs::write(&hold, "").unwrap();
    fixture.delivered("RESULTS").await;
    if mutated {
        fixture.answered("RESULTS").await;
    }
    first.kill();
    let _second = fixture.dispatch().await;
    fixture.stack.ended(call).await;
    fixture.violations().await
}

/// Postgres is killed right after submissions were accepted. Its write-ahead log is flushed by every commit, and
/// otherwise by a process that is stopped here.
pub(crate) async fn killed_postgres(mutation: &'static Mutation, mutated: bool) -> Verdict {
    let mut fixture = Fixture::over(Servers::start_own().await, mutation, mutated).await;
    let database = fixture.stack.servers.database().to_owned();
    for setting in ["wal_writer_delay = '10s'", "bgwriter_lru_maxpages = 0", "autovacuum = off"] {
        fixture.execute(&format!("ALTER SYSTEM SET {setting}")).await;
    }
    fixture.execute("SELECT pg_reload_conf()").await;
    if mutated {
        fixture.execute(&format!("ALTER DATABASE {database} SET synchronous_commit = off")).await;
    }
    let walwriter = Stopped::walwriter(&fixture).await;
    let _dispatcher = fixture.dispatch().await;
    Hand::new(&fixture.stack, vec![tool(ToolEffect::Read)]).await;
    for _ in 0..5 {
        fixture.stack.call("tool", json!({})).await;
    }
    fixture.stack.leaves_calls();
    fixture.stack.servers.kill_postgres().await;
    drop(walwriter);
    fixture.stack.servers.start_postgres().await;
    fixture.violations().await
}

/// A stopped process, which is killed at the end because it would not notice the end of its server.
struct Stopped(Pid);

impl Stopped {
    /// The process that flushes the log for others, stopped at a moment when it holds nothing that others wait for.
    async fn walwriter(fixture: &Fixture) -> Self {
        let asleep = "SELECT pid FROM pg_stat_activity
                      WHERE backend_type = 'walwriter' AND wait_event = 'WalWriterMain'";
        let find = async || {
            let pid: Option<i32> = sqlx::query_scalar(asleep).fetch_optional(fixture.stack.db()).await.unwrap();
            pid.and_then(Pid::from_raw)
        };
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
pub(crate) async fn one_retry(mutation: &'static Mutation, mutated: bool) -> Verdict {
    let (mut fixture, _dispatcher) = Fixture::with_dispatcher(mutation, mutated).await;
    let _worker = fixture.serve(ToolEffect::Read).await;
    let call = fixture.stack.call("tool", json!({"fail": "unavailable", "times": 1})).await;
    fixture.ends(fixture.stack.ended(call)).await;
    fixture.violations().await
}

/// A worker dies between the pull of a job and its claim.
pub(crate) async fn lost_job(mutation: &'static Mutation, mutated: bool) -> Verdict {
    let (mut fixture, _dispatcher) = Fixture::with_dispatcher(mutation, mutated).await;
    let dead = Hand::new(&fixture.stack, vec![tool(ToolEffect::Read)]).await;
    let call = fixture.stack.call("tool", json!({})).await;
    dead.job().await;
    let _worker = fixture.serve(ToolEffect::Read).await;
    until("the job is published again", async || {
        // The sweeper would look after ten seconds.
        fixture.execute("UPDATE calls SET wake_at = clock_timestamp() WHERE state = 'ready' AND publish_no = 1").await;
        let published = sqlx::query_scalar::<_, bool>("SELECT publish_no > 1 FROM calls");
        published.fetch_one(fixture.stack.db()).await.unwrap().then_some(())
    })
    .await;
    fixture.ends(fixture.stack.ended(call)).await;
    fixture.violations().await
}

/// A job is handed back once before it is claimed.
pub(crate) async fn second_delivery(mutation: &'static Mutation, mutated: bool) -> Verdict {
    let (mut fixture, _dispatcher) = Fixture::with_dispatcher(mutation, mutated).await;
    Hand::new(&fixture.stack, vec![tool(ToolEffect::Read)]).await;
    let call = fixture.stack.call("tool", json!({})).await;
    let deliveries = fixture.stack.queue().jobs("default").unwrap().pull(1, PATIENCE).await.unwrap();
    deliveries[0].nak(Duration::ZERO).await;
    let _worker = fixture.serve(ToolEffect::Read).await;
    fixture.stack.ended(call).await;
    fixture.violations().await
}

/// A worker gets no notice that its result is ingested, and sends it again.
pub(crate) async fn result_twice(mutation: &'static Mutation, mutated: bool) -> Verdict {
    let (fixture, _dispatcher) = Fixture::with_dispatcher(mutation, mutated).await;
    let mut worker = Hand::new(&fixture.stack, vec![tool(ToolEffect::Read)]).await;
    let call = fixture.stack.call("tool", json!({})).await;
    worker.granted().await;
    for _ in 0..2 {
        worker.report(call, 1, Ok("1")).await;
    }
    fixture.violations().await
}

/// A tool that always fails may be tried twice.
pub(crate) async fn capped_retries(mutation: &'static Mutation, mutated: bool) -> Verdict {
    let (mut fixture, _dispatcher) = Fixture::with_dispatcher(mutation, mutated).await;
    let _worker = fixture.serve(ToolEffect::Read).await;
    let retry = RetryOverride { max_attempts: Some(2), ..RetryOverride::default() };
    let arguments = arguments(json!({"fail": "unavailable"}));
    let call = fixture.stack.accepted(&Submission { retry: Some(retry), ..Submission::new("tool", arguments) }).await;
    if mutated {
        fixture.stack.ledger.reaches(ToolEvent::Started, 3).await;
        fixture.stack.cancel(call).await;
    }
    fixture.stack.ended(call).await;
    fixture.violations().await
}

/// While a worker runs a call, a second copy of its job reaches another worker.
pub(crate) async fn two_copies_of_a_job(mutation: &'static Mutation, mutated: bool) -> Verdict {
    let (mut fixture, _dispatcher) = Fixture::with_dispatcher(mutation, mutated).await;
    let ledger = fixture.stack.ledger.clone();
    let _first = fixture.serve(ToolEffect::Unsafe).await;
    let call = fixture.stack.call("tool", json!({"after_ms": LONG})).await;
    ledger.reaches(ToolEvent::Effect, 1).await;
    // The first one has no free permit.
    let _second = fixture.serve(ToolEffect::Unsafe).await;
    let job = Job { call, attempt: 1, tool: "tool".to_owned(), bytes: 2 };
    let copy = OutgoingJob { job, consumer: "default".to_owned(), publish_no: 100, traceparent: None };
    fixture.stack.queue().publish_packs(&[&[copy]]).await.remove(0).unwrap();
    fixture.answered("JOBS").await;
    if mutated {
        ledger.reaches(ToolEvent::Effect, 2).await;
    }
    fixture.stack.cancel(call).await;
    fixture.stack.ended(call).await;
    fixture.violations().await
}

/// A worker dies in the middle of an unsafe tool, after it has changed the world.
pub(crate) async fn lost_worker(mutation: &'static Mutation, mutated: bool) -> Verdict {
    let mut fixture = Fixture::new(mutation, mutated).await;
    fixture.stack.lease = SHORT_LEASE;
    let _dispatcher = fixture.dispatch().await;
    fixture.stack.workers_will_die();
    let ledger = fixture.stack.ledger.clone();
    let first = fixture.serve(ToolEffect::Unsafe).await;
    let call = fixture.stack.call("tool", json!({"after_ms": LONG})).await;
    ledger.reaches(ToolEvent::Effect, 1).await;
    fixture.answered("JOBS").await;
    first.kill();
    let _second = fixture.serve(ToolEffect::Unsafe).await;
    if mutated {
        ledger.reaches(ToolEvent::Effect, 2).await;
    } else {
        assert_eq!(fixture.stack.ended(call).await.state, CallState::Unknown);
    }
    fixture.violations().await
}

/// A call is cancelled while its job waits on the stream.
pub(crate) async fn cancelled_call(mutation: &'static Mutation, mutated: bool) -> Verdict {
    let (mut fixture, _dispatcher) = Fixture::with_dispatcher(mutation, mutated).await;
    Hand::new(&fixture.stack, vec![tool(ToolEffect::Read)]).await;
    let call = fixture.stack.call("tool", json!({})).await;
    // A call that is cancelled before is never published.
    redial_test_stack::until("its job is on the stream", async || {
        let jobs = fixture.stack.queue().unclaimed_jobs().await.ok()?;
        (jobs.values().map(|unclaimed| unclaimed.jobs).sum::<u64>() == 1).then_some(())
    })
    .await;
    assert_eq!(fixture.stack.cancel(call).await, CallState::Cancelled);
    let _worker = fixture.serve(ToolEffect::Read).await;
    fixture.answered("JOBS").await;
    if mutated {
        fixture.stack.is(call, CallState::Succeeded).await;
    }
    fixture.violations().await
}

/// A worker is cut off from NATS while its tool runs.
pub(crate) async fn cut_off_worker(mutation: &'static Mutation, mutated: bool) -> Verdict {
    let mut fixture = Fixture::new(mutation, mutated).await;
    // Without the mutation no lease may end before the worker is cut off, also if the machine stands still for a moment.
    fixture.stack.lease = if mutated { SHORT_LEASE } else { 3 * SHORT_LEASE };
    let _dispatcher = fixture.dispatch().await;
    fixture.stack.workers_will_die();
    let ledger = fixture.stack.ledger.clone();
    let first = fixture.serve(ToolEffect::Read).await;
    let hold = unique_path("hold");
    let call = fixture.stack.call("tool", json!({"hold": hold})).await;
    ledger.reaches(ToolEvent::Started, 1).await;
    fixture.answered("JOBS").await;
    first.silence_nats();
    let _second = fixture.serve(ToolEffect::Read).await;
    ledger.reaches(ToolEvent::Started, 2).await;
    std::fs::write(&hold, "").unwrap();
    ledger.reaches(ToolEvent::Ended, if mutated { 2 } else { 1 }).await;
    fixture.stack.ended(call).await;
    fixture.violations().await
}

/// A service asks for a pause before it is asked again.
pub(crate) async fn patient_retry(mutation: &'static Mutation, mutated: bool) -> Verdict {
    let (mut fixture, _dispatcher) = Fixture::with_dispatcher(mutation, mutated).await;
    let _worker = fixture.serve(ToolEffect::Read).await;
    // With the mutation nobody waits for the time, so it may be too long for any pause of the machine.
    let retry_after = if mutated { 60_000 } else { 2_000 };
    let orders = json!({"fail": "rate_limited", "times": 1, "retry_after_ms": retry_after});
    let call = fixture.stack.call("tool", orders).await;
    fixture.stack.ended(call).await;
    fixture.violations().await
}

/// A user asks for a call of another tenant, whose id it has come across.
pub(crate) async fn two_tenants(mutation: &'static Mutation, mutated: bool) -> Verdict {
    let (mut fixture, _dispatcher) = Fixture::with_dispatcher(mutation, mutated).await;
    let _worker = fixture.serve(ToolEffect::Read).await;
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
        assert!(mutated || owns == ear.heard().canaries.contains_key("acme"), "{answer:?}");
        fixture.stack.was_heard(ear.heard());
    }
    fixture.violations().await
}
