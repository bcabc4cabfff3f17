//! Chat completions, as the strictest of those that speak them.
//!
//! Stricter than OpenAI itself where a chat template of a local model is (vLLM, llama.cpp): a system message stands
//! first only, the first message after it is the user's, texts are not empty, arguments are the text of an object.

use serde_json::{Map, Value};

use super::{Open, alternates, messages, only, text, token, tools};

/// OpenAI's longest id of a call.
const LONGEST_ID: usize = 40;

/// What the chat template of a local model, or a server, wants otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    /// Arguments are an object, not its text.
    ObjectArguments,
    /// An assistant message has one call at most.
    OneCall,
    /// Ids are exactly nine letters and digits.
    NineSigns,
    /// A tool message is followed by an assistant message.
    NoUserAfterTool,
    /// There is no system message.
    NoSystem,
    /// The content of an assistant message is a text, if an empty one.
    NoNull,
}

/// Panics unless a model that knows nothing of tools accepts the request, as those with ReAct: plain texts by turns.
pub(crate) fn accepts_plain(body: &Value) {
    for key in ["tools", "tool_choice", "parallel_tool_calls", "functions"] {
        assert_eq!(body.get(key), None, "the model knows no tools");
    }
    let messages = messages(body);
    for message in messages {
        only(message, &["role", "content"]);
    }
    alternates(&messages[usize::from(messages[0]["role"] == "system")..]);
    accepts(body, &[]);
}

/// Panics unless a server with these rules accepts the request.
pub(crate) fn accepts(body: &Value, rules: &[Rule]) {
    text(&body["model"]);
    tools(body, |tool| (&tool["function"]["name"], &tool["function"]["parameters"]));
    assert!(body["tools"].as_array().into_iter().flatten().all(|tool| tool["type"] == "function"));
    let mut conversation = Conversation { rules, open: Open::default(), before: "" };
    let messages = messages(body);
    for (n, message) in messages.iter().enumerate() {
        assert!(message["role"] != "system" || n == 0, "a system message stands first only");
        conversation.message(message);
    }
    conversation.open.all_answered();
    let others = || messages.iter().map(|message| &message["role"]).filter(|role| *role != "system");
    assert_eq!(others().next().unwrap(), "user", "the first message");
    assert!(others().next_back().is_some_and(|role| role == "user" || role == "tool"), "the last message");
}

struct Conversation<'a> {
    rules: &'a [Rule],
    open: Open<'a>,
    /// The role of the message before.
    before: &'a str,
}

impl<'a> Conversation<'a> {
    fn wants(&self, rule: Rule) -> bool {
        self.rules.contains(&rule)
    }

    fn message(&mut self, message: &'a Value) {
        let role = message["role"].as_str().unwrap_or_default();
        if role != "tool" {
            self.open.all_answered();
        }
        match role {
            "system" | "user" => {
                only(message, &["role", "content"]);
                assert!(role == "user" || !self.wants(Rule::NoSystem), "there must be no system message");
                assert!(self.before != "tool" || !self.wants(Rule::NoUserAfterTool), "a user message after a tool's");
                text(&message["content"]);
            }
            "assistant" => self.assistant(message),
            "tool" => {
                only(message, &["role", "content", "tool_call_id"]);
                assert!(message["content"].is_string(), "{message}");
                self.open.result(&message["tool_call_id"]);
            }
            _ => panic!("{role:?} is no role"),
        }
        self.before = role;
    }

    fn assistant(&mut self, message: &'a Value) {
        only(message, &["role", "content", "tool_calls", "reasoning_content", "reasoning_details"]);
        let content = &message["content"];
        assert!(content.is_string() || (content.is_null() && !self.wants(Rule::NoNull)), "{message}");
        let Some(calls) = message.get("tool_calls") else {
            text(content);
            return;
        };
        let calls = calls.as_array().unwrap();
        assert!(calls.len() == 1 || (calls.len() > 1 && !self.wants(Rule::OneCall)), "{} calls", calls.len());
        for call in calls {
            let id = token(&call["id"], LONGEST_ID);
            let has_nine = id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
            assert!(has_nine || !self.wants(Rule::NineSigns), "{id:?} is not nine signs");
            self.open.call(id);
            assert_eq!(call["type"], "function");
            token(&call["function"]["name"], 64);
            let arguments = &call["function"]["arguments"];
            let is_text = || arguments.as_str().is_some_and(|a| serde_json::from_str::<Map<_, _>>(a).is_ok());
            let is_fine = if self.wants(Rule::ObjectArguments) { arguments.is_object() } else { is_text() };
            assert!(is_fine, "arguments {arguments}");
        }
    }
}
