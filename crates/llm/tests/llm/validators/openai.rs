//! Chat completions, as the strictest of those that speak them.
//!
//! Stricter than OpenAI itself where a chat template of a local model is (vLLM, llama.cpp): a system message stands
//! first only, the first message after it is the user's, texts are not empty, arguments are the text of an object.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::Faults;

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

/// What is wrong with a request, for OpenAI itself.
pub(crate) fn faults(body: &Value) -> Vec<String> {
    faults_by(body, &[])
}

/// What is wrong with a request where these rules hold, too.
pub(crate) fn faults_by(body: &Value, rules: &[Rule]) -> Vec<String> {
    let mut faults = Faults::default();
    faults.text(&body["model"], "model");
    faults.tools(body, |tool| (&tool["function"]["name"], &tool["function"]["parameters"]));
    for (n, tool) in body["tools"].as_array().into_iter().flatten().enumerate() {
        faults.check(tool["type"] == "function", &format!("tools[{n}]"), "its type is not \"function\"");
    }
    match body["messages"].as_array() {
        Some(messages) if !messages.is_empty() => Conversation::new(rules).check(&mut faults, messages),
        _ => faults.add("messages", "a list that is not empty is needed"),
    }
    faults.0
}

struct Conversation<'a> {
    rules: &'a [Rule],
    /// Ids of all calls until now.
    ids: BTreeSet<String>,
    /// Calls of the last assistant message that are not answered yet, in order.
    open: Vec<String>,
    /// The messages since the last assistant message with calls are tools'.
    answering: bool,
}

impl<'a> Conversation<'a> {
    fn new(rules: &'a [Rule]) -> Self {
        Self { rules, ids: BTreeSet::new(), open: Vec::new(), answering: false }
    }

    fn wants(&self, rule: Rule) -> bool {
        self.rules.contains(&rule)
    }

    fn check(mut self, faults: &mut Faults, messages: &[Value]) {
        for (n, message) in messages.iter().enumerate() {
            let place = format!("messages[{n}]");
            match message.as_object() {
                Some(message) => self.message(faults, message, (n, &place)),
                None => faults.add(&place, "it is no object"),
            }
        }
        self.all_answered(faults, "the end");
        let others = || messages.iter().map(|message| &message["role"]).filter(|role| *role != "system");
        faults.check(others().next().is_some_and(|role| role == "user"), "messages", "the first one is not the user's");
        let last = others().next_back();
        let fine = last.is_some_and(|role| role == "user" || role == "tool");
        faults.check(fine, "messages", "the last one is neither the user's nor a tool's");
    }

    fn message(&mut self, faults: &mut Faults, message: &Map<String, Value>, (n, place): (usize, &str)) {
        let content = message.get("content").unwrap_or(&Value::Null);
        let role = message.get("role").and_then(Value::as_str).unwrap_or_default();
        if role != "tool" {
            self.all_answered(faults, place);
            let after_tool = std::mem::take(&mut self.answering) && role == "user";
            faults.check(!(after_tool && self.wants(Rule::NoUserAfterTool)), place, "a user message after a tool's");
        }
        match role {
            "system" => {
                faults.only(message, &["role", "content"], place);
                faults.check(n == 0, place, "a system message stands first only");
                faults.check(!self.wants(Rule::NoSystem), place, "there must be no system message");
                faults.text(content, place);
            }
            "user" => {
                faults.only(message, &["role", "content"], place);
                faults.text(content, place);
            }
            "assistant" => self.assistant(faults, message, place),
            "tool" => self.tool(faults, message, place),
            _ => faults.add(place, format_args!("{:?} is no role", message.get("role"))),
        }
    }

    fn assistant(&mut self, faults: &mut Faults, message: &Map<String, Value>, place: &str) {
        let known = ["role", "content", "tool_calls", "reasoning_content", "reasoning_details"];
        faults.only(message, &known, place);
        let content = message.get("content").unwrap_or(&Value::Null);
        faults.check(content.is_string() || !self.wants(Rule::NoNull), place, "the content is no text");
        let Some(calls) = message.get("tool_calls") else { return faults.text(content, place) };
        let fine = content.is_null() || content.is_string();
        faults.check(fine, place, format_args!("the content is {content}, neither a text nor null"));
        let Some(calls) = calls.as_array().filter(|calls| !calls.is_empty()) else {
            return faults.add(place, "tool_calls is no list, or empty");
        };
        self.answering = true;
        faults.check(calls.len() == 1 || !self.wants(Rule::OneCall), place, "more than one call");
        for call in calls {
            self.call(faults, call, place);
        }
    }

