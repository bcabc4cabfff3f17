//! What `redial … --json` prints, reduced to the fields that the demo reads.

use anyhow::Context;
use chrono::{DateTime, Utc};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;

/// Output of `redial call` without `--wait`.
#[derive(Debug, Deserialize)]
pub(crate) struct Submitted {
    pub(crate) status: String,
    pub(crate) call: Option<String>,
}

impl Submitted {
    /// The id of an accepted call.
    pub(crate) fn call(self) -> anyhow::Result<String> {
        self.call.with_context(|| format!("the call was {}, without an id", self.status))
    }
}

/// Output of `redial show`.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Call {
    pub(crate) state: String,
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
    pub(crate) output: Option<Value>,
}

impl Call {
    /// True in a terminal state.
    pub(crate) fn has_ended(&self) -> bool {
        !matches!(self.state.as_str(), "ready" | "running" | "retry_wait")
    }

    /// Its arguments, parsed.
    pub(crate) fn arguments<T: DeserializeOwned>(&self) -> anyhow::Result<T> {
        T::deserialize(&self.arguments).context("the arguments have another form")
    }

    /// The result of the last attempt; null if there is none.
    pub(crate) fn output(&self) -> Value {
        self.attempts_made.last().and_then(|attempt| attempt.output.clone()).unwrap_or_default()
    }

    /// The outcomes of its attempts: `succeeded`, or the class of the error.
    pub(crate) fn outcomes(&self) -> Vec<&str> {
        self.attempts_made.iter().map(|attempt| attempt.class.as_deref().unwrap_or(&attempt.outcome)).collect()
    }
}

/// One line of `redial tools`.
#[derive(Debug, Deserialize)]
pub(crate) struct ToolLine {
    pub(crate) name: String,
    pub(crate) workers: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_output_and_all_outcomes_are_read() {
        let call: Call = serde_json::from_str(
            r#"{"call": "c", "state": "succeeded", "message": null, "attempts": 2, "attempts_made": [
                {"attempt": 1, "worker": "a-1", "started_at": "2026-11-20T08:00:00Z", "ended_at": "2026-11-20T08:00:01Z",
                 "outcome": "failed", "class": "lost", "retry_at": "2026-11-20T08:00:02Z"},
                {"attempt": 2, "worker": "b-2", "started_at": "2026-11-20T08:00:02.5Z",
                 "ended_at": "2026-11-20T08:00:03Z", "outcome": "succeeded", "output": {"booking": "ABCDEF"}}]}"#,
        )
        .unwrap();
        assert_eq!(call.outcomes(), ["lost", "succeeded"]);
        assert_eq!(call.output()["booking"], "ABCDEF");
        assert!(call.has_ended());
    }
}
