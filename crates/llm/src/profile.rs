//! Peculiarities of models behind the chat completions interface, and of their servers and chat templates.

use serde::Deserialize;
use strum::{EnumString, VariantNames};

/// The form of the arguments of earlier calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Arguments {
    /// The text of a JSON object: required by OpenAI and by the template of DeepSeek-V3.
    #[default]
    Text,
    /// A JSON object: required by the templates of GLM and Qwen3 if the server does not parse the text itself.
    Object,
}

/// How many calls one earlier assistant message may contain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Calls {
    /// Any number.
    #[default]
    Several,
    /// One: several calls become several messages, each directly before its result.
    One,
}

/// The content of an assistant message that has calls and no text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EmptyContent {
    /// The empty string: strict servers refuse `null` (llama-cpp-python 0.3.36), and all known servers accept this.
    #[default]
    Empty,
    /// `null`.
    Null,
    /// The field is absent.
    Absent,
}

/// Where system messages are allowed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum System {
    /// Anywhere in the conversation.
    #[default]
    Anywhere,
    /// One system message, at the beginning.
    First,
    /// Nowhere: the text is put at the beginning of the first user message.
    User,
}

/// The form of a call's id.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ids {
    /// Up to 40 ASCII letters, digits, `_` and `-`.
    #[default]
    Any,
    /// Exactly nine ASCII letters and digits: Mistral refuses all other ids.
    Nine,
}

/// The field that limits the length of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// `max_tokens`, the field of compatible servers.
    #[default]
    MaxTokens,
    /// `max_completion_tokens`, which newer models of OpenAI require.
    MaxCompletionTokens,
}

/// All peculiarities of a model. The default suits most compatible servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Profile {
    pub arguments: Arguments,
    pub calls: Calls,
    pub empty_content: EmptyContent,
    pub system: System,
    pub ids: Ids,
    pub limit: Limit,
    /// Whether a user message may follow a result directly; otherwise its text is appended to the result.
    pub user_after_result: bool,
    /// Whether the server reports usage at the end of a stream if `stream_options` asks for it.
    pub stream_usage: bool,
    /// Whether the model needs its earlier reasoning, as `reasoning_content`.
    pub reasoning: bool,
}

impl Default for Profile {
    fn default() -> Self {
        Self {
            arguments: Arguments::default(),
            calls: Calls::default(),
            empty_content: EmptyContent::default(),
            system: System::default(),
            ids: Ids::default(),
            limit: Limit::default(),
            user_after_result: true,
            stream_usage: true,
            reasoning: false,
        }
    }
}

impl Profile {
    /// The names of the predefined profiles, sorted.
    pub const NAMES: &'static [&'static str] = Preset::VARIANTS;

    /// Returns the predefined profile with this name.
    pub fn named(name: &str) -> Option<Self> {
        name.parse().ok().map(Preset::profile)
    }

    /// Returns this profile with the fields that `overrides` sets.
    #[must_use]
    pub fn with(self, overrides: Overrides) -> Self {
        Self {
            arguments: overrides.arguments.unwrap_or(self.arguments),
            calls: overrides.calls.unwrap_or(self.calls),
            empty_content: overrides.empty_content.unwrap_or(self.empty_content),
            system: overrides.system.unwrap_or(self.system),
            ids: overrides.ids.unwrap_or(self.ids),
            limit: overrides.limit.unwrap_or(self.limit),
            user_after_result: overrides.user_after_result.unwrap_or(self.user_after_result),
            stream_usage: overrides.stream_usage.unwrap_or(self.stream_usage),
            reasoning: overrides.reasoning.unwrap_or(self.reasoning),
        }
    }
}

#[derive(Clone, Copy, EnumString, VariantNames)]
#[strum(serialize_all = "snake_case")]
enum Preset {
    Compatible,
    Deepseek,
    Gemma,
    Glm,
    LlamaCpp,
    Mistral,
    Ollama,
    Openai,
    Qwen,
}

impl Preset {
    fn profile(self) -> Profile {
        let base = Profile::default();
        match self {
            Self::Compatible | Self::Ollama => base,
            Self::Deepseek => Profile { system: System::First, ..base },
            Self::Gemma => Profile { calls: Calls::One, system: System::User, ..base },
            Self::Glm | Self::Qwen => Profile { arguments: Arguments::Object, system: System::First, ..base },
            Self::LlamaCpp => Profile { system: System::First, stream_usage: false, ..base },
            Self::Mistral => {
                Profile { system: System::First, ids: Ids::Nine, user_after_result: false, stream_usage: false, ..base }
            }
            Self::Openai => Profile { empty_content: EmptyContent::Null, limit: Limit::MaxCompletionTokens, ..base },
        }
    }
}

/// Fields of a [`Profile`] that one model overrides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Overrides {
    pub arguments: Option<Arguments>,
    pub calls: Option<Calls>,
    pub empty_content: Option<EmptyContent>,
    pub system: Option<System>,
    pub ids: Option<Ids>,
    pub limit: Option<Limit>,
    pub user_after_result: Option<bool>,
    pub stream_usage: Option<bool>,
    pub reasoning: Option<bool>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overrides_win() {
        let overrides = Overrides { ids: Some(Ids::Any), stream_usage: Some(true), ..Overrides::default() };
        let profile = Profile::named("mistral").unwrap().with(overrides);
        assert_eq!((profile.ids, profile.stream_usage, profile.user_after_result), (Ids::Any, true, false));
    }
}
