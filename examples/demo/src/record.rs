//! What `redial … --json` prints, as far as the demo looks at it.

use anyhow::{Context, ensure};
use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;

/// Of `redial call` without `--wait`.
#[derive(Debug, Deserialize)]
pub(crate) struct Submitted {
    pub(crate) status: String,
    pub(crate) call: Option<String>,
    pub(crate) error: Option<Error>,
}

impl Submitted {
    /// The id of an accepted call.
    pub(crate) fn call(self) -> anyhow::Result<String> {
        self.call.with_context(|| format!("{} without an id", self.status))
    }
}

/// Why a call was not accepted.
#[derive(Debug, Deserialize)]
pub(crate) struct Error {
    pub(crate) code: String,
    pub(crate) message: String,
    #[serde(default)]
    pub(crate) details: Vec<FieldError>,
}

/// A rule that arguments break.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct FieldError {
    pub(crate) path: String,
}

/// Of `redial show`.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Call {
    pub(crate) state: String,
    pub(crate) message: Option<String>,
    pub(crate) attempts: u32,
    #[serde(default)]
    pub(crate) arguments: Value,
    pub(crate) attempts_made: Vec<Attempt>,
}

/// One attempt of a call.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Attempt {
    pub(crate) worker: String,
    pub(crate) started_at: DateTime<Utc>,
    pub(crate) outcome: String,
    pub(crate) class: Option<String>,
    pub(crate) retry_at: Option<DateTime<Utc>>,
    pub(crate) details: Option<Vec<FieldError>>,
    pub(crate) output: Option<Value>,
}

impl Call {
    /// True if nothing can happen to it any more.
    pub(crate) fn has_ended(&self) -> bool {
        !matches!(self.state.as_str(), "ready" | "running" | "retry_wait")
    }

    /// Its arguments, as what they are.
    pub(crate) fn arguments<T: DeserializeOwned>(&self) -> anyhow::Result<T> {
        T::deserialize(&self.arguments).context("the arguments are something else")
    }

    /// The result of the last attempt; null if there is none.
    pub(crate) fn output(&self) -> Value {
        self.attempts_made.last().and_then(|attempt| attempt.output.clone()).unwrap_or_default()
    }

    /// Of each attempt but the first: from the start of the one before to the time it was planned for. An error if it
    /// was not planned, or started too early.
    pub(crate) fn planned_after(&self) -> anyhow::Result<Vec<TimeDelta>> {
        let pairs = self.attempts_made.iter().zip(self.attempts_made.iter().skip(1));
        let plan = |(before, after): (&Attempt, &Attempt)| {
            let planned = before.retry_at.context("an attempt was not planned")?;
            ensure!(after.started_at >= planned, "planned for {planned}, an attempt started at {}", after.started_at);
            Ok(planned - before.started_at)
        };
        pairs.map(plan).collect()
    }

    /// The outcomes of its attempts: `succeeded`, or the class of the error.
    pub(crate) fn outcomes(&self) -> Vec<&str> {
        self.attempts_made.iter().map(|attempt| attempt.class.as_deref().unwrap_or(&attempt.outcome)).collect()
    }
}

/// Of `redial submit`.
#[derive(Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct Tally {
    pub(crate) accepted: u64,
    pub(crate) existing: u64,
    pub(crate) refused: u64,
    pub(crate) rejected: u64,
}

/// Of `redial history`: a line for each call.
#[derive(Debug, Deserialize)]
pub(crate) struct CallLine {
    pub(crate) state: String,
    pub(crate) attempts: u32,
    pub(crate) submitted_at: DateTime<Utc>,
    pub(crate) finished_at: Option<DateTime<Utc>>,
}

/// Of `redial tools`: a line for each tool.
#[derive(Debug, Deserialize)]
pub(crate) struct ToolLine {
    pub(crate) name: String,
    pub(crate) workers: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_tells_plans_and_outcomes() {
        let call: Call = serde_json::from_str(
            r#"{"call": "c", "state": "succeeded", "message": null, "attempts": 2, "attempts_made": [
                {"attempt": 1, "worker": "a-1", "started_at": "2026-11-20T08:00:00Z", "ended_at": "2026-11-20T08:00:01Z",
                 "outcome": "failed", "class": "lost", "retry_at": "2026-11-20T08:00:02Z"},
                {"attempt": 2, "worker": "b-2", "started_at": "2026-11-20T08:00:02.5Z",
                 "ended_at": "2026-11-20T08:00:03Z", "outcome": "succeeded", "output": {"booking": "ABCDEF"}}]}"#,
        )
        .unwrap();
        assert_eq!(call.planned_after().unwrap(), [TimeDelta::seconds(2)]);
        assert_eq!(call.outcomes(), ["lost", "succeeded"]);
        assert_eq!(call.output()["booking"], "ABCDEF");
        assert!(call.has_ended());
    }
}
