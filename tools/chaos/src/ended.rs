//! A run that is over.

use std::time::Duration;

use redial_proto::CallId;
use redial_testkit::{Claims, Evidence, Violation};

use crate::{
    cli::RunArgs,
    client::Clients,
    faults::{Injector, Outcome},
    schedule::Step,
    watchdog::Standstills,
};

/// How long a worker holds a call without a heartbeat. Short, so that many can be lost in a run.
pub(crate) const LEASE: Duration = Duration::from_secs(3);

/// A run that is over.
pub(crate) struct Over<'a> {
    pub(crate) seed: u64,
    pub(crate) args: &'a RunArgs,
    pub(crate) nats: String,
    pub(crate) took: Duration,
    pub(crate) planned: usize,
    pub(crate) steps: &'a [(Step, Outcome)],
    pub(crate) injector: &'a Injector,
    pub(crate) clients: &'a Clients,
    pub(crate) machine: &'a Standstills,
}

/// The same with what was found, for the report.
pub(crate) struct Ended<'a> {
    pub(crate) run: &'a Over<'a>,
    pub(crate) evidence: &'a Evidence,
    pub(crate) claims: &'a Claims,
    pub(crate) violations: &'a [Violation],
    /// Calls that ended otherwise than their orders allow, and how.
    pub(crate) unexpected: &'a [(CallId, String)],
    /// Where the secret was found.
    pub(crate) leaks: &'a [String],
}
