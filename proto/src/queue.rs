//! Messages between dispatchers and workers.
//!
//! Unknown fields are ignored here, so that newer and older processes can run side by side: see [`contract`].

mod pack;

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

pub use self::pack::{Job, Pack, PackedJob, ReturnedPack};
use crate::{CallId, ClaimId, Failure, Outcome, TaskId, ToolEffect, ToolSpec, WorkerId, contract};

/// One attempt of one call, as a job names it, before it is granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct JobRef {
    /// The call.
    pub call: CallId,
    /// The attempt, from 1.
    pub attempt: u32,
}

/// Asks for the right to run jobs. Sent as `claim`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClaimRequest {
    /// The same claim sent again, at any time, gets what it was granted before.
    pub claim: ClaimId,
    /// The worker that will run them.
    pub worker: WorkerId,
    /// Nothing is granted for the first time after this, by the database's clock. The worker takes the `at` of the last answer that it
    /// had, adds the time that has passed since, and a third of a lease; and at most two thirds of a lease after that `at`.
    pub not_after: DateTime<Utc>,
    /// At most 256 jobs.
    pub jobs: Vec<ClaimJob>,
    /// Jobs that it pulled in packs and has no free slots for: they are published again at once, for others. At most 256 packs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub returned: Vec<ReturnedPack>,
}

/// One job of a claim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClaimJob {
    /// The call.
    pub call: CallId,
    /// The number of the attempt, from 1.
    pub attempt: u32,
    /// The tool, as the job names it: one that the worker may serve.
    pub tool: String,
}

impl ClaimJob {
    /// The attempt that is asked for.
    pub const fn job_ref(&self) -> JobRef {
        JobRef { call: self.call, attempt: self.attempt }
    }
}

/// What may be run. A job of the request that is not here must not be run: its message is acknowledged and dropped.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ClaimReply {
    /// The lease of all grants, in ms, counted by the worker from when it sent the claim.
    pub lease_ms: u64,
    /// The granted attempts.
    pub grants: Vec<Grant>,
}

/// The right to run one attempt, with everything that is needed for it.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Grant {
    /// The call.
    pub call: CallId,
    /// The attempt, from 1.
    pub attempt: u32,
    /// The tool's name.
    pub tool: String,
    /// A JSON object, checked against the tool's schema; `null` if `apart`.
    #[schemars(with = "serde_json::Value")]
    pub arguments: Box<RawValue>,
    /// The arguments are too large for this message: ask for them with [`crate::PieceRequest::Open`].
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub apart: bool,
    /// How long this attempt may take, in ms; the call's total deadline is already taken into account.
    pub timeout_ms: u64,
    /// The tool's effect, as it was when the call was submitted. A worker treats one of a newer version like `unsafe`: it repeats
    /// nothing that it does not know to be harmless.
    #[serde(deserialize_with = "ToolEffect::carefully")]
    pub effect: ToolEffect,
    /// The same for every attempt of the call, and for its redrives.
    pub idempotency_key: String,
    /// The tenant that the call belongs to.
    pub tenant: String,
    /// The conversation that the call belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<String>,
    /// The task that the call belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    /// W3C trace context of the submission.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
}

impl Grant {
    /// The attempt that this grants.
    pub const fn job_ref(&self) -> JobRef {
        JobRef { call: self.call, attempt: self.attempt }
    }
}

/// A worker's heartbeat: renews the leases of everything it runs. Sent as `heartbeat` every third of a lease.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Heartbeat {
    /// The worker.
    pub worker: WorkerId,
    /// All attempts that it runs, and those that have ended and are not on record yet. More than 8,000 are sent in several
    /// messages.
    pub running: Vec<GrantRef>,
    /// Calls that it can run at once, over all pools.
    pub slots: u32,
    /// True once it takes no more jobs.
    #[serde(default)]
    pub draining: bool,
    /// It held all of them at this time of the database's clock, if not later: the `at` of the last answer that it had, and the time
    /// that has passed since it came. Without it, a grant that the record does not know is taken back only of a call that was never
    /// started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_at: Option<DateTime<Utc>>,
}

/// The answer to a heartbeat.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HeartbeatReply {
    /// Grants that are no longer this worker's: stop them, report nothing.
    #[serde(default)]
    pub lost: Vec<GrantRef>,
    /// Grants whose call was cancelled: stop them, report class `cancelled`.
    #[serde(default)]
    pub cancelled: Vec<GrantRef>,
    /// Grants whose calls another transaction has locked, or that are taken back once the worker has registered: they are not lost, and
    /// their leases stay as they are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub locked: Vec<GrantRef>,
    /// True if the dispatcher does not know this worker: register again.
    #[serde(default)]
    pub register: bool,
    /// When this was answered, by the database's clock; absent with `register`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<DateTime<Utc>>,
    /// The lease of what was renewed, in ms, counted by the worker from when it sent the heartbeat.
    pub lease_ms: u64,
}

/// One grant of one attempt: with the worker the fencing token of everything that is said about it. A released attempt is granted again
/// under the same number, perhaps to the same worker: only the claim tells the two grants apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub struct GrantRef {
    /// The call.
    pub call: CallId,
    /// The attempt, from 1.
    pub attempt: u32,
    /// The claim that it was granted to.
    pub claim: ClaimId,
}

