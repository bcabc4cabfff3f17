//! Tools and who serves them: rows of `tools`, `retry_budgets` and `workers`.

use std::collections::BTreeSet;

use redial_proto::{ToolSpec, WorkerIdentity};

use crate::Time;

/// The health of a tool, as it is on record: see the engine's `health`.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolHealth {
    pub tool: String,
    /// Retries that may run now.
    pub tokens: f64,
    /// Retry tokens earned per second.
    pub per_second: f64,
    /// Successes per second while it does not fail.
    pub usual_rate: f64,
    /// Successes since `stepped_at`.
    pub successes: f64,
    /// Failures since `stepped_at`.
    pub failures: f64,
    /// The first failure since its last success; `None` while it succeeds.
    pub failing_since: Option<Time>,
    /// When it succeeded again after an outage; `None` ten minutes later, once no retry waits any more.
    pub recovering_since: Option<Time>,
    /// When the rate and the state were last decided.
    pub stepped_at: Time,
    /// Successes since `learned_since`.
    pub learned: f64,
    /// Since when successes are counted for the usual rate.
    pub learned_since: Time,
    /// When tokens were last earned.
    pub updated_at: Time,
}

/// Live workers of one pool that have the same tools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveConsumer {
    /// Its name on the job stream.
    pub name: String,
    pub pool: String,
    /// The tools that all of these workers have.
    pub tools: BTreeSet<String>,
    /// Calls that they can run at once.
    pub slots: u32,
    pub workers: u32,
}

/// A tool on record, as a registration of it is judged by.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolOnRecord {
    /// As it is registered; `None` if this version cannot read it.
    pub spec: Option<ToolSpec>,
    /// What an operator accepted last from the identity that registers it.
    pub accepted: Option<ToolSpec>,
    /// The identities that may serve it.
    pub identities: Vec<WorkerIdentity>,
}

/// What becomes of the registration of a tool that is on record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// It replaces the tool on record, and its identity may serve it.
    Accepted {
        /// What would have waited for an operator, in words.
        unasked: Vec<String>,
    },
    Waits {
        reasons: Vec<String>,
    },
}
