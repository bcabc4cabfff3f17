//! Wrong decisions and broken guarantees that can be switched on: the simulation must detect each of them.

use redial_engine::mutation::Mutation as EngineMutation;
use strum::VariantArray;

/// A mutation of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, VariantArray)]
pub enum Mutation {
    /// A result counts for the current attempt, whichever worker and attempt it is from.
    NoFenceAtIngest,
    /// A result is applied although the call was cancelled after it was read.
    CancelNotGuardedAtIngest,
    /// A release applies to the current claim of the attempt, whichever claim it names.
    ReleaseWithoutClaim,
    /// A claim is granted whenever it arrives.
    ClaimsNeverEnd,
    /// A grant whose call is locked counts as lost.
    LockedIsLost,
    /// A worker takes the lease of a call that is locked for renewed.
    LockedIsRenewed,
    /// A heartbeat does not take back a grant that the record lost.
    LostGrantStaysLost,
    /// A report of a grant that the record lost comes too late.
    LostReportIsLate,
    /// A heartbeat takes back what was released.
    ReleasedIsTakenBack,
    /// What an answer to a heartbeat says of one grant of an attempt counts for all of them.
    AnswersWithoutClaim,
    /// A release is dropped if the call was cancelled after it was read.
    ReleaseNotPlannedAgain,
    /// No dispatcher sweeps.
    SweeperOff,
    /// A worker does not stop a tool whose lease has ended.
    ToolOutlivesLease,
    /// A worker stops an unsafe tool whose lease has ended, though nobody else is granted its attempt.
    UnsafeStopsWithLease,
    /// A submission is acknowledged before it is committed.
    ReplyBeforeCommit,
    /// A call that was fed is checked at its deadline only.
    FedAndNotChecked,
    /// No dispatcher feeds the queue.
    FeederOff,
    /// First attempts get the room that retries leave.
    RetriesFirst,
    /// A call ends in one transaction, and the inbox of its task gets the item in another one.
    InboxOutsideTransaction,
    /// A task starts although another one of its conversation runs.
    TaskStartsOutOfTurn,
    /// Retries have no cap.
    RetriesWithoutCap,
    /// An unsafe tool is tried again after its worker was lost.
    UnsafeRetriedOnLost,
    /// After an outage, leases expire before workers could renew them.
    NoGraceAfterOutage,
    /// A sweep leaves a lost job as it is.
    LostJobIsLeft,
}

impl Mutation {
    pub const ALL: &'static [Self] = Self::VARIANTS;

    /// Returns the switch of the engine, if this is one of its mutations.
    pub(crate) const fn of_engine(self) -> Option<EngineMutation> {
        Some(match self {
            Self::RetriesWithoutCap => EngineMutation::RetriesWithoutCap,
            Self::UnsafeRetriedOnLost => EngineMutation::UnsafeRetriedOnLost,
            Self::NoGraceAfterOutage => EngineMutation::NoGraceAfterOutage,
            Self::LostJobIsLeft => EngineMutation::LostJobIsLeft,
            _ => return None,
        })
    }
}
