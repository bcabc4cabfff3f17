//! What a client sends: a question, or answers to functions.
//!
//! A client that keeps the conversation itself sends all of it each time. Redial has it on record: what counts is what
//! follows the last thing that Redial said, and its ids say which conversation that was.

use redial_proto::{CallId, TaskId, limits::shorten};
use serde_json::{Value, value::RawValue};

use super::{ids, request, wrong};
use crate::problem::Problem;

#[derive(Debug, Default)]
pub(crate) struct Input {
    /// Instructions within the messages: of the system or the developer.
    pub(crate) instructions: Option<String>,
    /// Oldest first.
    pub(crate) said: Vec<Said>,
    /// Answers to functions after the last question.
    pub(crate) outputs: Vec<(CallId, Box<RawValue>)>,
    /// Calls that were answered before the last question.
    pub(crate) answered: Vec<CallId>,
    /// A task of the conversation, by the ids of its items.
    pub(crate) task: Option<TaskId>,
}

#[derive(Debug)]
pub(crate) struct Said {
    by_user: bool,
    text: String,
}

impl Input {
    pub(crate) fn of_response(input: &Value) -> Result<Self, Problem> {
        let mut reader = Reader::default();
        match input {
            Value::String(text) => reader.say(true, text.clone()),
            Value::Array(items) => {
                for (n, item) in items.iter().enumerate() {
                    reader.item(format!("input[{n}]"), item)?;
                }
            }
            _ => return Err(wrong("input", "input: a text or a list of items is needed")),
        }
        reader.finish()
    }

    pub(crate) fn of_chat(messages: &[Value]) -> Result<Self, Problem> {
        let mut reader = Reader::default();
        for (n, message) in messages.iter().enumerate() {
            let param = format!("messages[{n}]");
            match message["role"].as_str() {
                Some("tool") => reader.output(param, &message["tool_call_id"], &message["content"]),
                role => reader.message(&param, role, message)?,
            }
        }
        reader.finish()
    }

    /// Returns the question for a conversation that Redial has on record: what the user said since Redial last spoke.
    pub(crate) fn question(&self) -> String {
        let since = self.said.iter().rposition(|said| !said.by_user).map_or(0, |at| at + 1);
        let texts: Vec<&str> = self.said[since..].iter().map(|said| said.text.as_str()).collect();
        texts.join("\n\n")
    }

    /// Returns the question for a new conversation, with what was said before as far as Redial does not know it.
    pub(crate) fn whole(&self) -> String {
        if self.said.iter().all(|said| said.by_user) {
            return self.question();
        }
        let line = |said: &Said| format!("{}: {}", if said.by_user { "User" } else { "Assistant" }, said.text);
        let since = self.said.iter().rposition(|said| !said.by_user).map_or(0, |at| at + 1);
        let before: Vec<String> = self.said[..since].iter().map(line).collect();
        format!("Earlier in this conversation:\n\n{}\n\nNow:\n\n{}", before.join("\n\n"), self.question())
    }
}

#[derive(Default)]
struct Reader<'a> {
    input: Input,
    /// Since the last question.
    outputs: Vec<Output<'a>>,
    /// The user said something since the agent's last item.
    is_asked: bool,
}

/// An answer to a function. It is judged only if no question follows: then it is this request's, and not history.
struct Output<'a> {
    param: String,
    call: &'a Value,
    content: &'a Value,
    /// A question stands before it, and nothing of the agent between them.
    is_beside_question: bool,
}

impl<'a> Reader<'a> {
    fn item(&mut self, param: String, item: &'a Value) -> Result<(), Problem> {
        if let Some(task) = item["id"].as_str().and_then(ids::task_of_item) {
            self.input.task = Some(task);
        }
        match item["type"].as_str() {
            None | Some("message") => return self.message(&param, item["role"].as_str(), item),
            Some("function_call_output") => self.output(param, &item["call_id"], &item["output"]),
            // What Redial said itself is on record.
            Some("function_call" | "mcp_call" | "reasoning" | "mcp_list_tools") => self.is_asked = false,
            Some(other) => {
                let allowed = "message, function_call_output, and items of earlier responses";
                let shown = shorten(other, 60);
                return Err(wrong(&param, format!("{param} has the type {shown:?}; allowed: {allowed}")));
            }
        }
        Ok(())
    }

    fn message(&mut self, param: &str, role: Option<&str>, message: &Value) -> Result<(), Problem> {
        let text = request::text(param, &message["content"])?;
        match role {
            Some("user") => self.say(true, text),
            Some("assistant") if text.is_empty() => self.is_asked = false,
            Some("assistant") => self.say(false, text),
            Some("system" | "developer") => {
                let before = self.input.instructions.take().map(|before| before + "\n\n").unwrap_or_default();
                self.input.instructions = Some(before + &text);
            }
            role => {
                let shown = shorten(role.unwrap_or("absent"), 60);
                let message =
                    format!("{param} has the role {shown}; allowed: user, assistant, system, developer, tool");
                return Err(wrong(param, message));
            }
        }
        Ok(())
    }

    fn say(&mut self, by_user: bool, text: String) {
        // Ids that are not Redial's are of a conversation that was begun elsewhere.
        let answered = self.outputs.drain(..).filter_map(|output| ids::call(output.call.as_str()?));
        self.input.answered.extend(answered);
        self.is_asked = by_user && !text.trim().is_empty();
        self.input.said.push(Said { by_user, text });
    }

    fn output(&mut self, param: String, call: &'a Value, content: &'a Value) {
        self.outputs.push(Output { param, call, content, is_beside_question: self.is_asked });
    }