    fn call(&mut self, faults: &mut Faults, call: &Value, place: &str) {
        faults.token(&call["id"], LONGEST_ID, place);
        let id = call["id"].as_str().unwrap_or_default().to_owned();
        let nine = id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
        faults.check(nine || !self.wants(Rule::NineSigns), place, format_args!("{id:?} is not nine signs"));
        faults.check(self.ids.insert(id.clone()), place, format_args!("id {id:?} is there twice"));
        faults.check(call["type"] == "function", place, "the type of a call is not \"function\"");
        faults.name(&call["function"]["name"], place);
        let arguments = &call["function"]["arguments"];
        if self.wants(Rule::ObjectArguments) {
            faults.check(arguments.is_object(), place, format_args!("arguments {arguments} are no object"));
        } else {
            let object = |text: &str| serde_json::from_str::<Map<String, Value>>(text).is_ok();
            let fine = arguments.as_str().is_some_and(object);
            faults.check(fine, place, format_args!("arguments {arguments} are not the text of an object"));
        }
        self.open.push(id);
    }

    fn tool(&mut self, faults: &mut Faults, message: &Map<String, Value>, place: &str) {
        faults.only(message, &["role", "content", "tool_call_id"], place);
        let is_text = message.get("content").is_some_and(Value::is_string);
        faults.check(is_text, place, "the content of a tool message is no text");
        faults.check(self.answering, place, "a tool message that does not follow calls directly");
        let id = message.get("tool_call_id").and_then(Value::as_str).unwrap_or_default();
        match self.open.iter().position(|open| open == id) {
            None => faults.add(place, format_args!("{id:?} is no call that waits for an answer")),
            Some(at) => {
                faults.check(at == 0, place, format_args!("{id:?} is answered before {:?}", self.open[0]));
                self.open.remove(at);
            }
        }
    }

    fn all_answered(&mut self, faults: &mut Faults, place: &str) {
        for id in self.open.drain(..) {
            faults.add(place, format_args!("call {id:?} was not answered before this"));
        }
    }
}

mod tests {
    use serde_json::json;

    use super::{
        super::mutations::{is_refused, put, remove},
        *,
    };

