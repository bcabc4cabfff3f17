//! A model's turn: the arguments and the output of a call in pool [`POOL`].

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use strum::{VariantArray, VariantNames};

use crate::{Message, TaskId, TurnUsage, names::named};

/// The pool of workers that ask models. No tool may name it.
pub const POOL: &str = "models";

/// The name under which a model is registered: the one that agents use, behind a prefix that no tool may have.
pub fn tool_name(model: &str) -> String {
    format!("{PREFIX}{model}")
}

/// The model of a registered name; `None` for a tool.
pub fn model_name(tool: &str) -> Option<&str> {
    tool.strip_prefix(PREFIX)
}

const PREFIX: &str = "model-";

/// The language of what Redial says to a model.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, VariantArray, VariantNames,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Language {
    /// English.
    #[default]
    En,
    /// Chinese.
    Zh,
}

named!(Language, "a language");

impl Language {
    /// Chinese if the text says something in Chinese: it has one of the characters that Chinese sentences need and names hardly
    /// have, and no hiragana; or if it has at least as many Chinese words, of about two characters, as words in other letters.
    /// So a Chinese question about an English document is Chinese, and an English one about 北京大学 is English, as
    /// everything else is.
    pub fn of(text: &str) -> Self {
        let (mut chinese, mut others, mut is_sentence, mut in_word) = (0_usize, 0_usize, false, false);
        for c in text.chars() {
            let was_in_word = std::mem::take(&mut in_word);
            match c {
                // Japanese writes with these, too.
                '\u{3041}'..='\u{30ff}' => others += 1,
                '\u{3400}'..='\u{9fff}' | '\u{20000}'..='\u{3ffff}' => {
                    chinese += 1;
                    is_sentence |= GRAMMAR.contains(c);
                }
                _ => {
                    in_word = c.is_alphabetic();
                    others += usize::from(in_word && !was_in_word);
                }
            }
        }
        let has_hiragana = text.contains(|c| matches!(c, '\u{3041}'..='\u{3096}'));
        let says_it = is_sentence && !has_hiragana;
        if says_it || (chinese > 0 && chinese >= 2 * others) { Self::Zh } else { Self::En }
    }
}

/// Characters that Chinese sentences need: pronouns, particles, requests, questions.
const GRAMMAR: &str = "的了是我你您他她们們这這那请請帮幫给給把吗嗎呢吧么麼怎什没沒还還就也";

/// A tool as it is offered to a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolOffer {
    /// Its name.
    pub name: String,
    /// What it does, for the model.
    #[serde(default)]
    pub description: String,
    /// JSON Schema of its arguments.
    pub parameters: Value,
    /// Fingerprint of its spec: failures of a changed tool are forgotten.
    #[serde(default)]
    pub version: String,
    /// See [`crate::ToolSpec::polling`].
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub polling: bool,
    /// See [`crate::ToolSpec::sequential`].
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sequential: bool,
    /// See [`crate::ToolSpec::repairs`].
    #[serde(default = "crate::fields::yes", skip_serializing_if = "Clone::clone")]
    pub repairs: bool,
}

/// What a model is asked: the arguments of its call. The same for every provider.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TurnRequest {
    /// The task.
    pub task: TaskId,
    /// Its turn, from 1.
    pub turn: u32,
    /// The conversation as the model will see it: a system message first, if there is one; every call answered.
    pub messages: Vec<Message>,
    /// What it may call; empty for a turn that must end in an answer.
    #[serde(default)]
    pub tools: Vec<ToolOffer>,
    /// Language of the instructions that a text protocol adds.
    #[serde(default)]
    pub language: Language,
    /// Longest answer, in tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u32>,
    /// Sampling temperature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// What was left out of the view to keep within the limit.
    #[serde(default)]
    pub trimmed: Trimmed,
}

/// What was left out of the view of a conversation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Trimmed {
    /// Estimated size of the view, in tokens.
    pub tokens: u32,
    /// Tool results that were shortened.
    pub shortened: u32,
    /// Messages that were left out.
    pub left_out: u32,
}

/// A call as a model wrote it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReplyCall {
    /// The tool's name as written.
    pub name: String,
    /// The arguments as written: any text.
    pub arguments: String,
}

/// Why a model stopped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Finish {
    /// The answer is complete.
    #[default]
    Stop,
    /// It wants tools to run.
    ToolCalls,
    /// It reached the limit of tokens; the end is cut off.
    Length,
    /// The provider or the model refused to answer.
    Refused,
    /// A reason that this version does not know.
    #[serde(other)]
    Other,
}

/// What a model answered: the output of its call. A malformed answer is an answer too.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TurnReply {
    /// The text of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The reasoning that it wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thought: Option<String>,
    /// The calls that it asks for, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<ReplyCall>,
    /// Why it stopped.
    #[serde(default)]
    pub finish: Finish,
    /// What is wrong with the form of the answer, in words for the model, which is asked to answer again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// The last call is cut off, although its arguments look complete: the provider closed what the model left open.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub call_cut_off: bool,
    /// Its cost, as far as the provider told it, and an estimate of the rest.
    #[serde(default)]
    pub usage: TurnUsage,
    /// The model, by the provider's own name.
    #[serde(default)]
    pub model: String,
    /// Data that the provider wants back unchanged with the next request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<Value>,
}

/// A piece of an answer while it is being written, for watchers; published on `redial.events.<tenant>.tasks.<task>.delta`.
/// Pieces may be lost: those that follow say so by their position, and every few seconds one has the whole text so far.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Delta {
    /// The turn.
    pub turn: u32,
    /// The attempt that writes it, from 1: a later one begins again.
    pub attempt: u32,
    /// More of the text.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// More of the reasoning.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub thought: String,
    /// What precedes it; absent if all that was written so far is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<DeltaPosition>,
    /// Instead of a piece: all that was written so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub whole: Option<WholeText>,
}

/// Bytes (UTF-8) of an answer that precede a piece of it, since the attempt began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DeltaPosition {
    /// Of the text.
    pub text: u64,
    /// Of the reasoning.
    pub thought: u64,
}

/// An answer so far.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WholeText {
    /// The text.
    pub text: String,
    /// The reasoning.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub thought: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_language_is_that_of_what_is_said_and_not_of_names_and_quotations() {
        for text in [
            "订北京酒店",
            "订 Shanghai 到 Beijing 的 flight",
            "请总结这份文件: The quick brown fox jumps over the lazy dog, and so on for many pages.",
            "Error: connection refused (os error 111)\n这是什么意思?",
            "明天 OK 吗",
            "搜索 Python asyncio 教程",
        ] {
            assert_eq!(Language::of(text), Language::Zh, "{text}");
        }
        for text in [
            "",
            "42",
            "a table at 鼎泰豐, please",
            "Book 北京大学 for tomorrow",
            "Где находится 北京?",
            "東京から大阪までの便を予約してください",
            "予約をお願いします",
            "서울에서 北京까지",
        ] {
            assert_eq!(Language::of(text), Language::En, "{text}");
        }
    }
}
