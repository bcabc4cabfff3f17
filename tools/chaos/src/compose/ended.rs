//! A run that is over, for the report.

use std::time::Duration;

use redial_testkit::{Claims, Evidence};

use super::faults::Injected;

/// A run that is over.
pub(super) struct Ended {
    pub(super) seed: u64,
    pub(super) took: Duration,
    pub(super) injected: Vec<Injected>,
    pub(super) evidence: Evidence,
    pub(super) claims: Claims,
    /// What was not acknowledged, was answered wrongly, or did not end.
    pub(super) wrong: Vec<String>,
    /// Services whose containers did not come back.
    pub(super) unhealthy: Vec<String>,
    /// Panics in the logs.
    pub(super) crashes: Vec<String>,
    pub(super) over_http: usize,
    pub(super) asked_again: u64,
}
