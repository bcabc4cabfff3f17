//! The conditions of a rule. All conditions that are set must hold.

use redial_proto::{ErrorClass, Language, Role};
use regex::{Captures, Regex};
use serde::{Deserialize, Deserializer};

use super::context::Context;

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct When {
    /// The last message's role.
    pub(super) last: Option<Role>,
    /// All of these occur in the last message.
    #[serde(deserialize_with = "texts")]
    pub(super) contains: Vec<String>,
    /// Matches the last message.
    pub(super) matches: Option<Pattern>,
    /// All of these occur in the user's last message.
    #[serde(deserialize_with = "texts")]
    pub(super) user: Vec<String>,
    /// Matches the user's last message.
    pub(super) user_matches: Option<Pattern>,
    /// All of these occur since the user's last message.
    #[serde(deserialize_with = "texts")]
    pub(super) seen: Vec<String>,
    /// None of these occurs since the user's last message.
    #[serde(deserialize_with = "texts")]
    pub(super) not_seen: Vec<String>,
    /// Redial wrote the last message.
    pub(super) by_redial: Option<bool>,
    /// The last message is a result of this tool.
    pub(super) tool: Option<String>,
    /// The last message is a failed result of this class.
    pub(super) class: Option<ErrorClass>,
    /// Whether the last message is a failed result.
    pub(super) failed: Option<bool>,
    /// Results since the user's last message.
    pub(super) results: Option<usize>,
    pub(super) results_at_least: Option<usize>,
    /// Any tools are offered.
    pub(super) tools: Option<bool>,
    /// This tool is offered.
    pub(super) offers: Option<String>,
    pub(super) turn: Option<u32>,
    pub(super) language: Option<Language>,
}

/// A regular expression, or why a text is none.
pub(super) struct Pattern(pub(super) Result<Regex, String>);

impl<'de> Deserialize<'de> for Pattern {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Ok(Self(Regex::new(&text).map_err(|error| {
            // A mistake is one line, so only the reason of a long explanation is told.
            let error = error.to_string();
            let reason = error.lines().last().unwrap_or_default();
            format!("{text:?} is not a regular expression: {}", reason.trim_start_matches("error: "))
        })))
    }
}

impl Pattern {
    fn captures<'t>(&self, text: &'t str) -> Option<Captures<'t>> {
        self.0.as_ref().ok()?.captures(text)
    }
}

/// Reads one text, or several that must all match.
fn texts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Texts {
        One(String),
        Many(Vec<String>),
    }
    Ok(match Texts::deserialize(deserializer)? {
        Texts::One(text) => vec![text],
        Texts::Many(texts) => texts,
    })
}

impl When {
    /// Returns the captures of the pattern, if there is one; the outer `None` means that the rule does not match.
    #[expect(clippy::option_option, reason = "a rule may match without a pattern")]
    pub(super) fn matches<'m>(&self, context: &Context<'m>) -> Option<Option<Captures<'m>>> {
        let matches = self.last_matches(context) && self.texts_match(context) && self.request_matches(context);
        if !matches {
            return None;
        }
        let last = context.last.map_or("", |last| last.content.as_str());
        let user = context.user.map_or("", |user| user.content.as_str());
        let found = match &self.user_matches {
            Some(pattern) => Some(pattern.captures(user)?),
            None => None,
        };
        match &self.matches {
            Some(pattern) => Some(Some(pattern.captures(last)?)),
            None => Some(found),
        }
    }

    fn last_matches(&self, context: &Context<'_>) -> bool {
        let last = context.last;
        holds(self.last, |role| last.is_some_and(|last| last.role == role))
            && holds(self.by_redial, |wanted| last.is_some_and(|last| last.by_redial) == wanted)
            && holds(self.tool.as_ref(), |tool| last.is_some_and(|last| last.tool.as_ref() == Some(tool)))
            && holds(self.class, |class| last.is_some_and(|last| last.class == Some(class)))
            && holds(self.failed, |wanted| last.is_some_and(|last| last.class.is_some()) == wanted)
    }

    fn texts_match(&self, context: &Context<'_>) -> bool {
        let last = context.last.map_or("", |last| last.content.as_str());
        let user = context.user.map_or("", |user| user.content.as_str());
        self.contains.iter().all(|text| last.contains(text))
            && self.user.iter().all(|text| user.contains(text))
            && self.seen.iter().all(|text| context.seen(text))
            && !self.not_seen.iter().any(|text| context.seen(text))
    }

    fn request_matches(&self, context: &Context<'_>) -> bool {
        let request = context.request;
        holds(self.results, |results| context.results.len() == results)
            && holds(self.results_at_least, |results| context.results.len() >= results)
            && holds(self.tools, |wanted| request.tools.is_empty() != wanted)
            && holds(self.offers.as_ref(), |name| request.tools.iter().any(|tool| tool.name == *name))
            && holds(self.turn, |turn| request.turn == turn)
            && holds(self.language, |language| request.language == language)
    }
}

/// True if a condition holds, or is not set.
fn holds<T>(condition: Option<T>, check: impl FnOnce(T) -> bool) -> bool {
    condition.is_none_or(check)
}
