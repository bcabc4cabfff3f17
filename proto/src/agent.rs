//! What an agent is: a model, its instructions, the tools it may use, and its limits.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    FunctionSpec,
    function::{self, DEFAULT_TIMEOUT_MS},
    limits,
    tool::check_name,
    turn::Language,
};

/// What happens when a call needs a correction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Policy {
    /// The model gets the error and corrects itself.
    #[default]
    Feedback,
    /// As `feedback`; after enough failed corrections the failed calls are pruned from the models' view and the fallback
    /// model takes the next turn. Once a call of that tool succeeds, the first model takes over again.
    Fallback,
}

/// What happens when a model's answer is cut off at its limit of tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CutOff {
    /// The model is asked for a shorter one, as a correction; the last one is taken if it is still cut off then.
    #[default]
    Shorter,
    /// The model is asked for the rest, a few times; the parts become one answer.
    Continue,
    /// It is taken as it is.
    Accept,
}

impl CutOff {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// The limits of a task. When one is reached, the model is asked once for a last answer without tools.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Budgets {
    /// Model turns, the last answer not counted. Default 25.
    pub turns: u32,
    /// Corrections, over all tools. Default 10.
    pub corrections: u32,
    /// Tool calls, refused ones not counted. Default 50.
    pub tool_calls: u32,
    /// Tokens that models read and wrote; estimated where the provider does not tell them. Default: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// US dollars. Models without a price cannot be held to it: see [`crate::TaskCode::CostUnknown`]. Default: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// Seconds since the task began. Default 3,600.
    pub seconds: u32,
}

impl Default for Budgets {
    fn default() -> Self {
        Self { turns: 25, corrections: 10, tool_calls: 50, tokens: None, cost_usd: None, seconds: 3600 }
    }
}

/// An agent: a table of `agents.toml`, or part of a task's submission.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentSpec {
    /// The model, by its name in `models.toml`.
    pub model: String,
    /// A stronger model: see [`Policy::Fallback`]. It also takes over when the first one cannot be reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback_model: Option<String>,
    /// The agent's instructions.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub system: String,
    /// Tools that it may use, by name or pattern (`*` stands for any text). None by default.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
    /// Functions that whoever submits a task serves, besides those that come with the task.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub functions: Vec<FunctionSpec>,
    /// How long the client may take to answer a call of a function, in ms: 1 s to 24 h. Default 10 minutes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function_timeout_ms: Option<u64>,
    /// What happens when a call needs a correction.
    #[serde(default)]
    pub policy: Policy,
    /// Corrections of one tool in a row before the model must answer without it. Default 3.
    #[serde(default = "three")]
    pub max_corrections: u32,
    /// With policy `fallback`: failed corrections before the fallback model takes over; 0: at the first error.
    /// Default 1.
    #[serde(default = "one")]
    pub fallback_after: u32,
    /// What happens when an answer is cut off at the model's limit of tokens. However it ends, an answer that is not
    /// complete is marked: [`crate::TaskCode::AnswerCutOff`].
    #[serde(default, skip_serializing_if = "CutOff::is_default")]
    pub cut_off: CutOff,
    /// The limits of a task.
    #[serde(default)]
    pub budgets: Budgets,
    /// Language of feedback. Default: that of the task's text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<Language>,
    /// Longest view of a conversation that a model gets, in estimated tokens. Default 32,000.
    #[serde(default = "context_tokens")]
    pub context_tokens: u32,
    /// Longest tool result that a model gets in one message, in bytes. Default 16,384.
    #[serde(default = "result_bytes")]
    pub result_bytes: u32,
    /// Longest answer of a model, in tokens. Default: the model's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u32>,
    /// Sampling temperature. Default: the model's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Texts that replace Redial's own in what it tells the model: see `docs/FEEDBACK.md`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub templates: BTreeMap<String, String>,
}