    fn finish(mut self) -> Result<Input, Problem> {
        self.input.outputs = self.outputs.iter().map(Output::read).collect::<Result<_, _>>()?;
        Ok(self.input)
    }
}

impl Output<'_> {
    fn read(&self) -> Result<(CallId, Box<RawValue>), Problem> {
        let Self { param, .. } = self;
        let id = self.call.as_str().unwrap_or_default();
        let call = ids::call(id).ok_or_else(|| {
            let shown = shorten(id, 100);
            wrong(param, format!("{param}: {shown:?} is no id of a call; allowed: the call_id of a function call"))
        })?;
        if self.is_beside_question {
            return Err(beside_question(param, &[id.to_owned()]));
        }
        Ok((call, request::output(&request::text(param, self.content)?)))
    }
}

/// Refuses answers and a question in one request: a question is for a task of its own.
pub(crate) fn beside_question(param: &str, calls: &[String]) -> Problem {
    let message = format!(
        "the function calls {} are answered beside a question; allowed: the outputs first, and then the question, in a request of \
         its own (with previous_response_id)",
        calls.join(", ")
    );
    wrong(param, message)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_client_that_sends_everything_means_what_is_new() {
        let call = CallId::generate();
        let task = TaskId::generate();
        let id = ids::of_item("msg", ids::ResponseId { task, segment: 0 }, 0);
        let items = json!([
            {"role": "developer", "content": "Be brief."},
            {"role": "user", "content": [{"type": "input_text", "text": "Hello"}]},
            {"type": "message", "id": id, "role": "assistant", "content": [{"type": "output_text", "text": "Hi"}]},
            {"role": "user", "content": "Which city?"},
        ]);
        let input = Input::of_response(&items).unwrap();
        assert_eq!((input.instructions.as_deref(), input.task), (Some("Be brief."), Some(task)));
        assert_eq!(input.question(), "Which city?");
        let whole = input.whole();
        assert_eq!(whole, "Earlier in this conversation:\n\nUser: Hello\n\nAssistant: Hi\n\nNow:\n\nWhich city?");
        let answered = json!([
            {"role": "user", "content": "Hello"},
            {"type": "function_call", "call_id": ids::of_call(call), "name": "f", "arguments": "{}"},
            {"type": "function_call_output", "call_id": ids::of_call(call), "output": "{\"a\": 1e400}"},
        ]);
        let outputs = Input::of_response(&answered).unwrap().outputs;
        let outputs: Vec<(CallId, &str)> = outputs.iter().map(|(call, output)| (*call, output.get())).collect();
        assert_eq!(outputs, [(call, "{\"a\": 1e400}")], "byte for byte");
        let mut more = answered.as_array().unwrap().clone();
        more.push(json!({"role": "user", "content": "And now?"}));
        let later = Input::of_response(&more.into()).unwrap();
        assert_eq!((later.outputs.len(), later.answered), (0, vec![call]), "answered before the question");
    }

    #[test]
    fn a_question_beside_answers_is_not_dropped() {
        let id = ids::of_call(CallId::generate());
        let question = json!({"role": "user", "content": "And the weather?"});
        let output = json!({"type": "function_call_output", "call_id": id, "output": "x"});
        let call = json!({"type": "function_call", "call_id": id, "name": "f", "arguments": "{}"});
        let told = Input::of_response(&json!([question, output])).unwrap_err().error.message;
        assert!(told.contains(&id) && told.contains("the outputs first"), "{told}");
        assert!(Input::of_response(&json!([call, question, output])).is_err());
        assert_eq!(Input::of_response(&json!([question, call, output])).unwrap().outputs.len(), 1);

        let tool = json!({"role": "tool", "tool_call_id": id, "content": "x"});
        assert!(Input::of_chat(&[question.clone(), tool.clone()]).is_err());
        let asked = json!({"role": "assistant", "content": null, "tool_calls": [{"id": id, "type": "function"}]});
        assert_eq!(Input::of_chat(&[question, asked, tool]).unwrap().outputs.len(), 1);
    }

    #[test]
    fn answers_of_a_conversation_begun_elsewhere_are_not_judged() {
        let history = [
            json!({"role": "user", "content": "Hello"}),
            json!({"role": "assistant", "content": null, "tool_calls": [{"id": "toolu_1", "type": "function"}]}),
            json!({"role": "tool", "tool_call_id": "toolu_1", "content": [{"type": "image"}]}),
            json!({"role": "assistant", "content": "Hi"}),
            json!({"role": "user", "content": "Go on."}),
        ];
        let input = Input::of_chat(&history).unwrap();
        assert_eq!((input.question().as_str(), input.answered.len()), ("Go on.", 0));
        let told = Input::of_chat(&history[..3]).unwrap_err().error.message;
        assert!(told.contains("\"toolu_1\" is no id of a call"), "{told}");
    }

    #[test]
    fn what_cannot_be_taken_is_named() {
        for (input, told) in [
            (json!(3), "a text or a list"),
            (json!([{"type": "computer_call"}]), "input[0] has the type \"computer_call\""),
            (json!([{"role": "user", "content": [{"type": "input_image"}]}]), "type input_image; allowed: text"),
            (json!([{"role": "robot", "content": "x"}]), "role robot"),
            (json!([{"type": "function_call_output", "call_id": "call_1", "output": "x"}]), "no id of a call"),
        ] {
            let problem = Input::of_response(&input).unwrap_err();
            assert!(problem.error.message.contains(told), "{}", problem.error.message);
        }
    }
}
