//! The mutations, each with the scenario in which it matters and the invariant that must be violated.

use futures_util::{FutureExt, future::LocalBoxFuture};
use redial_test_stack::{Invariant, Invariant as I};

use super::{calls, fixture::Fixture, messages::MessageChange, statements::Replacement, tasks, wire::Hits};

/// A bug of the protocol, made outside of the programs.
pub(crate) struct Mutation {
    /// What is wrong.
    pub(crate) name: &'static str,
    /// Replacements in statements.
    pub(crate) statements: &'static [Replacement],
    /// The change of messages.
    pub(crate) messages: Option<MessageChange>,
    /// Statements that remove constraints which would also prevent the bug.
    pub(crate) schema: &'static str,
    /// Whether its scenario kills a server.
    pub(crate) own_servers: bool,
    /// The invariant that it violates.
    pub(crate) caught_by: Invariant,
    /// The scenario in which it matters.
    pub(crate) scenario: Scenario,
}

/// The tables repeat some guards of the statements: attempts are unique, and ended calls never change.
const NO_PROTECTION: &str = "
    ALTER TABLE attempts DROP CONSTRAINT attempts_pkey;
    ALTER TABLE calls DISABLE TRIGGER ended_calls_never_change;
    ALTER TABLE calls DROP CONSTRAINT calls_check, DROP CONSTRAINT calls_check1";

/// What happens, with the mutation or without.
pub(crate) type Scenario = for<'a> fn(&'a mut Fixture) -> LocalBoxFuture<'a, ()>;

/// A mutation that changes nothing yet, in the scenario of a task with one call.
const fn of(name: &'static str, caught_by: Invariant) -> Mutation {
    let scenario: Scenario = |fixture| tasks::one_call(fixture).boxed_local();
    Mutation { name, statements: &[], messages: None, schema: "", own_servers: false, caught_by, scenario }
}

impl Mutation {
    /// A counter for each replacement in a statement and for the change of messages.
    pub(crate) fn counters(&self) -> Vec<Hits> {
        vec![Hits::default(); self.statements.len() + usize::from(self.messages.is_some())]
    }

    const fn statements(self, statements: &'static [Replacement]) -> Self {
        Self { statements, ..self }
    }

    const fn messages(self, change: MessageChange) -> Self {
        Self { messages: Some(change), ..self }
    }

    const fn schema(self, schema: &'static str) -> Self {
        Self { schema, ..self }
    }

    const fn on_own_servers(self) -> Self {
        Self { own_servers: true, ..self }
    }

    const fn scenario(self, scenario: Scenario) -> Self {
        Self { scenario, ..self }
    }
}

