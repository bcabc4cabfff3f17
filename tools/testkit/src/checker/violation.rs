//! The invariants, and what is reported when one does not hold.

use std::fmt;

use redial_proto::{CallId, TaskId};
use strum::VariantArray;

/// What must hold after every test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, VariantArray)]
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
    /// An outage of NATS or Postgres alone costs no attempt: an attempt is lost only if its worker died or could not be
    /// reached. How far an `unsafe` tool came that a live worker had to stop is unknown: that may be lost, too.
    NoAttemptLostToOutage,
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
    /// No byte of one tenant reaches the other: neither a row of it, nor anything that its users receive.
    TenantsApart,
}

impl Invariant {
    pub const ALL: &'static [Self] = Self::VARIANTS;
}

/// An invariant that does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    pub invariant: Invariant,
    pub about: Subject,
    pub found: String,
}

/// What a violation is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    Call(CallId),
    /// A task, or its conversation.
    Task(TaskId),
    /// A submission whose id no client received.
    Submission,
    /// Somebody who received something, or a row that belongs to no call and no task.
    Tenant,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { invariant, about, found } = self;
        match about {
            Subject::Call(call) => write!(f, "{invariant:?}: call {call}: {found}"),
            Subject::Task(task) => write!(f, "{invariant:?}: task {task}: {found}"),
            Subject::Submission | Subject::Tenant => write!(f, "{invariant:?}: {found}"),
        }
    }
}
