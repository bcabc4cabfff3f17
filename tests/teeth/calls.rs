//! What happens to calls.

use std::time::Duration;

use redial_proto::{CallState, Effect, ErrorClass, Failure, Job, RetryOverride, RetryPolicy, Submission, ToolSpec};
use redial_queue::OutgoingJob;
use redial_testkit::{Accusation, Deed, Servers, arguments, obedient, unique_path, until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::{bugs::Bug, by_hand::Hand, stage::Stage};

const PATIENCE: Duration = Duration::from_secs(60);
/// What is not acknowledged comes again after this, instead of after 30 s.
const COMES_AGAIN: Duration = Duration::from_secs(1);

/// For scenarios in which a lease ends. In all others it is so long that none does.
const SHORT_LEASE: Duration = Duration::from_secs(1);
/// Longer than any scenario, in ms.
const LONG: u64 = 3_600_000;

type Verdict = Vec<Accusation>;

fn tool(effect: Effect) -> ToolSpec {
    let retry = RetryPolicy { initial_ms: 1, cap_ms: 1, ..RetryPolicy::default() };
    ToolSpec { effect, retry, ..ToolSpec::named("tool") }
}

/// A worker reports an error; while another one runs the next attempt, it reports a success of the first after all.
pub(crate) async fn stale_result(bug: &'static Bug, seeded: bool) -> Verdict {
    let (stage, _dispatcher) = Stage::with_dispatcher(bug, seeded).await;
    let mut first = Hand::new(&stage.stack, vec![tool(Effect::Read)]).await;
    let mut second = Hand::new(&stage.stack, Vec::new()).await;
    let call = stage.stack.call("tool", json!({})).await;
    first.granted().await;
    first.report(call, 1, Err(Failure::new(ErrorClass::Unavailable, "busy"))).await;
    assert_eq!(second.granted().await.attempt, 2);
    first.report(call, 1, Ok("1")).await;
    second.report(call, 2, Ok("2")).await;
    stage.stack.ended(call).await;
    stage.judge().await
}

/// A dispatcher dies while a submission from the intake stream waits for Postgres.
pub(crate) async fn submission_in_a_crash(bug: &'static Bug, seeded: bool) -> Verdict {
    let mut stage = Stage::set(bug, seeded).await;
    stage.stack.redeliver_after(COMES_AGAIN).await;
    let first = stage.dispatch().await;
    let tools = vec![obedient("tool", Effect::Read, &stage.stack.ledger)];
    let _worker = stage.work(1, tools).await;
    first.silence_postgres();
    let submission = Submission { key: Some("k".into()), ..Submission::new("tool", arguments(json!({}))) };
    stage.stack.take_in(&submission).await;
    stage.delivered("INTAKE").await;
    if seeded {
        stage.answered("INTAKE").await;
    }
    first.kill();
    let _second = stage.dispatch().await;
    // In good order the submission comes again.
    stage.answered("INTAKE").await;
    stage.stack.drained(PATIENCE).await;
    stage.judge().await
}

/// A dispatcher dies while a result waits for Postgres.
pub(crate) async fn result_in_a_crash(bug: &'static Bug, seeded: bool) -> Verdict {
    let mut stage = Stage::set(bug, seeded).await;
    stage.stack.lease = SHORT_LEASE;
    stage.stack.redeliver_after(COMES_AGAIN).await;
    let first = stage.dispatch().await;
    let tools = vec![obedient("tool", Effect::Read, &stage.stack.ledger)];
    let _worker = stage.work(1, tools).await;
    let hold = unique_path("hold");
    let call = stage.stack.call("tool", json!({"hold": hold})).await;
    stage.stack.ledger.reaches(Deed::Started, 1).await;
    first.silence_postgres();
    std::fs::write(&hold, "").unwrap();
    stage.delivered("RESULTS").await;
    if seeded {
        stage.answered("RESULTS").await;
    }
    first.kill();
    let _second = stage.dispatch().await;
    stage.stack.ended(call).await;
    stage.judge().await
}

/// Postgres is killed right after submissions were accepted. Its write-ahead log is flushed by whoever commits, and
/// otherwise by a process that stands still here.
pub(crate) async fn killed_postgres(bug: &'static Bug, seeded: bool) -> Verdict {
    let mut stage = Stage::over(Servers::start_own().await, bug, seeded).await;
    let database = stage.stack.servers.database().to_owned();
    for setting in ["wal_writer_delay = '10s'", "bgwriter_lru_maxpages = 0", "autovacuum = off"] {
        stage.meddle(&format!("ALTER SYSTEM SET {setting}")).await;
    }
    stage.meddle("SELECT pg_reload_conf()").await;
    if seeded {
        stage.meddle(&format!("ALTER DATABASE {database} SET synchronous_commit = off")).await;
    }
    let walwriter = Stopped::walwriter(&stage).await;
    let _dispatcher = stage.dispatch().await;
    Hand::new(&stage.stack, vec![tool(Effect::Read)]).await;
    for _ in 0..5 {
        stage.stack.call("tool", json!({})).await;
    }
    stage.stack.leaves_calls();
    stage.stack.servers.kill_postgres().await;
    drop(walwriter);
    stage.stack.servers.start_postgres().await;
    stage.judge().await
}

/// A process that stands still, and is killed at the end: it would not notice that its server is gone.
struct Stopped(Pid);

impl Stopped {
    /// The process that flushes the log for others, stopped at a moment when it holds nothing that others wait for.
    async fn walwriter(stage: &Stage) -> Self {
        let asleep = "SELECT pid FROM pg_stat_activity
                      WHERE backend_type = 'walwriter' AND wait_event = 'WalWriterMain'";
        let find = async || {
            let pid: Option<i32> = sqlx::query_scalar(asleep).fetch_optional(stage.stack.db()).await.unwrap();
            pid.and_then(Pid::from_raw)
        };
        until("the log's writer stands still while it has nothing to do", async || {
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
pub(crate) async fn one_retry(bug: &'static Bug, seeded: bool) -> Verdict {
    let (mut stage, _dispatcher) = Stage::with_dispatcher(bug, seeded).await;
    let tools = vec![obedient("tool", Effect::Read, &stage.stack.ledger)];
    let _worker = stage.work(1, tools).await;
    let call = stage.stack.call("tool", json!({"fail": "unavailable", "times": 1})).await;
    stage.ends(stage.stack.ended(call)).await;
    stage.judge().await
}

/// A worker dies between the pull of a job and its claim.
pub(crate) async fn lost_job(bug: &'static Bug, seeded: bool) -> Verdict {
    let (mut stage, _dispatcher) = Stage::with_dispatcher(bug, seeded).await;
    let dead = Hand::new(&stage.stack, vec![tool(Effect::Read)]).await;
    let call = stage.stack.call("tool", json!({})).await;
    dead.job().await;
    stage.stack.queue().end_pull("default").await;
    let tools = vec![obedient("tool", Effect::Read, &stage.stack.ledger)];
    let _worker = stage.work(1, tools).await;
    until("the job is published again", async || {
        // Nobody waits for the ten seconds after which somebody would look.
        stage.meddle("UPDATE calls SET wake_at = clock_timestamp() WHERE state = 'ready' AND publish_no = 1").await;
        let published = sqlx::query_scalar::<_, bool>("SELECT publish_no > 1 FROM calls");
        published.fetch_one(stage.stack.db()).await.unwrap().then_some(())
    })
    .await;
    stage.ends(stage.stack.ended(call)).await;
    stage.judge().await
}

/// A job is handed back once before it is claimed.
pub(crate) async fn second_delivery(bug: &'static Bug, seeded: bool) -> Verdict {
    let (mut stage, _dispatcher) = Stage::with_dispatcher(bug, seeded).await;
    Hand::new(&stage.stack, vec![tool(Effect::Read)]).await;
    let call = stage.stack.call("tool", json!({})).await;
    let deliveries = stage.stack.queue().pull_jobs("default", 1, PATIENCE).await.unwrap();
    stage.stack.queue().end_pull("default").await;
    deliveries[0].nak(Duration::ZERO).await;
    let tools = vec![obedient("tool", Effect::Read, &stage.stack.ledger)];
    let _worker = stage.work(1, tools).await;
    stage.stack.ended(call).await;
    stage.judge().await
}

/// A worker is not told that its result is on record, and sends it again.
pub(crate) async fn result_twice(bug: &'static Bug, seeded: bool) -> Verdict {
    let (stage, _dispatcher) = Stage::with_dispatcher(bug, seeded).await;
    let mut worker = Hand::new(&stage.stack, vec![tool(Effect::Read)]).await;
    let call = stage.stack.call("tool", json!({})).await;
    worker.granted().await;
    for _ in 0..2 {
        worker.report(call, 1, Ok("1")).await;
    }
    stage.judge().await
}

/// A tool that always fails may be tried twice.
pub(crate) async fn capped_retries(bug: &'static Bug, seeded: bool) -> Verdict {
    let (mut stage, _dispatcher) = Stage::with_dispatcher(bug, seeded).await;
    let tools = vec![obedient("tool", Effect::Read, &stage.stack.ledger)];
    let _worker = stage.work(1, tools).await;
    let retry = RetryOverride { max_attempts: Some(2), ..RetryOverride::default() };
    let arguments = arguments(json!({"fail": "unavailable"}));
    let call = stage.stack.accepted(&Submission { retry: Some(retry), ..Submission::new("tool", arguments) }).await;
    if seeded {
        stage.stack.ledger.reaches(Deed::Started, 3).await;
        stage.stack.cancel(call).await;
    }
    stage.stack.ended(call).await;
    stage.judge().await
}

/// While a worker runs a call, a second copy of its job reaches another worker.
pub(crate) async fn two_copies_of_a_job(bug: &'static Bug, seeded: bool) -> Verdict {
    let (mut stage, _dispatcher) = Stage::with_dispatcher(bug, seeded).await;
    let ledger = stage.stack.ledger.clone();
    let _first = stage.work(1, vec![obedient("tool", Effect::Unsafe, &ledger)]).await;
    let call = stage.stack.call("tool", json!({"after_ms": LONG})).await;
    ledger.reaches(Deed::Effect, 1).await;
    // The first one has no call_index left.
    let _second = stage.work(1, vec![obedient("tool", Effect::Unsafe, &ledger)]).await;
    let job = Job { call, attempt: 1, tool: "tool".to_owned(), bytes: 2 };
    let copy = OutgoingJob { job, pool: "default".to_owned(), publish_no: 100, traceparent: None };
    stage.stack.queue().publish_jobs(vec![copy]).await.remove(0).unwrap();
    stage.answered("JOBS").await;
    if seeded {
        ledger.reaches(Deed::Effect, 2).await;
    }
    stage.stack.cancel(call).await;
    stage.stack.ended(call).await;
    stage.judge().await
}

/// A worker dies in the middle of an unsafe tool, after it has changed the world.
pub(crate) async fn lost_worker(bug: &'static Bug, seeded: bool) -> Verdict {
    let mut stage = Stage::set(bug, seeded).await;
    stage.stack.lease = SHORT_LEASE;
    let _dispatcher = stage.dispatch().await;
    stage.stack.workers_will_die();
    let ledger = stage.stack.ledger.clone();
    let first = stage.work(1, vec![obedient("tool", Effect::Unsafe, &ledger)]).await;
    let call = stage.stack.call("tool", json!({"after_ms": LONG})).await;
    ledger.reaches(Deed::Effect, 1).await;
    stage.answered("JOBS").await;
    first.kill();
    let _second = stage.work(1, vec![obedient("tool", Effect::Unsafe, &ledger)]).await;
    if seeded {
        ledger.reaches(Deed::Effect, 2).await;
    } else {
        assert_eq!(stage.stack.ended(call).await.state, CallState::Unknown);
    }
    stage.judge().await
}

/// A call is cancelled while its job waits on the stream.
pub(crate) async fn cancelled_call(bug: &'static Bug, seeded: bool) -> Verdict {
    let (mut stage, _dispatcher) = Stage::with_dispatcher(bug, seeded).await;
    Hand::new(&stage.stack, vec![tool(Effect::Read)]).await;
    let call = stage.stack.call("tool", json!({})).await;
    assert_eq!(stage.stack.cancel(call).await, CallState::Cancelled);
    let tools = vec![obedient("tool", Effect::Read, &stage.stack.ledger)];
    let _worker = stage.work(1, tools).await;
    stage.answered("JOBS").await;
    if seeded {
        stage.stack.is(call, CallState::Succeeded).await;
    }
    stage.judge().await
}

/// A worker is cut off from everybody while its tool runs.
pub(crate) async fn cut_off_worker(bug: &'static Bug, seeded: bool) -> Verdict {
    let mut stage = Stage::set(bug, seeded).await;
    stage.stack.lease = SHORT_LEASE;
    let _dispatcher = stage.dispatch().await;
    stage.stack.workers_will_die();
    let ledger = stage.stack.ledger.clone();
    let first = stage.work(1, vec![obedient("tool", Effect::Read, &ledger)]).await;
    let hold = unique_path("hold");
    let call = stage.stack.call("tool", json!({"hold": hold})).await;
    ledger.reaches(Deed::Started, 1).await;
    stage.answered("JOBS").await;
    first.silence_nats();
    let _second = stage.work(1, vec![obedient("tool", Effect::Read, &ledger)]).await;
    ledger.reaches(Deed::Started, 2).await;
    std::fs::write(&hold, "").unwrap();
    ledger.reaches(Deed::Ended, if seeded { 2 } else { 1 }).await;
    stage.stack.ended(call).await;
    stage.judge().await
}

/// A service asks for a pause before it is asked again.
pub(crate) async fn patient_retry(bug: &'static Bug, seeded: bool) -> Verdict {
    let (mut stage, _dispatcher) = Stage::with_dispatcher(bug, seeded).await;
    let tools = vec![obedient("tool", Effect::Read, &stage.stack.ledger)];
    let _worker = stage.work(1, tools).await;
    let call = stage.stack.call("tool", json!({"fail": "rate_limited", "times": 1, "retry_after_ms": 2_000})).await;
    stage.stack.ended(call).await;
    stage.judge().await
}