impl JobRef {
    /// The attempt, granted to this claim.
    pub const fn granted_to(self, claim: ClaimId) -> GrantRef {
        GrantRef { call: self.call, attempt: self.attempt, claim }
    }
}

impl GrantRef {
    /// The attempt that was granted.
    pub const fn job_ref(&self) -> JobRef {
        JobRef { call: self.call, attempt: self.attempt }
    }
}

/// Gives attempts back unstarted or unfinished; they do not count. Sent as `release`.
/// Only for attempts that certainly had no effect, or whose tool may run twice: any effect but `unsafe`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReleaseRequest {
    /// The worker.
    pub worker: WorkerId,
    /// The grants that it gives back.
    pub jobs: Vec<GrantRef>,
}

/// The answer to a release.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReleaseReply {
    /// How many were released; the others no longer belonged to this worker.
    pub released: u32,
}

/// How one attempt ended. Exactly one of `output` and `error` is set.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Report {
    /// The call.
    pub call: CallId,
    /// The attempt, from 1.
    pub attempt: u32,
    /// The claim under which the attempt was granted: nobody but the worker and the dispatchers knows it.
    pub claim: ClaimId,
    /// How long the tool ran, in ms, by the worker's monotonic clock.
    pub duration_ms: u64,
    /// The tool's result: any JSON, kept as it was written.
    #[serde(default, deserialize_with = "crate::fields::present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Value>")]
    pub output: Option<Box<RawValue>>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Failure>,
}

impl Report {
    /// The attempt that this reports.
    pub const fn job_ref(&self) -> JobRef {
        JobRef { call: self.call, attempt: self.attempt }
    }

    /// The attempt, with the claim under which it was granted.
    pub const fn grant_ref(&self) -> GrantRef {
        GrantRef { call: self.call, attempt: self.attempt, claim: self.claim }
    }

    /// The outcome, or what is wrong with the report.
    pub fn outcome(self) -> Result<Outcome, &'static str> {
        match (self.output, self.error) {
            (Some(output), None) => Ok(Outcome::Success(output)),
            (None, Some(failure)) => Ok(Outcome::Failure(failure)),
            (Some(_), Some(_)) => Err("a report with both output and error; exactly one is allowed"),
            (None, None) => Err("a report with neither output nor error; exactly one is needed"),
        }
    }
}

/// A message of the result stream: reports of one worker. Each is decoded on its own, so that a bad one does not affect
/// the others.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ReportBatch {
    /// The worker that ran them; part of the fence.
    pub worker: WorkerId,
    /// At most 256 [`Report`]s.
    #[schemars(with = "Vec<Report>")]
    pub reports: Vec<Box<RawValue>>,
}

/// What a worker can run. Sent as `register`; the answer is a [`Registered`] or an error.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Registration {
    /// The worker.
    pub worker: WorkerId,
    /// By its own clock; only shown to people.
    pub started_at: DateTime<Utc>,
    /// Calls that it can run at once, over all pools.
    pub slots: u32,
    /// Calls that it can run at once in each pool. In a pool that is not here: `slots`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub pools: BTreeMap<String, u32>,
    /// Version of the program; only shown to people.
    pub version: String,
    /// Its version of the contract; absent: 1. A dispatcher refuses one that it does not work with.
    #[serde(default = "contract::first")]
    pub contract: u32,
    /// Where it runs, such as the name of its host; only shown to people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Its tools, or as many as fit into this message.
    pub tools: Vec<ToolSpec>,
    /// The names of its other tools with their pools; their specifications are in other messages.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub other_tools: BTreeMap<String, String>,
}

/// The answer to a registration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Registered {
    /// The consumer of the job stream that the worker pulls from, by pool: it brings jobs of the worker's tools only.
    /// A pool that is not here brings it nothing: none of its tools is accepted yet.
    #[serde(default)]
    pub consumers: BTreeMap<String, String>,
    /// Tools of this registration that wait for `redial tools accept`, with the reasons: the worker gets no job of them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub waiting: BTreeMap<String, Vec<String>>,
    /// When this was answered, by the database's clock.
    pub at: DateTime<Utc>,
    /// How long a lease is, in ms.
    pub lease_ms: u64,
}

/// What a dispatcher sends to a worker unasked, on `redial.worker.<identity>.<id>`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ControlMessage {
    /// The reports of these grants are on record: forget them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ingested: Vec<GrantRef>,
    /// The calls of these grants were cancelled: stop them, report class `cancelled`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cancelled: Vec<GrantRef>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(tail: &str) -> Report {
        let id = CallId::generate();
        let claim = ClaimId::generate();
        serde_json::from_str(&format!(r#"{{"call":"{id}","attempt":1,"claim":"{claim}","duration_ms":3{tail}}}"#))
            .unwrap()
    }

    #[test]
    fn a_report_has_exactly_one_outcome_and_a_failure_that_says_nothing_may_have_had_an_effect() {
        assert!(matches!(report(r#","output":null"#).outcome(), Ok(Outcome::Success(raw)) if raw.get() == "null"));
        let failed = r#","error":{"class":"unavailable","message":"x"}"#;
        assert!(matches!(report(failed).outcome(), Ok(Outcome::Failure(failure)) if failure.effect_possible));
        assert!(report("").outcome().is_err() && report(&format!(r#","output":1{failed}"#)).outcome().is_err());
    }
}