pub(crate) static MUTATIONS: [Mutation; 22] = [
    of("results are ingested without the fencing token", I::AttemptsWithoutGaps)
        .statements(&[
            ("AND c.attempt = i.was_attempt AND c.worker = i.was_worker AND c.claim_id = i.was_claim", ""),
            ("SET state = 'succeeded', wake_at", "SET state = 'succeeded', attempt = i.was_attempt, wake_at"),
        ])
        .schema(NO_PROTECTION)
        .scenario(|fixture| calls::stale_result(fixture).boxed_local()),
    of("a submission is acknowledged before its commit", I::AcknowledgedExists)
        .messages(MessageChange::AnswersFirst)
        .scenario(|fixture| calls::submission_in_a_crash(fixture).boxed_local()),
    of("a result is acknowledged before its commit", I::EffectsWithinAttempts)
        .messages(MessageChange::AnswersFirst)
        .scenario(|fixture| calls::result_in_a_crash(fixture).boxed_local()),
    of("synchronous_commit = off is not refused", I::AcknowledgedExists)
        .statements(&[("SELECT current_setting($1)", "SELECT COALESCE('on', current_setting($1))")])
        .on_own_servers()
        .scenario(|fixture| calls::killed_postgres(fixture).boxed_local()),
    of("no sweeper runs", I::EveryCallEnds)
        .statements(&[(
            "num_nonnulls(backlog_at) = 0 AND wake_at >= COALESCE($2::timestamptz, '-infinity') AND wake_at <=",
            "wake_at >= COALESCE($2::timestamptz, '-infinity') AND false AND wake_at <=",
        )])
        .scenario(|fixture| calls::one_retry(fixture).boxed_local()),
    of("a job is published again under the same message id", I::EveryCallEnds)
        .messages(MessageChange::SameMessageId)
        .scenario(|fixture| calls::lost_job(fixture).boxed_local()),
    of("the number of deliveries is the attempt", I::AttemptsWithoutGaps)
        .statements(&[("AND c.attempt = i.attempt - 1 ", "")])
        .messages(MessageChange::DeliveriesAreAttempts)
        .scenario(|fixture| calls::second_delivery(fixture).boxed_local()),
    of("a result that arrives twice is ingested twice", I::AttemptsWithoutGaps)
        .statements(&[("AND c.state = 'running' AND c.attempt = i.was_attempt", "AND c.attempt = i.was_attempt")])
        .schema(NO_PROTECTION)
        .scenario(|fixture| calls::result_twice(fixture).boxed_local()),
    of("retries have no cap", I::AttemptsWithinMax)
        .statements(&[("c.retry::text, c.timeout_ms", "'{\"max_attempts\":1000}'::text, c.timeout_ms")])
        .scenario(|fixture| calls::capped_retries(fixture).boxed_local()),
    of("a claim ignores the call's state", I::UnsafeOnce)
        .statements(&[(
            "(c.state = 'ready' AND c.attempt = i.attempt - 1 AND",
            "(c.state IN ('ready', 'running') AND c.attempt <= i.attempt AND",
        )])
        .scenario(|fixture| calls::two_copies_of_a_job(fixture).boxed_local()),
    of("an unsafe tool is retried after a lost worker", I::UnsafeOnce)
        .statements(&[("effect AS \"effect!\"", "'read'::text AS \"effect!\"")])
        .scenario(|fixture| calls::lost_worker(fixture).boxed_local()),
    of("a claim ignores a cancel", I::NothingAfterCancel)
        .statements(&[
            ("((c.state = 'ready' AND", "((c.state IN ('ready', 'cancelled') AND"),
            ("CASE WHEN c.state = 'ready' THEN t.now", "CASE WHEN c.state <> 'running' THEN t.now"),
        ])
        .schema(NO_PROTECTION)
        .scenario(|fixture| calls::cancelled_call(fixture).boxed_local()),
    of("a worker continues after the end of its lease", I::LeasesApart)
        .messages(MessageChange::EndlessLease)
        .scenario(|fixture| calls::cut_off_worker(fixture).boxed_local()),
    of("a retry does not wait for its time", I::RetriesWhenDue)
        .statements(&[(
            "num_nonnulls(backlog_at) = 0 AND wake_at >= COALESCE($2::timestamptz, '-infinity') AND wake_at <= (SELECT clock_timestamp())",
            "num_nonnulls(backlog_at) = 0 AND wake_at >= COALESCE($2::timestamptz, '-infinity') AND wake_at <= (SELECT clock_timestamp())
                + interval '1 h'",
        )])
        .scenario(|fixture| calls::patient_retry(fixture).boxed_local()),
    of("a tool's message is appended at the conversation's end", I::OneAnswerPerCall)
        .statements(&[(
            "seq, task_id, $1",
            "CASE WHEN role <> 'tool' THEN seq ELSE (
                 SELECT max(m.seq) + 1 FROM messages m WHERE (m.tenant, m.conversation) = (i.tenant, i.conversation)
             ) END, task_id, $1",
        )])
        .scenario(|fixture| tasks::parallel_calls(fixture).boxed_local()),
    of("a tool's message is written twice", I::OneAnswerPerCall)
        .statements(&[
            ("seq, task_id, $1", "seq + again, task_id, $1"),
            (
                "seq, task_id, role, content, thought, calls, call_id, tool, class, by_redial, provider)",
                "seq, task_id, role, content, thought, calls, call_id, tool, class, by_redial, provider)
                 CROSS JOIN LATERAL generate_series(0, CASE WHEN role = 'tool' THEN 100 ELSE 0 END, 100) AS again",
            ),
        ])
        .schema("DROP INDEX messages_call"),
    of("a call ends and its task is not notified", I::EveryTaskEnds)
        .statements(&[("FROM changed WHERE task_id IS NOT NULL", "FROM changed WHERE false")]),
    of("a step is not recorded", I::StepsWithoutGaps)
        .statements(&[(
            "AS i (task_id, step, at, input, decisions)",
            "AS i (task_id, step, at, input, decisions) WHERE step <> 2",
        )]),
    of("the last step is not recorded", I::StepsWithoutGaps)
        .statements(&[(
            "AS i (task_id, step, at, input, decisions)",
            "AS i (task_id, step, at, input, decisions) WHERE step < 4",
        )]),
    of("two tasks of a conversation run at once", I::OneTaskAtATime)
        .statements(&[("AND o.state = 'running' LIMIT 1", "AND false LIMIT 1")])
        .schema("DROP INDEX tasks_running")
        .scenario(|fixture| tasks::two_tasks(fixture).boxed_local()),
    of("a conversation forgets what failed", I::FailuresRemembered)
        .statements(&[("(SELECT b.progress::text FROM tasks b WHERE b.id = last.task_id)", "NULL::text")])
        .scenario(|fixture| tasks::repeated_failure(fixture).boxed_local()),
    // The store checks the tenant twice.
    of("a call is read by its id alone", I::TenantsApart)
        .statements(&[
            ("WHERE id = ANY ($1) AND tenant = $2", "WHERE id = ANY ($1) AND $2::text IS NOT NULL"),
            ("h.tenant AS \"tenant!\"", "'globex'::text AS \"tenant!\""),
        ])
        .scenario(|fixture| calls::two_tenants(fixture).boxed_local()),
];
