//! What the tests share.

use std::{path::Path, time::Duration};

use redial_proto::{CallId, RetryOverride, Submission, ToolEffect};
use redial_test_stack::{Servers, Stack, arguments, scripted_tool};
use redial_worker::Tool;
use serde_json::json;

pub(crate) const LONG: Duration = Duration::from_mins(3);

/// Longer than a machine stops now and then: workers keep what they hold.
const LEASE: Duration = Duration::from_secs(20);

/// One dispatcher.
pub(crate) async fn steady() -> Stack {
    Stack::start_leasing(LEASE).await
}

/// Like [`steady`], where the database notes the calls whose jobs NATS did not acknowledge in time, or may have lost in an outage, as
/// a machine in full use has them: they are published again.
pub(crate) async fn steady_with_notes() -> Stack {
    let mut stack = Stack::on(Servers::start().await).await;
    stack.dispatcher.lease = LEASE;
    let notes = "CREATE TABLE perhaps_lost (call uuid NOT NULL);
                 CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                     IF current_query() LIKE '-- Puts calls whose jobs could not be published%'
                         OR EXISTS (SELECT FROM job_stream WHERE NOT done)
                     THEN
                         INSERT INTO perhaps_lost VALUES (NEW.id);
                     END IF;
                     RETURN NULL;
                 END $$;
                 CREATE TRIGGER note AFTER UPDATE ON calls FOR EACH ROW
                     WHEN (OLD.backlog_at IS NULL AND NEW.backlog_at IS NOT NULL) EXECUTE FUNCTION note()";
    stack.execute(notes).await;
    stack.dispatch().await;
    stack
}

/// How many jobs were published again although NATS has them; only after [`steady_with_notes`].
pub(crate) async fn published_again(stack: &Stack) -> i64 {
    stack.count("calls WHERE publish_no > 1 AND id NOT IN (SELECT call FROM perhaps_lost)").await
}

/// A tool that answers at once.
pub(crate) fn tool(stack: &Stack, name: &str) -> Tool {
    scripted_tool(name, ToolEffect::Read, &stack.ledger)
}

/// Submits many calls of a tool, in as many messages as they need.
pub(crate) async fn submit(stack: &Stack, tool: &str, count: u64) -> Vec<CallId> {
    let mut submitted = Vec::new();
    let calls: Vec<_> = (0..count).map(|n| Submission::new(tool, arguments(json!({"n": n})))).collect();
    for batch in calls.chunks(1_000) {
        submitted.extend(stack.call_all(batch).await);
    }
    submitted
}

/// Waits until so many calls of a tool have this state.
pub(crate) async fn count(stack: &Stack, tool: &str, state: &str, wanted: i64) {
    redial_test_stack::until_within(LONG, &format!("{wanted} calls of {tool} are {state}"), async || {
        (states(stack, tool, state).await == wanted).then_some(())
    })
    .await;
}

/// How many calls of a tool have this state.
pub(crate) async fn states(stack: &Stack, tool: &str, state: &str) -> i64 {
    stack.count(&format!("calls WHERE tool = '{tool}' AND state = '{state}'")).await
}

/// How many calls of a tool wait in the backlog.
pub(crate) async fn waiting(stack: &Stack, tool: &str) -> i64 {
    stack.count(&format!("calls WHERE tool = '{tool}' AND backlog_at IS NOT NULL")).await
}

/// The unclaimed jobs of a tool on the stream, for all consumers.
pub(crate) async fn jobs(stack: &Stack, tool: &str) -> u64 {
    let jobs = stack.queue().unclaimed_jobs().await.unwrap();
    jobs.into_iter().filter(|((_, of), _)| of == tool).map(|(_, unclaimed)| unclaimed.jobs).sum()
}

/// Submits calls that are unavailable while the file exists, with many attempts and so much time.
pub(crate) async fn submit_down(stack: &Stack, down: &Path, count: u64, deadline: Duration) {
    let retry = RetryOverride {
        max_attempts: Some(100),
        deadline_ms: Some(u64::try_from(deadline.as_millis()).unwrap()),
        ..RetryOverride::default()
    };
    let call = |n| Submission {
        retry: Some(retry),
        ..Submission::new("down", arguments(json!({"n": n, "down_while": down})))
    };
    for batch in (0..count).map(call).collect::<Vec<_>>().chunks(1_000) {
        stack.call_all(batch).await;
    }
}

/// Starts a worker whose slots are all taken until the file exists.
pub(crate) async fn busy(stack: &mut Stack, pool: &str, name: &str, release: &Path) {
    stack.work(vec![tool(stack, name).pool(pool)]).await;
    let held = |_| Submission::new(name, arguments(json!({"hold": release})));
    stack.call_all(&(0..64).map(held).collect::<Vec<_>>()).await;
    count(stack, name, "running", 64).await;
}