const fn three() -> u32 {
    3
}
const fn one() -> u32 {
    1
}
const fn context_tokens() -> u32 {
    32_000
}
const fn result_bytes() -> u32 {
    16_384
}

impl AgentSpec {
    /// An agent with every default and no tools.
    pub fn new(model: impl Into<String>) -> Self {
        Self {
            model: model.into(),
            fallback_model: None,
            system: String::new(),
            tools: Vec::new(),
            functions: Vec::new(),
            function_timeout_ms: None,
            policy: Policy::Feedback,
            max_corrections: three(),
            fallback_after: one(),
            cut_off: CutOff::default(),
            budgets: Budgets::default(),
            language: None,
            context_tokens: context_tokens(),
            result_bytes: result_bytes(),
            max_tokens: None,
            temperature: None,
            templates: BTreeMap::new(),
        }
    }

    /// Says which field is out of its range, and what is allowed.
    pub fn check(&self) -> Result<(), String> {
        self.mistakes().into_iter().next().map_or(Ok(()), Err)
    }

    /// Everything that is out of its range. Each message begins with the path of its field and says what is allowed.
    pub fn mistakes(&self) -> Vec<String> {
        let mut found = Vec::new();
        found.extend(check_name("model", &self.model).err());
        found.extend(self.fallback_model.as_ref().and_then(|model| check_name("fallback_model", model).err()));
        if self.policy == Policy::Fallback && self.fallback_model.is_none() {
            found.push("policy is \"fallback\", which needs a fallback_model".to_owned());
        }
        if self.system.len() > 64 * 1024 {
            found.push(format!("system takes {} bytes; allowed: 65536", self.system.len()));
        }
        if self.tools.len() > 200 {
            found.push(format!("tools holds {} patterns; allowed: 200", self.tools.len()));
        }
        found.extend(self.tools.iter().find_map(|pattern| check_pattern("tools", pattern).err()));
        found.extend(function::mistakes(&self.functions));
        found.extend(self.function_timeout_ms.and_then(|timeout| function::check_timeout(timeout).err()));
        found.extend(self.wrong_numbers());
        found
    }

    fn wrong_numbers(&self) -> Vec<String> {
        let budgets = &self.budgets;
        let ranges = [
            ("max_corrections", self.max_corrections, 0, 100),
            ("fallback_after", self.fallback_after, 0, 100),
            ("context_tokens", self.context_tokens, 1_000, 2_000_000),
            ("result_bytes", self.result_bytes, 256, 200_000),
            ("max_tokens", self.max_tokens.unwrap_or(1), 1, 1_000_000),
            ("budgets.turns", budgets.turns, 1, 1_000),
            ("budgets.corrections", budgets.corrections, 0, 1_000),
            ("budgets.tool_calls", budgets.tool_calls, 0, 10_000),
            ("budgets.seconds", budgets.seconds, 1, 366 * 24 * 3600),
        ];
        let wrong = ranges.into_iter().filter(|(_, value, least, most)| !(least..=most).contains(&value));
        let wrong = wrong.map(|(name, value, least, most)| format!("{name} is {value}; allowed: {least} to {most}"));
        let cost = budgets.cost_usd.filter(|cost| !(*cost > 0.0 && cost.is_finite()));
        let cost = cost.map(|cost| format!("budgets.cost_usd is {cost}; allowed: more than 0"));
        let temperature = self.temperature.filter(|temperature| !(0.0..=2.0).contains(temperature));
        let temperature = temperature.map(|temperature| format!("temperature is {temperature}; allowed: 0 to 2"));
        wrong.chain(cost).chain(temperature).collect()
    }

    /// The function of the client that has this name.
    pub fn function(&self, name: &str) -> Option<&FunctionSpec> {
        self.functions.iter().find(|function| function.name == name)
    }

    /// How long the client may take to answer a call of a function, in ms.
    pub fn function_timeout_ms(&self) -> u64 {
        self.function_timeout_ms.unwrap_or(DEFAULT_TIMEOUT_MS)
    }

