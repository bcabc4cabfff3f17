//! Wrong decisions and broken guarantees that can be switched on: the simulation must detect each of them.

/// A mutation of the protocol. Some are switches of the engine (`redial_engine::mutation`), the others of the models in
/// this crate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutation {
    /// A claim is granted whatever state the call is in.
    ClaimWithoutCompare,
    /// A claim ignores that the call was cancelled.
    CancelNotCheckedAtClaim,
    /// A claim takes the delivery count of the job for the attempt.
    DeliveryCountAsAttempt,
    /// A result counts for the current attempt, whichever worker and attempt it is from.
    NoFenceAtIngest,
    /// A result counts although its attempt is over.
    ResultIngestedTwice,
    /// A result is acknowledged before it is committed.
    AckBeforeCommit,
    /// A result is applied although the call was cancelled after it was read.
    CancelNotGuardedAtIngest,
    /// A release applies to the current claim of the attempt, whichever claim it names.
    ReleaseWithoutClaim,
    /// A release does not keep its claim from being granted later.
    ReleaseWithoutGivingUp,
    /// A release is dropped if the call was cancelled after it was read.
    ReleaseNotPlannedAgain,
    /// No dispatcher sweeps.
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
    /// A dispatcher publishes however many jobs are on the stream.
    WindowIgnored,
    /// A dispatcher that has not looked at the stream takes it for empty.
    UnreadStreamIsEmpty,
    /// First attempts and retries are each given the whole room of a window.
    RoomGivenTwice,
    /// Jobs are published for workers that are gone.
    JobsForGoneWorkers,
    /// Workers that were not seen for long keep a consumer that was given to others with other tools.
    ConsumerKeepsWorkers,
    /// A worker claims whatever its consumer brings.
    ForeignJobsClaimed,
    /// Retries are published without a token of their tool.
    RetriesWithoutTokens,
    /// A sweep leaves a lost job as it is.
    LostJobIsLeft,
    /// A call whose job was lost with the stream is not put into the backlog.
    RequeuedWithoutBacklog,
    /// A call that was fed is checked at its deadline only.
    FedAndNotChecked,
    /// No dispatcher feeds the queue.
    FeederOff,
    /// A call ends in one transaction, and the inbox of its task gets the item in another one.
    InboxOutsideTransaction,
    /// Two dispatchers plan a task at the same time.
    TaskWithoutLock,
    /// A task starts although another one of its conversation runs.
    TaskStartsOutOfTurn,
}

impl Mutation {
    /// Every mutation.
    pub const ALL: [Self; 32] = [
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
        Self::WindowIgnored,
        Self::UnreadStreamIsEmpty,
        Self::RoomGivenTwice,
        Self::JobsForGoneWorkers,
        Self::ConsumerKeepsWorkers,
        Self::ForeignJobsClaimed,
        Self::RetriesWithoutTokens,
        Self::LostJobIsLeft,
        Self::RequeuedWithoutBacklog,
        Self::FedAndNotChecked,
        Self::FeederOff,
        Self::InboxOutsideTransaction,
        Self::TaskWithoutLock,
        Self::TaskStartsOutOfTurn,
    ];

    /// The switch of the engine, if this is one of its mutations.
    pub(crate) const fn of_engine(self) -> Option<redial_engine::mutation::Mutation> {
        use redial_engine::mutation::Mutation as Engine;
        match self {
            Self::RetriesWithoutCap => Some(Engine::RetriesWithoutCap),
            Self::UnsafeRetriedOnLost => Some(Engine::UnsafeRetriedOnLost),
            Self::NoGraceAfterOutage => Some(Engine::NoGraceAfterOutage),
            Self::WindowIgnored => Some(Engine::WindowIgnored),
            Self::UnreadStreamIsEmpty => Some(Engine::UnreadStreamIsEmpty),
            Self::JobsForGoneWorkers => Some(Engine::JobsForGoneWorkers),
            Self::RetriesWithoutTokens => Some(Engine::RetriesWithoutTokens),
            Self::LostJobIsLeft => Some(Engine::LostJobIsLeft),
            _ => None,
        }
    }
}
