//! What a tool is: its name, schema, effect and limits. Workers register this; dispatchers act on it.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use strum::{VariantArray, VariantNames};

use crate::{duration, names::named};

/// What running a tool does to the world. It decides what happens when it is not known how an attempt ended.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, VariantArray, VariantNames,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum ToolEffect {
    /// Changes nothing; retried freely.
    Read,
    /// Doing it twice is the same as doing it once; retried freely.
    Idempotent,
    /// Safe to repeat with the same idempotency key, which is stable over all attempts.
    Keyed,
    /// Must never run twice on a guess: an attempt with an uncertain end makes the call `unknown`.
    /// The default: a tool that declares nothing is assumed to be unsafe.
    #[default]
    Unsafe,
}

named!(ToolEffect, "an effect");

impl ToolEffect {
    /// Reads an effect; one that this version does not know is `unsafe`.
    pub(crate) fn carefully<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(String::deserialize(deserializer)?.parse().unwrap_or(Self::Unsafe))
    }
}

/// When and how often a failed attempt is repeated. Exponential with full jitter: before attempt `n + 1` the wait is
/// random between 0 and `min(cap_ms, initial_ms × factor^(n-1))`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RetryPolicy {
    /// Upper bound of the first wait, in ms.
    pub initial_ms: u64,
    /// Growth per attempt, at least 1.
    pub factor: f64,
    /// Upper bound of every wait, in ms. A server's `Retry-After` may ask for more.
    pub cap_ms: u64,
    /// Attempts in all, at least 1; 1 means no retry.
    pub max_attempts: u32,
    /// No attempt starts later than this after the submission, in ms.
    pub deadline_ms: u64,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self { initial_ms: 500, factor: 2.0, cap_ms: 60_000, max_attempts: 6, deadline_ms: 3_600_000 }
    }
}

impl RetryPolicy {
    /// This policy with the fields that an override names.
    #[must_use]
    pub fn with(self, over: &RetryOverride) -> Self {
        Self {
            initial_ms: over.initial_ms.unwrap_or(self.initial_ms),
            factor: over.factor.unwrap_or(self.factor),
            cap_ms: over.cap_ms.unwrap_or(self.cap_ms),
            max_attempts: over.max_attempts.unwrap_or(self.max_attempts),
            deadline_ms: over.deadline_ms.unwrap_or(self.deadline_ms),
        }
    }

    /// Says which field is out of its range, and what is allowed.
    pub fn check(&self) -> Result<(), String> {
        if !(1.0..=100.0).contains(&self.factor) {
            return Err(format!("retry.factor is {}; allowed: 1 to 100", self.factor));
        }
        if !(1..=1000).contains(&self.max_attempts) {
            return Err(format!("retry.max_attempts is {}; allowed: 1 to 1000", self.max_attempts));
        }
        for (name, value) in
            [("initial_ms", self.initial_ms), ("cap_ms", self.cap_ms), ("deadline_ms", self.deadline_ms)]
        {
            if !(1..=YEAR_MS).contains(&value) {
                return Err(format!("retry.{name} is {value}; allowed: 1 to {YEAR_MS} (a year)"));
            }
        }
        Ok(())
    }
}

/// The fields of a [`RetryPolicy`] that a call overrides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RetryOverride {
    /// See [`RetryPolicy::initial_ms`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initial_ms: Option<u64>,
    /// See [`RetryPolicy::factor`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub factor: Option<f64>,
    /// See [`RetryPolicy::cap_ms`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cap_ms: Option<u64>,
    /// See [`RetryPolicy::max_attempts`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_attempts: Option<u32>,
    /// See [`RetryPolicy::deadline_ms`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline_ms: Option<u64>,
}

/// How many retries of a tool run, over all of its calls, so that retrying does not amplify an outage: a bucket of tokens
/// that all dispatchers share. A retry costs one; without a token it waits and uses no attempt.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RetryBudget {
    /// Tokens of a full bucket, which is what a new tool starts with: so many retries may run at once.
    pub burst: f64,
    /// Tokens that a success earns.
    pub per_success: f64,
    /// Tokens earned per second by time alone: the retries that find out when an outage is over.
    pub per_second: f64,
}

impl Default for RetryBudget {
    fn default() -> Self {
        Self { burst: 100.0, per_success: 0.1, per_second: 1.0 }
    }
}

impl RetryBudget {
    /// Says which field is out of its range, and what is allowed.
    pub fn check(&self) -> Result<(), String> {
        let fields = [
            ("burst", self.burst, 1.0..=1_000_000.0),
            ("per_success", self.per_success, 0.0..=1.0),
            ("per_second", self.per_second, 0.001..=100_000.0),
        ];
        for (name, value, allowed) in fields {
            if !allowed.contains(&value) {
                let (least, most) = (allowed.start(), allowed.end());
                return Err(format!("retry_budget.{name} is {value}; allowed: {least} to {most}"));
            }
        }
        Ok(())
    }

    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// A tool as a worker registers it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolSpec {
    /// Unique name: letters, digits, `_` and `-`, at most 64 characters; see [`check_name`].
    pub name: String,
    /// What it does, for people and models.
    #[serde(default)]
    pub description: String,
    /// JSON Schema (draft 2020-12) of the arguments, which are always an object.
    #[serde(default = "any_object")]
    pub parameters: Value,
    /// What running it does to the world.
    #[serde(default)]
    pub effect: ToolEffect,
    /// The group of workers that runs it.
    #[serde(default = "default_pool")]
    pub pool: String,
    /// How long one attempt may take, in ms.
    #[serde(default = "default_timeout_ms")]
    pub timeout_ms: u64,
    /// When a failed attempt is repeated.
    #[serde(default)]
    pub retry: RetryPolicy,
    /// How many retries run, over all of its calls.
    #[serde(default, skip_serializing_if = "RetryBudget::is_default")]
    pub retry_budget: RetryBudget,
    /// True for a tool that a model calls repeatedly until something changes: the same call is never refused as a
    /// repetition.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub polling: bool,
    /// True if calls of one turn to tools like this must run one after the other, in order.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sequential: bool,
    /// False for a tool whose arguments must not be repaired: defects become feedback, even if they could be repaired
    /// without loss.
    #[serde(default = "crate::fields::yes", skip_serializing_if = "Clone::clone")]
    pub repairs: bool,
}