    /// True if the agent may use this tool.
    pub fn offers(&self, tool: &str) -> bool {
        self.tools.iter().any(|pattern| matches(pattern, tool))
    }
}

/// Longest pattern, in bytes: somewhat longer than any name. Matching takes time for each star and each tool.
const MAX_PATTERN: usize = 200;
/// Most stars in a pattern.
const MAX_STARS: usize = 4;

/// Refuses a pattern that is too long or has too many stars. The message begins with the field.
pub fn check_pattern(field: &str, pattern: &str) -> Result<(), String> {
    let (bytes, stars) = (pattern.len(), pattern.matches('*').count());
    if bytes <= MAX_PATTERN && stars <= MAX_STARS {
        return Ok(());
    }
    let shown = limits::shorten(pattern, 60);
    Err(format!(
        "{field} has {shown:?} of {bytes} bytes with {stars} stars; allowed in a pattern: {MAX_PATTERN} bytes and {MAX_STARS} stars"
    ))
}

/// `*` matches any text, everything else itself. Linear in the text for each star.
pub fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(rest) = parts.next().and_then(|first| text.strip_prefix(first)) else { return false };
    if !pattern.contains('*') {
        return rest.is_empty();
    }
    let mut rest = rest;
    let mut parts = parts.peekable();
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_offer_tools() {
        let agent = AgentSpec {
            tools: vec!["get_*".into(), "book_flight".into(), "a*b*c".into(), "订*票".into()],
            ..AgentSpec::new("m")
        };
        for (tool, offered) in [
            ("get_weather", true),
            ("book_flight", true),
            ("book_flights", false),
            ("forget_it", false),
            ("abc", true),
            ("aXbYc", true),
            ("ac", false),
            ("abcb", false),
            ("订机票", true),
            ("订票号", false),
        ] {
            assert_eq!(agent.offers(tool), offered, "{tool}");
        }
        assert!(AgentSpec { tools: vec!["*".into()], ..AgentSpec::new("m") }.offers("anything"));
        assert!(!AgentSpec::new("m").offers("anything"));
    }

    #[test]
    fn a_bad_agent_names_the_field_and_the_range() {
        let wrong = |change: fn(&mut AgentSpec)| {
            let mut agent = AgentSpec::new("m");
            change(&mut agent);
            agent.check().unwrap_err()
        };
        assert_eq!(wrong(|a| a.context_tokens = 3), "context_tokens is 3; allowed: 1000 to 2000000");
        assert!(wrong(|a| a.policy = Policy::Fallback).contains("fallback_model"));
        assert!(wrong(|a| a.model = "a.b".into()).starts_with("model \"a.b\""));
        assert!(wrong(|a| a.fallback_model = Some("a.b".into())).starts_with("fallback_model \"a.b\""));
        assert_eq!(
            wrong(|a| a.tools = vec!["get_*".into(), "*".repeat(4_500)]),
            format!(
                "tools has {:?} of 4500 bytes with 4500 stars; allowed in a pattern: 200 bytes and 4 stars",
                limits::shorten(&"*".repeat(4_500), 60)
            )
        );
        assert!(wrong(|a| a.tools = vec!["x".repeat(201)]).starts_with("tools has"));
        assert!(AgentSpec { tools: vec!["a*b*c*d*".into()], ..AgentSpec::new("m") }.check().is_ok());
        let mut agent = AgentSpec { temperature: Some(3.0), max_tokens: Some(0), ..AgentSpec::new("") };
        (agent.budgets.turns, agent.budgets.cost_usd) = (0, Some(-1.0));
        assert_eq!(agent.mistakes().len(), 5, "{:?}", agent.mistakes());
        assert!(wrong(|a| a.temperature = Some(f64::NAN)).contains("temperature is NaN"));
        assert_eq!(AgentSpec::new("gpt-4o").check(), Ok(()));
    }
}
