//! Wrong decisions that the simulation must catch. Without the feature `mutations` none can be switched on.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutation {
    /// An unsafe tool is tried again after its worker was lost.
    UnsafeRetriedOnLost,
    /// The number of attempts has no limit.
    RetriesWithoutCap,
    /// After an outage, leases expire before workers could renew them.
    NoGraceAfterOutage,
    /// A job that is lost counts as queued.
    LostJobIsLeft,
}

#[cfg(feature = "mutations")]
thread_local! {
    static ACTIVE: std::cell::Cell<Option<Mutation>> = const { std::cell::Cell::new(None) };
}

/// Switches a mutation on for this thread, or all of them off.
#[cfg(feature = "mutations")]
pub fn activate(mutation: Option<Mutation>) {
    ACTIVE.set(mutation);
}

#[cfg(feature = "mutations")]
pub(crate) fn is(mutation: Mutation) -> bool {
    ACTIVE.get() == Some(mutation)
}

#[cfg(not(feature = "mutations"))]
pub(crate) const fn is(_: Mutation) -> bool {
    false
}
