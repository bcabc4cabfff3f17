//! What is special about a model behind the chat completions interface, and the servers and templates around it.

use serde::Deserialize;

/// How arguments of earlier calls are shown again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Arguments {
    /// As the text of a JSON object: OpenAI's own rule, and what the template of DeepSeek-V3 needs.
    #[default]
    Text,
    /// As a JSON object: what the templates of GLM and Qwen3 need where the server does not parse the text itself.
    Object,
}

/// How many calls one assistant message may hold when it is shown again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Calls {
    /// Any number.
    #[default]
    Several,
    /// One: several calls are shown as several messages, each directly before its result.
    One,
}

/// The content of an assistant message that only calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Silence {
    /// The empty text: strict servers refuse `null` (llama-cpp-python 0.3.36), nobody refuses this.
    #[default]
    Empty,
    /// `null`.
    Null,
    /// No such field.
    Absent,
}

/// Where system messages may stand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum System {
    /// Where they are.
    #[default]
    Anywhere,
    /// One, in front of everything.
    First,
    /// Nowhere: the text goes in front of the first user message.
    User,
}

/// The form of a call's id.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ids {
    /// Up to 40 ASCII letters, digits, `_` and `-`.
    #[default]
    Any,
    /// Exactly nine ASCII letters and digits: Mistral refuses all others.
    Nine,
}

/// The field that limits the length of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// `max_tokens`: what compatible servers know.
    #[default]
    MaxTokens,
    /// `max_completion_tokens`: what OpenAI's own newer models insist on.
    MaxCompletionTokens,
}

/// All of it. The default is what most compatible servers take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Profile {
    /// How arguments of earlier calls are shown again.
    pub arguments: Arguments,
    /// How many calls one assistant message may hold.
    pub calls: Calls,
    /// The content of an assistant message that only calls.
    pub silence: Silence,
    /// Where system messages may stand.
    pub system: System,
    /// The form of a call's id.
    pub ids: Ids,
    /// The field that limits the length of an answer.
    pub limit: Limit,
    /// A user message may follow a result directly; else its text is put at the end of the result.
    pub user_after_result: bool,
    /// A stream ends with its usage if `stream_options` asks for it.
    pub stream_usage: bool,
    /// The model wants to see its earlier reasoning again, as `reasoning_content`.
    pub reasoning: bool,
}

impl Default for Profile {
    fn default() -> Self {
        Self {
            arguments: Arguments::default(),
            calls: Calls::default(),
            silence: Silence::default(),
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
    /// The profiles that have a name, sorted.
    pub const NAMES: [&'static str; 9] =
        ["compatible", "deepseek", "gemma", "glm", "llama_cpp", "mistral", "ollama", "openai", "qwen"];

    /// The profile of a name.
    pub fn named(name: &str) -> Option<Self> {
        let base = Self::default();
        match name {
            "compatible" | "ollama" => Some(base),
            "deepseek" => Some(Self { system: System::First, ..base }),
            "gemma" => Some(Self { calls: Calls::One, system: System::User, ..base }),
            "glm" | "qwen" => Some(Self { arguments: Arguments::Object, system: System::First, ..base }),
            "llama_cpp" => Some(Self { system: System::First, stream_usage: false, ..base }),
            "mistral" => Some(Self {
                system: System::First,
                ids: Ids::Nine,
                user_after_result: false,
                stream_usage: false,
                ..base
            }),
            "openai" => Some(Self { silence: Silence::Null, limit: Limit::MaxCompletionTokens, ..base }),
            _ => None,
        }
    }

    /// This profile with the switches that are set.
    #[must_use]
    pub fn with(self, switches: Switches) -> Self {
        Self {
            arguments: switches.arguments.unwrap_or(self.arguments),
            calls: switches.calls.unwrap_or(self.calls),
            silence: switches.silence.unwrap_or(self.silence),
            system: switches.system.unwrap_or(self.system),
            ids: switches.ids.unwrap_or(self.ids),
            limit: switches.limit.unwrap_or(self.limit),
            user_after_result: switches.user_after_result.unwrap_or(self.user_after_result),
            stream_usage: switches.stream_usage.unwrap_or(self.stream_usage),
            reasoning: switches.reasoning.unwrap_or(self.reasoning),
        }
    }
}

/// The fields of a [`Profile`] that one model wants otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Switches {
    /// See [`Profile::arguments`].
    pub arguments: Option<Arguments>,
    /// See [`Profile::calls`].
    pub calls: Option<Calls>,
    /// See [`Profile::silence`].
    pub silence: Option<Silence>,
    /// See [`Profile::system`].
    pub system: Option<System>,
    /// See [`Profile::ids`].
    pub ids: Option<Ids>,
    /// See [`Profile::limit`].
    pub limit: Option<Limit>,
    /// See [`Profile::user_after_result`].
    pub user_after_result: Option<bool>,
    /// See [`Profile::stream_usage`].
    pub stream_usage: Option<bool>,
    /// See [`Profile::reasoning`].
    pub reasoning: Option<bool>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_a_profile_and_switches_win() {
        for name in Profile::NAMES {
            assert!(Profile::named(name).is_some(), "{name}");
        }
        assert!(Profile::NAMES.is_sorted() && Profile::named("gpt").is_none());
        let switches = Switches { ids: Some(Ids::Any), stream_usage: Some(true), ..Switches::default() };
        let profile = Profile::named("mistral").unwrap().with(switches);
        assert_eq!((profile.ids, profile.stream_usage, profile.user_after_result), (Ids::Any, true, false));
    }
}
