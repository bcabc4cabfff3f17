//! Wrong decisions and broken promises that can be switched on: the simulation must find each of them.

/// A mutation of the protocol. Those of the engine are its own (`redial_engine::mutation`); the others are switches of
/// the models in this crate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutation {
    /// A claim is granted whatever state the call is in.
    ClaimWithoutCompare,
    /// A claim does not see that the call was cancelled.
    CancelNotCheckedAtClaim,
    /// A claim takes the delivery count of the job for the attempt.
    DeliveryCountAsAttempt,
    /// A result counts for whatever attempt runs now, whoever sent it.
    NoFenceAtIngest,
    /// A result counts although its attempt is over.
    ResultIngestedTwice,
    /// A result is acknowledged before it is committed.
    AckBeforeCommit,
    /// A result is planned from a look at the call that a cancel has overtaken.
    CancelNotGuardedAtIngest,
    /// A release takes back whatever claim the attempt has now.
    ReleaseWithoutClaim,
    /// A release does not see to it that its claim is not granted later.
    ReleaseWithoutGivingUp,
    /// A release that a cancel has overtaken is dropped.
    ReleaseNotPlannedAgain,
    /// No dispatcher looks at what is due.
    SweeperOff,
    /// A job is published again under the same message id.
    SameMessageId,
    /// Retries have no cap.
    RetriesWithoutCap,
    /// An unsafe tool is tried again after its worker was lost.
    UnsafeRetriedOnLost,
    /// After an outage, leases expire before workers could renew them.
    NoGraceAfterOutage,
    /// A worker does not stop a tool whose lease has ended.
    ToolOutlivesLease,
    /// A submission is acknowledged before it is committed.
    ReplyBeforeCommit,
    /// Postgres forgets the last transactions when it is killed (`synchronous_commit=off`).
    CommitNotDurable,
    /// A task hears of the end of its call in another transaction than that which ends it.
    InboxOutsideTransaction,
    /// Two dispatchers decide about a task at the same time.
    TaskWithoutLock,
    /// A task starts although another one of its conversation runs.
    TaskStartsOutOfTurn,
}

impl Mutation {
    /// Every mutation.
    pub const ALL: [Self; 21] = [
        Self::ClaimWithoutCompare,
        Self::CancelNotCheckedAtClaim,
        Self::DeliveryCountAsAttempt,
        Self::NoFenceAtIngest,
        Self::ResultIngestedTwice,
        Self::AckBeforeCommit,
        Self::CancelNotGuardedAtIngest,
        Self::ReleaseWithoutClaim,
        Self::ReleaseWithoutGivingUp,
        Self::ReleaseNotPlannedAgain,
        Self::SweeperOff,
        Self::SameMessageId,
        Self::RetriesWithoutCap,
        Self::UnsafeRetriedOnLost,
        Self::NoGraceAfterOutage,
        Self::ToolOutlivesLease,
        Self::ReplyBeforeCommit,
        Self::CommitNotDurable,
        Self::InboxOutsideTransaction,
        Self::TaskWithoutLock,
        Self::TaskStartsOutOfTurn,
    ];

    /// The engine's own mutation, if it is one of those.
    pub(crate) const fn of_engine(self) -> Option<redial_engine::mutation::Mutation> {
        use redial_engine::mutation::Mutation as Engine;
        match self {
            Self::RetriesWithoutCap => Some(Engine::RetriesWithoutCap),
            Self::UnsafeRetriedOnLost => Some(Engine::UnsafeRetriedOnLost),
            Self::NoGraceAfterOutage => Some(Engine::NoGraceAfterOutage),
            _ => None,
        }
    }
}
