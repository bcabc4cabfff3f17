//! Which servers a run has more than once.

/// Servers of a run that are more than one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Redundancy {
    /// NATS is a cluster of three.
    pub(crate) cluster: bool,
    /// Postgres has a synchronous standby.
    pub(crate) standby: bool,
}
