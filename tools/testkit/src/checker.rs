//! The checker of the invariants: what stands in the database, what was promised to users and what tools did must fit
//! together, whatever was killed meanwhile.
//!
//! It is tested by its own seeded bugs: `tests/end_to_end/checker.rs` breaks each invariant once.

mod conversations;
mod evidence;
mod memory;
mod rules;

use std::fmt;

use chrono::{DateTime, Utc};
use redial_proto::{CallId, TaskId};

pub use conversations::TaskFacts;
pub use evidence::{AttemptFacts, CallFacts, Evidence};
pub use rules::accuse;

use crate::Entry;

/// What must hold after every test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Invariant {
    /// Every acknowledged submission exists, under its key.
    AcknowledgedExists,
    /// After the drain every call has ended.
    EveryCallEnds,
    /// The attempts of a call are 1..n without gaps.
    AttemptsWithoutGaps,
    /// No call has more attempts than its policy allows.
    AttemptsWithinMax,
    /// A call has one outcome: an ended call says when, a failed one says why, and only the last attempt may succeed.
    OneOutcome,
    /// A call has succeeded if, and only if, it has an output.
    SuccessHasOutput,
    /// Each effect belongs to an attempt on record, and an attempt that ran to its end has its effect once.
    EffectsWithinAttempts,
    /// An `unsafe` tool changes the world at most once per call.
    UnsafeOnce,
    /// No two leases of one call overlap, and no two executions of its tool.
    LeasesApart,
    /// Nothing starts after an acknowledged cancel.
    NothingAfterCancel,
    /// Every attempt of a call carries the same idempotency key.
    OneKey,
    /// An outage of NATS or Postgres alone burns no attempt: an attempt is lost only if its worker died or could not be
    /// reached. Nobody knows how far an `unsafe` tool came that a living worker had to stop: that may be lost, too.
    NoAttemptBurnt,
    /// No attempt starts before the retry was due.
    RetriesWhenDue,
    /// After the drain every task has ended.
    EveryTaskEnds,
    /// The steps of a task are 1..n without gaps, up to the last one that it took.
    StepsWithoutGaps,
    /// The messages of a conversation are 1..n without gaps.
    MessagesWithoutGaps,
    /// Each call of an assistant message has exactly one tool message: directly after it, in the order of the calls.
    OneAnswerPerCall,
    /// No two tasks of one conversation run at once.
    OneTaskAtATime,
    /// A call that failed for good in a conversation does not run there a second time.
    FailuresRemembered,
}

impl Invariant {
    /// Every invariant.
    pub const ALL: [Self; 19] = [
        Self::AcknowledgedExists,
        Self::EveryCallEnds,
        Self::AttemptsWithoutGaps,
        Self::AttemptsWithinMax,
        Self::OneOutcome,
        Self::SuccessHasOutput,
        Self::EffectsWithinAttempts,
        Self::UnsafeOnce,
        Self::LeasesApart,
        Self::NothingAfterCancel,
        Self::OneKey,
        Self::NoAttemptBurnt,
        Self::RetriesWhenDue,
        Self::EveryTaskEnds,
        Self::StepsWithoutGaps,
        Self::MessagesWithoutGaps,
        Self::OneAnswerPerCall,
        Self::OneTaskAtATime,
        Self::FailuresRemembered,
    ];
}

/// An invariant that does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accusation {
    /// Which.
    pub invariant: Invariant,
    /// About what.
    pub about: Subject,
    /// What was found.
    pub found: String,
}

/// What an accusation is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// A call.
    Call(CallId),
    /// A task, or its conversation.
    Task(TaskId),
    /// A submission that nobody was told the id of.
    Submission,
}

impl fmt::Display for Accusation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { invariant, about, found } = self;
        match about {
            Subject::Call(call) => write!(f, "{invariant:?}: call {call}: {found}"),
            Subject::Task(task) => write!(f, "{invariant:?}: task {task}: {found}"),
            Subject::Submission => write!(f, "{invariant:?}: {found}"),
        }
    }
}

/// What users were told, what tools did, and what the test itself broke: the database is measured by this.
#[derive(Clone, Debug, Default)]
pub struct Claims {
    /// Calls whose submission was answered `accepted` or `existing`, with their key.
    pub acknowledged: Vec<(CallId, Option<String>)>,
    /// Keys of submissions that the intake stream has acknowledged: of those nobody learns the id.
    pub taken_in: Vec<String>,
    /// Tasks whose submission was answered `accepted` or `existing`.
    pub tasks: Vec<TaskId>,
    /// Calls whose cancel was answered `cancelled` or `running`, and when the answer was there.
    pub cancelled: Vec<(CallId, DateTime<Utc>)>,
    /// What tools did.
    pub deeds: Vec<Entry>,
    /// The test leaves calls that have not ended.
    pub calls_may_live: bool,
    /// The test killed workers or stopped them for longer than a lease.
    pub workers_died: bool,
    /// Workers that stood still for longer than a lease (SIGSTOP): a process that does not run cannot stop its tools.
    pub stood_still: Vec<String>,
    /// Workers that certainly did not die, even if others did.
    pub alive: Vec<String>,
    /// The same to the second: only what these workers held in that time may be lost.
    pub harmed: Vec<Harm>,
}

/// A time in which a worker may have lost what it held: it was killed, stopped, or cut off.
#[derive(Clone, Debug)]
pub struct Harm {
    /// The worker.
    pub worker: String,
    /// From before that.
    pub from: DateTime<Utc>,
    /// Until it can hold leases again; `None` if it is gone.
    pub until: Option<DateTime<Utc>>,
}

impl Harm {
    /// The attempt was held by that worker in that time.
    pub fn touches(&self, attempt: &AttemptFacts) -> bool {
        self.worker == attempt.worker
            && attempt.ended_at >= self.from
            && self.until.is_none_or(|until| attempt.started_at <= until)
    }
}
