//! Invariants: what must hold in every history, whatever went wrong.

use std::fmt;

/// A property of every history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Invariant {
    /// Every acknowledged submission exists.
    AcknowledgedExists,
    /// After the drain every call has ended.
    EveryCallEnds,
    /// An ended call never changes.
    EndedStaysEnded,
    /// The attempts of a call are 1..n without gaps.
    AttemptsWithoutGaps,
    /// No call has more attempts than its policy allows.
    AttemptsWithinMax,
    /// A call has one outcome: it succeeded if, and only if, its last attempt did, and no other.
    OneOutcome,
    /// The recorded result of an attempt is what its own worker reported, or that it was lost.
    RecordedAsReported,
    /// A worker learns that its report is on record, or its attempt given back, only if that is so.
    AcknowledgedReportIsKept,
    /// Each effect belongs to an attempt on record, one effect to one attempt.
    EffectsWithinAttempts,
    /// An `unsafe` tool has its effect at most once per call.
    UnsafeOnce,
    /// No two leases of one call overlap, and no two executions of its tool.
    LeasesApart,
    /// A claim is granted only while its worker waits for it: not after it has given it up, nor when it was silent for two thirds of a
    /// lease.
    ClaimsEnd,
    /// A worker stops only those attempts as lost that are no longer its own.
    OnlyLostIsStopped,
    /// Only grants that the record lost are taken back.
    OnlyLostIsTakenBack,
    /// Nothing starts after an acknowledged cancel.
    NothingAfterCancel,
    /// An outage of NATS or Postgres, or the death of a dispatcher, burns no attempt.
    NoAttemptLostToOutage,
    /// A tenant whose calls wait gets as much room as any other, and as much for its retries as for its first attempts.
    WhoWaitsHasTurns,
    /// After the drain every task has ended.
    EveryTaskEnds,
    /// The steps of a task are 1..n without gaps.
    StepsWithoutGaps,
    /// The messages of a conversation are 1..n without gaps, each written once.
    MessagesWithoutGaps,
    /// Each call of an assistant message has exactly one tool message: directly after it, in the order of the calls.
    OneAnswerPerCall,
    /// Tasks of one conversation run one after the other, in the order in which they were submitted.
    OneTaskAtATime,
    /// A task that is replayed with its whole conversation decides the same again.
    ReplayAgrees,
}

/// An invariant that does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    pub invariant: Invariant,
    /// How the history violates it.
    pub found: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.invariant, self.found)
    }
}
