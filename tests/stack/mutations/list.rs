//! The mutations, each with the scenario in which it matters and the invariant that must be violated.

use futures_util::{FutureExt, future::LocalBoxFuture};
use redial_test_stack::{Invariant, Invariant as I, Violation};

use super::{calls, messages::MessageChange, statements::Replacement, tasks, wire::Hits};

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
    /// The invariant that it violates.
    pub(crate) caught_by: Invariant,
    /// The scenario in which it matters.
    pub(crate) scenario: Scenario,
}

impl Mutation {
    /// A counter for each replacement in a statement and for the change of messages.
    pub(crate) fn counters(&self) -> Vec<Hits> {
        vec![Hits::default(); self.statements.len() + usize::from(self.messages.is_some())]
    }
}

/// The tables repeat some guards of the statements: attempts are unique, and ended calls never change.
const NO_PROTECTION: &str = "
    ALTER TABLE attempts DROP CONSTRAINT attempts_pkey;
    ALTER TABLE calls DISABLE TRIGGER ended_calls_never_change;
    ALTER TABLE calls DROP CONSTRAINT calls_check, DROP CONSTRAINT calls_check1";

/// What happens, with the mutation or without; returns what the checker finds.
pub(crate) type Scenario = fn(&'static Mutation, bool) -> LocalBoxFuture<'static, Vec<Violation>>;

const NONE: Mutation = Mutation {
    name: "",
    statements: &[],
    messages: None,
    schema: "",
    caught_by: I::EveryCallEnds,
    scenario: |mutation, mutated| tasks::one_call(mutation, mutated).boxed_local(),
};

pub(crate) static MUTATIONS: [Mutation; 22] = [
    Mutation {
        name: "results are ingested without the fencing token",
        statements: &[
            ("AND c.attempt = i.was_attempt AND c.worker = i.was_worker AND c.claim_id = i.was_claim", ""),
            ("SET state = 'succeeded', wake_at", "SET state = 'succeeded', attempt = i.was_attempt, wake_at"),
        ],
        schema: NO_PROTECTION,
        caught_by: I::AttemptsWithoutGaps,
        scenario: |mutation, mutated| calls::stale_result(mutation, mutated).boxed_local(),
        ..NONE
    },
    Mutation {
        name: "a submission is acknowledged before its commit",
        messages: Some(MessageChange::AnswersFirst),
        caught_by: I::AcknowledgedExists,
        scenario: |mutation, mutated| calls::submission_in_a_crash(mutation, mutated).boxed_local(),
        ..NONE
    },
    Mutation {
        name: "a result is acknowledged before its commit",
        messages: Some(MessageChange::AnswersFirst),
        caught_by: I::EffectsWithinAttempts,
        scenario: |mutation, mutated| calls::result_in_a_crash(mutation, mutated).boxed_local(),
        ..NONE
    },
    Mutation {
        name: "synchronous_commit = off is not refused",
        statements: &[("SELECT current_setting($1)", "SELECT COALESCE('on', current_setting($1))")],
        caught_by: I::AcknowledgedExists,
        scenario: |mutation, mutated| calls::killed_postgres(mutation, mutated).boxed_local(),
        ..NONE
    },
    Mutation {
        name: "no sweeper runs",
        statements: &[(
            "num_nonnulls(backlog_at) = 0 AND wake_at >= COALESCE($2::timestamptz, '-infinity') AND wake_at <=",
            "wake_at >= COALESCE($2::timestamptz, '-infinity') AND false AND wake_at <=",
        )],
        caught_by: I::EveryCallEnds,
        scenario: |mutation, mutated| calls::one_retry(mutation, mutated).boxed_local(),
        ..NONE
    },
    Mutation {
        name: "a job is published again under the same message id",
        messages: Some(MessageChange::SameMessageId),
        caught_by: I::EveryCallEnds,
        scenario: |mutation, mutated| calls::lost_job(mutation, mutated).boxed_local(),
        ..NONE
    },
    Mutation {
        name: "the number of deliveries is the attempt",
        statements: &[("AND c.attempt = i.attempt - 1 ", "")],
        messages: Some(MessageChange::DeliveriesAreAttempts),
        caught_by: I::AttemptsWithoutGaps,
        scenario: |mutation, mutated| calls::second_delivery(mutation, mutated).boxed_local(),
        ..NONE
    },
    Mutation {
        name: "a result that arrives twice is ingested twice",
        statements: &[("AND c.state = 'running' AND c.attempt = i.was_attempt", "AND c.attempt = i.was_attempt")],
        schema: NO_PROTECTION,
        caught_by: I::AttemptsWithoutGaps,
        scenario: |mutation, mutated| calls::result_twice(mutation, mutated).boxed_local(),
        ..NONE
    },
    Mutation {
        name: "retries have no cap",
        statements: &[("c.retry::text, c.timeout_ms", "'{\"max_attempts\":1000}'::text, c.timeout_ms")],
        caught_by: I::AttemptsWithinMax,
        scenario: |mutation, mutated| calls::capped_retries(mutation, mutated).boxed_local(),
        ..NONE
    },
    Mutation {
        name: "a claim ignores the call's state",
        statements: &[(
            "(c.state = 'ready' AND c.attempt = i.attempt - 1 AND",
            "(c.state IN ('ready', 'running') AND c.attempt <= i.attempt AND",
        )],
        caught_by: I::UnsafeOnce,
        scenario: |mutation, mutated| calls::two_copies_of_a_job(mutation, mutated).boxed_local(),
        ..NONE
    },
    Mutation {
        name: "an unsafe tool is retried after a lost worker",
        statements: &[("effect AS \"effect!\"", "'read'::text AS \"effect!\"")],
        caught_by: I::UnsafeOnce,
        scenario: |mutation, mutated| calls::lost_worker(mutation, mutated).boxed_local(),
        ..NONE
    },
    Mutation {
        name: "a claim ignores a cancel",
        statements: &[
            ("((c.state = 'ready' AND", "((c.state IN ('ready', 'cancelled') AND"),
            ("CASE WHEN c.state = 'ready' THEN t.now", "CASE WHEN c.state <> 'running' THEN t.now"),
        ],
        schema: NO_PROTECTION,
        caught_by: I::NothingAfterCancel,
        scenario: |mutation, mutated| calls::cancelled_call(mutation, mutated).boxed_local(),
        ..NONE
    },
    Mutation {
        name: "a worker continues after the end of its lease",
        messages: Some(MessageChange::EndlessLease),
        caught_by: I::LeasesApart,
        scenario: |mutation, mutated| calls::cut_off_worker(mutation, mutated).boxed_local(),
        ..NONE
    },
    Mutation {
        name: "a retry does not wait for its time",
        statements: &[(
            "num_nonnulls(backlog_at) = 0 AND wake_at >= COALESCE($2::timestamptz, '-infinity') AND wake_at <= (SELECT clock_timestamp())",
            "num_nonnulls(backlog_at) = 0 AND wake_at >= COALESCE($2::timestamptz, '-infinity') AND wake_at <= (SELECT clock_timestamp())
                + interval '1 h'",
        )],
        caught_by: I::RetriesWhenDue,
        scenario: |mutation, mutated| calls::patient_retry(mutation, mutated).boxed_local(),
        ..NONE
    },
    Mutation {
        name: "a tool's message is appended at the conversation's end",
        statements: &[(
            "seq, task_id, $1",
            "CASE WHEN role <> 'tool' THEN seq ELSE (
                 SELECT max(m.seq) + 1 FROM messages m WHERE (m.tenant, m.conversation) = (i.tenant, i.conversation)
             ) END, task_id, $1",
        )],
        caught_by: I::OneAnswerPerCall,
        scenario: |mutation, mutated| tasks::parallel_calls(mutation, mutated).boxed_local(),
        ..NONE
    },
    Mutation {
        name: "a tool's message is written twice",
        statements: &[
            ("seq, task_id, $1", "seq + again, task_id, $1"),
            (
                "seq, task_id, role, content, thought, calls, call_id, tool, class, by_redial, provider)",
                "seq, task_id, role, content, thought, calls, call_id, tool, class, by_redial, provider)
                 CROSS JOIN LATERAL generate_series(0, CASE WHEN role = 'tool' THEN 100 ELSE 0 END, 100) AS again",
            ),
        ],
        schema: "DROP INDEX messages_call",
        caught_by: I::OneAnswerPerCall,
        scenario: |mutation, mutated| tasks::one_call(mutation, mutated).boxed_local(),
        ..NONE
    },
    Mutation {
        name: "a call ends and its task is not notified",
        statements: &[("FROM changed WHERE task_id IS NOT NULL", "FROM changed WHERE false")],
        caught_by: I::EveryTaskEnds,
        scenario: |mutation, mutated| tasks::one_call(mutation, mutated).boxed_local(),
        ..NONE
    },
    Mutation {
        name: "a step is not recorded",
        statements: &[(
            "AS i (task_id, step, at, input, decisions)",
            "AS i (task_id, step, at, input, decisions) WHERE step <> 2",
        )],
        caught_by: I::StepsWithoutGaps,
        scenario: |mutation, mutated| tasks::one_call(mutation, mutated).boxed_local(),
        ..NONE
    },
    Mutation {
        name: "the last step is not recorded",
        statements: &[(
            "AS i (task_id, step, at, input, decisions)",
            "AS i (task_id, step, at, input, decisions) WHERE step < 4",
        )],
        caught_by: I::StepsWithoutGaps,
        scenario: |mutation, mutated| tasks::one_call(mutation, mutated).boxed_local(),
        ..NONE
    },
    Mutation {
        name: "two tasks of a conversation run at once",
        statements: &[("AND o.state = 'running' LIMIT 1", "AND false LIMIT 1")],
        schema: "DROP INDEX tasks_running",
        caught_by: I::OneTaskAtATime,
        scenario: |mutation, mutated| tasks::two_tasks(mutation, mutated).boxed_local(),
        ..NONE
    },
    Mutation {
        name: "a conversation forgets what failed",
        statements: &[("(SELECT b.progress::text FROM tasks b WHERE b.id = last.task_id)", "NULL::text")],
        caught_by: I::FailuresRemembered,
        scenario: |mutation, mutated| tasks::repeated_failure(mutation, mutated).boxed_local(),
        ..NONE
    },
    Mutation {
        name: "a call is read by its id alone",
        // The store checks the tenant twice.
        statements: &[
            ("WHERE id = ANY ($1) AND tenant = $2", "WHERE id = ANY ($1) AND $2::text IS NOT NULL"),
            ("h.tenant AS \"tenant!\"", "'globex'::text AS \"tenant!\""),
        ],
        caught_by: I::TenantsApart,
        scenario: |mutation, mutated| calls::two_tenants(mutation, mutated).boxed_local(),
        ..NONE
    },
];