    fn good() -> Value {
        json!({
            "model": "m",
            "messages": [
                {"role": "system", "content": "be brief"},
                {"role": "user", "content": "weather?"},
                {"role": "assistant", "content": null, "tool_calls": [
                    {"id": "c1", "type": "function", "function": {"name": "get_weather", "arguments": "{\"a\":1}"}},
                    {"id": "c2", "type": "function", "function": {"name": "get_weather", "arguments": "{}"}},
                ]},
                {"role": "tool", "tool_call_id": "c1", "content": "{}"},
                {"role": "tool", "tool_call_id": "c2", "content": ""},
                {"role": "assistant", "content": "rain"},
                {"role": "user", "content": "thanks"},
                {"role": "user", "content": "answer now"},
            ],
            "tools": [{"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object"}}}],
            "tool_choice": "auto",
        })
    }

    #[test]
    fn a_changed_value_is_found() {
        let other_call = json!([{"id": "c1", "type": "function", "function": {"name": "a", "arguments": "{}"}}]);
        for (pointer, value, wanted) in [
            ("/model", json!(""), "model: the text is empty"),
            ("/messages", json!([]), "messages: a list that is not empty"),
            ("/messages/0/role", json!("developer"), "is no role"),
            ("/messages/1/role", json!("system"), "messages[1]: a system message stands first only"),
            ("/messages/1/content", json!(""), "messages[1]: the text is empty"),
            ("/messages/1/content", json!([{"type": "text"}]), "messages[1]: a text is needed"),
            ("/messages/1/name", json!("x"), "messages[1]: \"name\" is not allowed here"),
            ("/messages/2/content", json!({}), "neither a text nor null"),
            ("/messages/2/tool_calls", json!([]), "messages[2]: tool_calls is no list, or empty"),
            ("/messages/2/tool_calls/0/id", json!("c2"), "\"c2\" is there twice"),
            ("/messages/2/tool_calls/0/id", json!("c".repeat(41)), "is not 1 to 40 of"),
            ("/messages/2/tool_calls/0/id", json!("c3"), "\"c1\" is no call that waits"),
            ("/messages/2/tool_calls/0/id", json!("c3"), "messages[5]: call \"c3\" was not answered"),
            ("/messages/2/tool_calls/0/type", json!("tool"), "the type of a call"),
            ("/messages/2/tool_calls/0/function/name", json!("a b"), "is not 1 to 64 of"),
            ("/messages/2/tool_calls/0/function/name", json!("订机票"), "is not 1 to 64 of"),
            ("/messages/2/tool_calls/0/function/arguments", json!({}), "not the text of an object"),
            ("/messages/2/tool_calls/0/function/arguments", json!("[]"), "not the text of an object"),
            ("/messages/2/tool_calls/0/function/arguments", json!("{\"a\":"), "not the text of an object"),
            ("/messages/3/content", json!(null), "messages[3]: the content of a tool message is no text"),
            ("/messages/3/tool_call_id", json!("c2"), "\"c2\" is answered before \"c1\""),
            ("/messages/4/tool_call_id", json!("c1"), "messages[4]: \"c1\" is no call that waits"),
            ("/messages/3/role", json!("user"), "messages[3]: call \"c1\" was not answered"),
            ("/messages/5/content", json!(null), "messages[5]: a text is needed"),
            ("/messages/5/tool_calls", other_call, "\"c1\" is there twice"),
            ("/tools", json!([]), "tools: a list that is not empty"),
            ("/tools/0/type", json!("tool"), "tools[0]: its type"),
            ("/tools/0/function/name", json!(""), "tools[0]: \"\" is not"),
            ("/tools/0/function/parameters", json!({}), "tools[0]: its schema"),
        ] {
            is_refused(&good(), |body| put(body, pointer, value), wanted, faults);
        }
    }

    #[test]
    fn each_rule_of_others_is_checked() {
        for (rule, wanted) in [
            (Rule::ObjectArguments, "messages[2]: arguments \"{\\\"a\\\":1}\" are no object"),
            (Rule::OneCall, "messages[2]: more than one call"),
            (Rule::NineSigns, "messages[2]: \"c1\" is not nine signs"),
            (Rule::NoSystem, "messages[0]: there must be no system message"),
            (Rule::NoNull, "messages[2]: the content is no text"),
        ] {
            let found = faults_by(&good(), &[rule]);
            assert!(found.iter().any(|fault| fault == wanted), "{wanted:?} is not among {found:#?}");
        }
        assert_eq!(faults_by(&good(), &[Rule::NoUserAfterTool]), Vec::<String>::new());
        let mut cut = good();
        remove(&mut cut, "/messages/5");
        assert_eq!(faults_by(&cut, &[Rule::NoUserAfterTool]), ["messages[5]: a user message after a tool's"]);
    }

    #[test]
    fn a_missing_or_added_part_is_found() {
        for (pointer, wanted) in [
            ("/messages/2", "messages[2]: a tool message that does not follow calls directly"),
            ("/messages/3", "messages[3]: \"c2\" is answered before \"c1\""),
            ("/messages/4", "messages[4]: call \"c2\" was not answered"),
            ("/messages/1", "messages: the first one is not the user's"),
            ("/tools", "tool_choice: there are no tools"),
        ] {
            is_refused(&good(), |body| remove(body, pointer), wanted, faults);
        }
        let twice = good()["tools"][0].clone();
        is_refused(&good(), |body| put(body, "/tools/-", twice), "\"get_weather\" is there twice", faults);
        let orphan = json!({"role": "tool", "tool_call_id": "c1", "content": "late"});
        is_refused(&good(), |body| put(body, "/messages/-", orphan), "does not follow calls directly", faults);
        let last = json!({"role": "assistant", "content": "I"});
        is_refused(&good(), |body| put(body, "/messages/-", last), "neither the user's nor a tool's", faults);
        let open = good()["messages"][2].clone();
        is_refused(&good(), |body| put(body, "/messages/-", open), "the end: call \"c1\" was not answered", faults);
    }
}
