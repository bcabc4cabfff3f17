//! The bugs, each with the scenario in which it matters and the invariant that must accuse it.

use redial_testkit::{Accusation, Invariant, Invariant as I};

use crate::{calls, messages::Meddling, statements::Exchange, tasks, wire::Met};

/// A protocol bug, seeded outside of the programs.
pub(crate) struct Bug {
    /// In a few words.
    pub(crate) name: &'static str,
    /// What is wrong in statements.
    pub(crate) statements: &'static [Exchange],
    /// What is wrong in messages.
    pub(crate) messages: Option<Meddling>,
    /// Statements that take out of the tables what would also stand in its way.
    pub(crate) schema: &'static str,
    /// The invariant that must accuse.
    pub(crate) caught_by: Invariant,
    /// Where it matters.
    pub(crate) scenario: Scenario,
}

impl Bug {
    /// For each change of a statement, and for the one of messages: how often it was met.
    pub(crate) fn traces(&self) -> Vec<Met> {
        vec![Met::default(); self.statements.len() + usize::from(self.messages.is_some())]
    }
}

/// Attempts are unique, and ended calls never change: the tables stand behind the guards in the statements.
const NO_PROTECTION: &str = "
    ALTER TABLE attempts DROP CONSTRAINT attempts_pkey;
    ALTER TABLE calls DISABLE TRIGGER ended_calls_never_change;
    ALTER TABLE calls DROP CONSTRAINT calls_check, DROP CONSTRAINT calls_check1";

/// What happens; each is played with the bug and without.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Scenario {
    StaleResult,
    SubmissionInACrash,
    ResultInACrash,
    KilledPostgres,
    OneRetry,
    LostJob,
    SecondDelivery,
    ResultTwice,
    CappedRetries,
    TwoCopiesOfAJob,
    LostWorker,
    CancelledCall,
    CutOffWorker,
    PatientRetry,
    ParallelCalls,
    OneCall,
    TwoTasks,
    RepeatedFailure,
}

impl Bug {
    /// Plays the scenario, with the bug or in good order; what the checker says.
    pub(crate) async fn play(&'static self, seeded: bool) -> Vec<Accusation> {
        match self.scenario {
            Scenario::StaleResult => calls::stale_result(self, seeded).await,
            Scenario::SubmissionInACrash => calls::submission_in_a_crash(self, seeded).await,
            Scenario::ResultInACrash => calls::result_in_a_crash(self, seeded).await,
            Scenario::KilledPostgres => calls::killed_postgres(self, seeded).await,
            Scenario::OneRetry => calls::one_retry(self, seeded).await,
            Scenario::LostJob => calls::lost_job(self, seeded).await,
            Scenario::SecondDelivery => calls::second_delivery(self, seeded).await,
            Scenario::ResultTwice => calls::result_twice(self, seeded).await,
            Scenario::CappedRetries => calls::capped_retries(self, seeded).await,
            Scenario::TwoCopiesOfAJob => calls::two_copies_of_a_job(self, seeded).await,
            Scenario::LostWorker => calls::lost_worker(self, seeded).await,
            Scenario::CancelledCall => calls::cancelled_call(self, seeded).await,
            Scenario::CutOffWorker => calls::cut_off_worker(self, seeded).await,
            Scenario::PatientRetry => calls::patient_retry(self, seeded).await,
            Scenario::ParallelCalls => tasks::parallel_calls(self, seeded).await,
            Scenario::OneCall => tasks::one_call(self, seeded).await,
            Scenario::TwoTasks => tasks::two_tasks(self, seeded).await,
            Scenario::RepeatedFailure => tasks::repeated_failure(self, seeded).await,
        }
    }
}

const NONE: Bug = Bug {
    name: "",
    statements: &[],
    messages: None,
    schema: "",
    caught_by: I::EveryCallEnds,
    scenario: Scenario::OneCall,
};