/// The schema of a tool that takes anything.
pub fn any_object() -> Value {
    serde_json::json!({"type": "object"})
}

/// The pool of tools that declare none.
pub fn default_pool() -> String {
    "default".to_owned()
}

/// The timeout of tools that declare none: 30 s.
pub const fn default_timeout_ms() -> u64 {
    30_000
}

impl ToolSpec {
    /// A tool with every default: effect `unsafe`, pool `default`, any object as arguments.
    pub fn named(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            description: String::new(),
            parameters: any_object(),
            effect: ToolEffect::default(),
            pool: default_pool(),
            timeout_ms: default_timeout_ms(),
            retry: RetryPolicy::default(),
            retry_budget: RetryBudget::default(),
            polling: false,
            sequential: false,
            repairs: true,
        }
    }

    /// Says what is wrong with the spec, and what is allowed. The schema itself is compiled elsewhere.
    pub fn check(&self) -> Result<(), String> {
        check_name("tool name", &self.name)?;
        check_name("pool", &self.pool)?;
        check_timeout(self.timeout_ms)?;
        if !self.parameters.is_object() {
            return Err("parameters: a JSON Schema object is needed".to_owned());
        }
        self.retry.check()?;
        self.retry_budget.check()
    }
}

/// Longest timeout of an attempt: 24 h.
const DAY_MS: u64 = 24 * 3600 * 1000;
/// Longest time between attempts, and longest total deadline: a year.
const YEAR_MS: u64 = 366 * 24 * 3600 * 1000;

/// Reads the timeout of an attempt as people write it, in ms.
pub fn parse_timeout(text: &str) -> Result<u64, String> {
    up_to(text, DAY_MS, "24h")
}

/// Reads a time of a [`RetryPolicy`] as people write it, in ms.
pub fn parse_retry_time(text: &str) -> Result<u64, String> {
    up_to(text, YEAR_MS, "366d")
}

fn up_to(text: &str, most: u64, shown: &str) -> Result<u64, String> {
    let ms = duration::parse_ms(text)?;
    if ms <= most { Ok(ms) } else { Err(format!("{text:?} is too long; allowed: 1ms to {shown}")) }
}

/// An attempt's timeout is 1 ms to 24 h.
pub fn check_timeout(timeout_ms: u64) -> Result<(), String> {
    if (1..=DAY_MS).contains(&timeout_ms) {
        Ok(())
    } else {
        Err(format!("timeout_ms is {timeout_ms}; allowed: 1 to {DAY_MS} (24 h)"))
    }
}

/// A tool's or pool's name is one token of a NATS subject: letters and digits of any script, `_` and `-`. In bytes it is so
/// short that the name of a consumer of the pool fits into the 255 that NATS allows.
pub fn check_name(what: &str, name: &str) -> Result<(), String> {
    let fits = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    if name.len() <= 192 && (1..=64).contains(&name.chars().count()) && name.chars().all(fits) {
        Ok(())
    } else {
        let name = crate::limits::shorten(name, 100);
        Err(format!("{what} {name:?}: 1 to 64 letters, digits, '_' and '-' are allowed, at most 192 bytes in all"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_spec_names_the_field_and_the_range() {
        let mut spec = ToolSpec::named("订机票");
        assert_eq!(spec.check(), Ok(()));
        spec.retry.factor = f64::NAN;
        assert!(spec.check().unwrap_err().starts_with("retry.factor is NaN; allowed"));
        spec = ToolSpec { timeout_ms: 0, ..ToolSpec::named("a") };
        assert!(spec.check().unwrap_err().contains("timeout_ms is 0; allowed: 1 to"));
        assert!(ToolSpec::named("a.b").check().unwrap_err().contains("\"a.b\""));
        assert!(ToolSpec::named("").check().is_err());
        spec = ToolSpec { retry_budget: RetryBudget { burst: 0.5, ..RetryBudget::default() }, ..ToolSpec::named("a") };
        assert_eq!(spec.check().unwrap_err(), "retry_budget.burst is 0.5; allowed: 1 to 1000000");
    }

    #[test]
    fn times_are_read_within_their_limits() {
        assert_eq!((parse_timeout("24h"), parse_retry_time("366d")), (Ok(DAY_MS), Ok(YEAR_MS)));
        assert_eq!(parse_timeout("25h").unwrap_err(), "\"25h\" is too long; allowed: 1ms to 24h");
        assert_eq!(parse_retry_time("367d").unwrap_err(), "\"367d\" is too long; allowed: 1ms to 366d");
        assert!(parse_timeout("0s").is_err() && parse_timeout("soon").is_err());
    }

    #[test]
    fn an_override_changes_only_what_it_names() {
        let over: RetryOverride = serde_json::from_str(r#"{"max_attempts": 2}"#).unwrap();
        assert_eq!(RetryPolicy::default().with(&over), RetryPolicy { max_attempts: 2, ..RetryPolicy::default() });
        assert!(serde_json::from_str::<RetryOverride>(r#"{"max_atempts": 2}"#).is_err());
    }
}
