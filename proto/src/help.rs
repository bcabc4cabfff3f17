//! What helps a model, or a person, to correct refused arguments.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Repair;

/// What is shown with a refusal, besides the broken rules. Bounded: at most a few KB whatever was sent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Help {
    /// What kind of correction is needed.
    pub advice: Advice,
    /// The text as it was sent, if it was not a JSON object by itself: at most about 400 characters of it. `<<<HERE>>>`
    /// marks where it breaks, and `<<<123 characters left out>>>` a cut; the marks have more angle brackets if the text
    /// has as many. If the text was a JSON string, this is what the string holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent: Option<String>,
    /// Arguments that the schema allows, with the values of the sender that were right; `None` if none were found. At most
    /// 2,000 bytes of JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub example: Option<Value>,
    /// JSON pointers to properties that were sent and that the schema allows but does not declare. At most 100.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub undeclared: Vec<String>,
    /// Lossless repairs that were made before the arguments were refused. At most 100.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub repairs: Vec<Repair>,
}

/// What kind of correction is needed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Advice {
    /// Nothing that was sent can be used: the form has to be shown.
    #[default]
    Form,
    /// The text breaks at one place.
    Place,
    /// The text ends before the arguments do.
    CutOff,
    /// A comment hides the end of the arguments.
    Comment,
    /// More was sent than is allowed.
    OverLimit(OverLimit),
    /// Some values break rules of the schema, others are right.
    Values,
    /// There is no tool of this name.
    ToolName,
}

/// A limit, and by how much it was exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OverLimit {
    /// What is limited.
    pub of: Limited,
    /// How many are allowed.
    pub allowed: usize,
    /// How many too many there are, at least.
    pub over: usize,
}

/// What is limited in arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limited {
    /// Bytes of the text.
    Bytes,
    /// Levels of objects and arrays.
    Levels,
    /// Repairs of one call.
    Repairs,
    /// Values, in each other or side by side.
    Values,
}

impl Help {
    /// The same, without repairs and undeclared properties: of a call that is on record, these are in fields of their own.
    #[must_use]
    pub fn without_lists(&self) -> Self {
        self.with_lists(Vec::new(), Vec::new())
    }

    /// The same, with these repairs and undeclared properties.
    #[must_use]
    pub fn with_lists(&self, repairs: Vec<Repair>, undeclared: Vec<String>) -> Self {
        let Self { advice, sent, example, .. } = self.clone();
        Self { advice, sent, example, undeclared, repairs }
    }
}

impl Advice {
    /// Advice to someone who sent more than is allowed.
    pub const fn over(of: Limited, allowed: usize, sent: usize) -> Self {
        let over = sent.saturating_sub(allowed);
        Self::OverLimit(OverLimit { of, allowed, over: if over == 0 { 1 } else { over } })
    }
}