pub(crate) static BUGS: [Bug; 21] = [
    Bug {
        name: "results are taken without the fence",
        statements: &[
            ("AND c.attempt = i.was_attempt", ""),
            ("AND (i.was_worker IS NULL OR c.worker = i.was_worker)", ""),
        ],
        schema: NO_PROTECTION,
        caught_by: I::AttemptsWithoutGaps,
        scenario: Scenario::StaleResult,
        ..NONE
    },
    Bug {
        name: "a submission is acknowledged before its commit",
        messages: Some(Meddling::AnswersFirst),
        caught_by: I::AcknowledgedExists,
        scenario: Scenario::SubmissionInACrash,
        ..NONE
    },
    Bug {
        name: "a result is acknowledged before its commit",
        messages: Some(Meddling::AnswersFirst),
        caught_by: I::NoAttemptBurnt,
        scenario: Scenario::ResultInACrash,
        ..NONE
    },
    Bug {
        name: "synchronous_commit = off is not refused",
        statements: &[("SELECT current_setting($1)", "SELECT COALESCE('on', current_setting($1))")],
        caught_by: I::AcknowledgedExists,
        scenario: Scenario::KilledPostgres,
        ..NONE
    },
    Bug {
        name: "the sweeper is off",
        statements: &[("FROM calls WHERE wake_at <= (SELECT clock_timestamp())", "FROM calls WHERE false")],
        caught_by: I::EveryCallEnds,
        scenario: Scenario::OneRetry,
        ..NONE
    },
    Bug {
        name: "a job is published again under the same message id",
        messages: Some(Meddling::SameMessageId),
        caught_by: I::EveryCallEnds,
        scenario: Scenario::LostJob,
        ..NONE
    },
    Bug {
        name: "the number of deliveries is the attempt",
        statements: &[("AND c.attempt = i.attempt - 1 ", "")],
        messages: Some(Meddling::DeliveriesAreAttempts),
        caught_by: I::AttemptsWithoutGaps,
        scenario: Scenario::SecondDelivery,
        ..NONE
    },
    Bug {
        name: "a result that came twice is taken twice",
        statements: &[("AND c.state = i.was_state", "")],
        schema: NO_PROTECTION,
        caught_by: I::AttemptsWithoutGaps,
        scenario: Scenario::ResultTwice,
        ..NONE
    },
    Bug {
        name: "retries have no cap",
        statements: &[("effect, retry::text, timeout_ms", "effect, '{\"max_attempts\":1000}'::text, timeout_ms")],
        caught_by: I::AttemptsWithinMax,
        scenario: Scenario::CappedRetries,
        ..NONE
    },
    Bug {
        name: "a claim does not compare",
        statements: &[(
            "(c.state = 'ready' AND c.attempt = i.attempt - 1 AND",
            "(c.state IN ('ready', 'running') AND c.attempt <= i.attempt AND",
        )],
        caught_by: I::UnsafeOnce,
        scenario: Scenario::TwoCopiesOfAJob,
        ..NONE
    },
    Bug {
        name: "an unsafe tool is tried again after a lost worker",
        statements: &[("pool, effect, retry::text", "pool, 'read'::text, retry::text")],
        caught_by: I::UnsafeOnce,
        scenario: Scenario::LostWorker,
        ..NONE
    },
    Bug {
        name: "a cancel is not looked at by a claim",
        statements: &[
            ("((c.state = 'ready' AND", "((c.state IN ('ready', 'cancelled') AND"),
            ("CASE WHEN c.state = 'ready' THEN t.now", "CASE WHEN c.state <> 'running' THEN t.now"),
        ],
        schema: NO_PROTECTION,
        caught_by: I::NothingAfterCancel,
        scenario: Scenario::CancelledCall,
        ..NONE
    },
    Bug {
        name: "a worker goes on after the end of its lease",
        messages: Some(Meddling::EndlessLease),
        caught_by: I::LeasesApart,
        scenario: Scenario::CutOffWorker,
        ..NONE
    },
    Bug {
        name: "a retry does not wait for its time",
        statements: &[(
            "FROM calls WHERE wake_at <= (SELECT clock_timestamp())",
            "FROM calls WHERE wake_at <= (SELECT clock_timestamp()) + interval '1 h'",
        )],
        caught_by: I::RetriesWhenDue,
        scenario: Scenario::PatientRetry,
        ..NONE
    },
    Bug {
        name: "a tool's message stands where the conversation ends",
        statements: &[(
            "seq, task_id, $5",
            "CASE WHEN role <> 'tool' THEN seq ELSE (
                 SELECT max(m.seq) + 1 FROM messages m WHERE (m.tenant, m.conversation) = (i.tenant, i.conversation)
             ) END, task_id, $5",
        )],
        caught_by: I::OneAnswerPerCall,
        scenario: Scenario::ParallelCalls,
        ..NONE
    },
    Bug {
        name: "a tool's message is written twice",
        statements: &[
            ("seq, task_id, $5", "seq + again, task_id, $5"),
            (
                "seq, task_id, role, content, thought, calls, call_id, tool, class, by_redial, provider)",
                "seq, task_id, role, content, thought, calls, call_id, tool, class, by_redial, provider)
                 CROSS JOIN LATERAL generate_series(0, CASE WHEN role = 'tool' THEN 100 ELSE 0 END, 100) AS again",
            ),
        ],
        schema: "DROP INDEX messages_call",
        caught_by: I::OneAnswerPerCall,
        scenario: Scenario::OneCall,
        ..NONE
    },
    Bug {
        name: "a call ends and its task is not told",
        statements: &[("WHERE told_task IS NOT NULL", "WHERE told_task IS NOT NULL AND NOT ends")],
        caught_by: I::EveryTaskEnds,
        scenario: Scenario::OneCall,
        ..NONE
    },
    Bug {
        name: "a step is not recorded",
        statements: &[(
            "AS i (task_id, n, at, input, decisions)",
            "AS i (task_id, n, at, input, decisions) WHERE n <> 2",
        )],
        caught_by: I::StepsWithoutGaps,
        scenario: Scenario::OneCall,
        ..NONE
    },
    Bug {
        name: "the last step is not recorded",
        statements: &[(
            "AS i (task_id, n, at, input, decisions)",
            "AS i (task_id, n, at, input, decisions) WHERE n < 4",
        )],
        caught_by: I::StepsWithoutGaps,
        scenario: Scenario::OneCall,
        ..NONE
    },
    Bug {
        name: "two tasks of a conversation run at once",
        statements: &[("AND o.state = 'running' LIMIT 1", "AND false LIMIT 1")],
        schema: "DROP INDEX tasks_running",
        caught_by: I::OneTaskAtATime,
        scenario: Scenario::TwoTasks,
        ..NONE
    },
    Bug {
        name: "a conversation forgets what failed",
        statements: &[("(SELECT b.progress::text FROM tasks b WHERE b.id = last.task_id)", "NULL::text")],
        caught_by: I::FailuresRemembered,
        scenario: Scenario::RepeatedFailure,
        ..NONE
    },
];
