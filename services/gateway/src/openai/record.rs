//! A response from the record: its items, and its events with their numbers. Pure: the same steps give the same events, and
//! more steps only add events.

mod response;

use std::collections::{BTreeSet, HashMap};

use chrono::{DateTime, Utc};
use redial_proto::{
    CallId, Message, MessageCall, Role, StoredMessage, TaskCode, TaskDecision, TaskInput, TaskState, TaskStep, TaskView,
};
use serde_json::{Map, Value, json};

use super::{
    OWN_NOTE,
    ids::{ResponseId, of_item},
    items,
};

/// Bytes of the arguments, and of the output, of a call of a tool that are shown. Every gateway cuts at the same place.
const SHOWN: usize = 64 * 1024;
/// The same of all calls of a response together: it is held and sent as a whole.
const SHOWN_OF_ALL: usize = 1024 * 1024;

/// Where on record a response is, and what became of it so far.
pub(crate) struct Record {
    id: ResponseId,
    task: TaskView,
    segment: u32,
    /// Its turn called functions of the client.
    functions: bool,
    /// Calls of its turn that have no answer yet and that the client does not serve, by their ids in the conversation.
    open: BTreeSet<String>,
    /// Functions were called, and all else of the turn is answered.
    closed: bool,
    /// Calls of its turn that are shown and have not begun.
    calls: HashMap<String, MessageCall>,
    /// Bytes of calls of tools that may still be shown.
    room: usize,
    /// The calls of functions, by turn and number.
    functions_by_place: HashMap<(u32, u32), CallId>,
    created_at: DateTime<Utc>,
    status: &'static str,
    output: Vec<Value>,
    positions: HashMap<String, usize>,
    sequence: u64,
    events: Vec<Value>,
    ended: bool,
}

/// Results by their calls, and all other messages by their positions.
#[derive(Default)]
struct Written {
    results: HashMap<String, Message>,
    said: HashMap<u32, Message>,
}

impl Record {
    pub(crate) fn new(id: ResponseId, task: TaskView) -> Self {
        let mut record = Self {
            id,
            created_at: task.submitted_at,
            task,
            segment: 0,
            functions: false,
            open: BTreeSet::new(),
            closed: false,
            calls: HashMap::new(),
            room: SHOWN_OF_ALL,
            functions_by_place: HashMap::new(),
            status: "queued",
            output: Vec::new(),
            positions: HashMap::new(),
            sequence: 0,
            events: Vec::new(),
            ended: false,
        };
        if id.segment == 0 {
            record.event_of_response("response.created");
        }
        if id.segment == 0 && record.is_background() {
            record.event_of_response("response.queued");
        }
        record
    }

    pub(crate) fn update(&mut self, task: TaskView) {
        self.task = task;
    }

    /// Adds the call ids of functions, by turn and number.
    pub(crate) fn know_functions(&mut self, calls: impl IntoIterator<Item = ((u32, u32), CallId)>) {
        self.functions_by_place.extend(calls);
    }

    /// Says whether a step names a call of a function that is not known yet.
    pub(crate) fn lacks_functions(&self, steps: &[TaskStep]) -> bool {
        steps.iter().flat_map(|step| &step.decisions).any(|decision| match decision {
            TaskDecision::Run { turn, call_index, client: true, .. } => {
                !self.functions_by_place.contains_key(&(*turn, *call_index))
            }
            _ => false,
        })
    }

    /// Adds steps, with the messages that they wrote. Of those only what is shown stays in memory.
    pub(crate) fn add(&mut self, steps: &[TaskStep], messages: Vec<StoredMessage>) {
        let mut written = Written::default();
        for StoredMessage { seq, message, .. } in messages {
            if let (Role::Tool, Some(call)) = (message.role, message.call_id.clone()) {
                written.results.insert(call, message);
            } else {
                written.said.insert(seq, message);
            }
        }
        for step in steps {
            self.step(step, &mut written);
        }
    }

    /// Ends a response whose task ended without a step, as with unreadable progress. All steps must have been added.
    pub(crate) fn end_with_task(&mut self) {
        if self.task.state.is_terminal() && !self.ended {
            self.end(self.task.state, self.task.code.unwrap_or(TaskCode::Internal));
        }
    }

    /// Says whether it is complete, failed or cancelled: nothing more happens to it.
    pub(crate) const fn is_over(&self) -> bool {
        self.ended
    }

    /// Says whether the task got as far as this response.
    pub(crate) const fn has_begun(&self) -> bool {
        self.sequence > 0
    }

    pub(crate) fn take_events(&mut self) -> Vec<Value> {
        std::mem::take(&mut self.events)
    }

    /// Says whether this is the segment that is shown, and it goes on.
    const fn is_shown(&self) -> bool {
        self.segment == self.id.segment && !self.ended
    }

    fn step(&mut self, step: &TaskStep, written: &mut Written) {
        if matches!(step.input, TaskInput::Started { .. }) {
            self.begin();
        }
        let nudged = step.decisions.iter().any(|decision| matches!(decision, TaskDecision::Nudged { .. }));
        for decision in &step.decisions {
            match decision {
                TaskDecision::Message { seq } => {
                    if let Some(message) = written.said.remove(seq) {
                        self.assistant(message, nudged);
                    }
                }
                TaskDecision::Run { turn, call_index, id, client: true, .. } => {
                    self.function(*turn, *call_index, id);
                }
                TaskDecision::Run { id, .. } => self.tool(id),
                TaskDecision::Answered { turn, call_index, id, .. } => {
                    let whole = self.address_of(&step.input, *turn, *call_index);
                    self.answered(id, written.results.remove(id), &whole);
                }
                TaskDecision::Turn { .. } => {
                    self.calls.clear();
                    self.close_if_answered(step.at);
                    self.next_turn();
                }
                TaskDecision::Ended { state, code, .. } => {
                    self.close_if_answered(step.at);
                    self.end(*state, *code);
                }
                _ => {}
            }
        }
        self.close_if_answered(step.at);
    }

    fn begin(&mut self) {
        if self.is_shown() {
            self.status = "in_progress";
            self.event_of_response("response.in_progress");
        }
    }

    /// Shows the text beside calls. A text that was not taken is none, and the last one comes with the end.
    fn assistant(&mut self, message: Message, nudged: bool) {
        if message.role != Role::Assistant {
            return;
        }
        self.open.extend(message.calls.iter().map(|call| call.id.clone()));
        if !message.calls.is_empty() && !nudged && !message.content.trim().is_empty() {
            self.say(&message.content);
        }
        if self.is_shown() {
            self.calls.extend(message.calls.into_iter().map(|call| (call.id.clone(), call)));
        }
    }

    fn say(&mut self, text: &str) {
        if !self.is_shown() {
            return;
        }
        let index = self.output.len();
        let id = of_item("msg", self.id, index);
        self.item_added(items::message(&id, text, "in_progress"));
        let at = json!({"item_id": id, "output_index": index, "content_index": 0});
        self.event("response.content_part.added", &at, json!({"part": items::part("")}));
        self.event("response.output_text.delta", &at, json!({"delta": text, "logprobs": []}));
        self.event("response.output_text.done", &at, json!({"text": text, "logprobs": []}));
        self.event("response.content_part.done", &at, json!({"part": items::part(text)}));
        self.item_done(index, items::message(&id, text, "completed"));
    }

    fn function(&mut self, turn: u32, call_index: u32, id: &str) {
        self.open.remove(id);
        self.functions = true;
        let Some(call) = self.functions_by_place.get(&(turn, call_index)).copied().filter(|_| self.is_shown()) else {
            return;
        };
        let (name, arguments) = self.named(id);
        let index = self.output.len();
        let item = items::function_call(call, &name, "", "in_progress");
        let at = json!({"item_id": item["id"], "output_index": index});
        self.item_added(item);
        self.event("response.function_call_arguments.delta", &at, json!({"delta": arguments}));
        self.event("response.function_call_arguments.done", &at, json!({"name": name, "arguments": arguments}));
        self.item_done(index, items::function_call(call, &name, &arguments, "completed"));
    }

    fn tool(&mut self, id: &str) {
        if !self.is_shown() {
            return;
        }
        let (name, arguments) = self.named(id);
        let whole = format!("/v1/tasks/{}/events", self.task.task);
        let arguments = self.cut(arguments, &whole);
        let index = self.output.len();
        let item_id = of_item("mcp", self.id, index);
        self.positions.insert(id.to_owned(), index);
        self.item_added(items::tool_call(&item_id, &name, ""));
        let at = json!({"item_id": item_id, "output_index": index});
        self.event("response.mcp_call_arguments.delta", &at, json!({"delta": arguments}));
        self.event("response.mcp_call_arguments.done", &at, json!({"arguments": arguments}));
        self.event("response.mcp_call.in_progress", &at, json!({}));
        self.output[index]["arguments"] = arguments.into();
    }

    /// Shows a call that was answered without running.
    fn answered(&mut self, id: &str, result: Option<Message>, whole: &str) {
        if !self.open.remove(id) {
            return;
        }
        if !self.positions.contains_key(id) {
            self.tool(id);
        }
        let Some(index) = self.positions.remove(id).filter(|_| self.is_shown()) else { return };
        let (content, failed) =
            result.map_or((String::new(), false), |result| (result.content, result.class.is_some()));
        let content = self.cut(content, whole);
        let mut item = self.output[index].clone();
        let (field, told, status) = if failed {
            ("error", items::tool_error(&content), "failed")
        } else {
            ("output", content.into(), "completed")
        };
        (item[field], item["status"]) = (told, status.into());
        let at = json!({"item_id": item["id"], "output_index": index});
        self.event(&format!("response.mcp_call.{status}"), &at, json!({}));
        self.item_done(index, item);
    }

    /// Takes the name and the arguments of a call that begins, as they are in the conversation.
    fn named(&mut self, id: &str) -> (String, String) {
        self.calls.remove(id).map_or_else(Default::default, |call| (call.tool, call.arguments))
    }

    /// Returns where the whole output of a call is.
    fn address_of(&self, input: &TaskInput, turn: u32, call_index: u32) -> String {
        match input {
            TaskInput::CallEnded { turn: of, call_index: nth, call } if (*of, *nth) == (turn, call_index) => {
                format!("/v1/calls/{call}")
            }
            _ => format!("/v1/tasks/{}/events", self.task.task),
        }
    }

    /// Cuts a text of a call to what is shown; the mark of a cut says where the whole is.
    fn cut(&mut self, mut text: String, whole: &str) -> String {
        let (bytes, most) = (text.len(), SHOWN.min(self.room));
        if bytes > most {
            text.truncate(text.floor_char_boundary(most));
        }
        self.room -= text.len();
        if bytes > most {
            text += &format!("… (cut: of {bytes} bytes; GET {whole} has the whole)");
            text.shrink_to_fit();
        }
        text
    }

    /// Closes the response once functions were called and all else of the turn is answered: now the client must.
    fn close_if_answered(&mut self, at: DateTime<Utc>) {
        if !self.functions || self.closed || !self.open.is_empty() {
            return;
        }
        self.closed = true;
        if self.is_shown() {
            self.finish("response.completed", "completed");
        }
        if self.segment + 1 == self.id.segment {
            (self.created_at, self.status) = (at, "in_progress");
            self.event_of_response("response.created");
        }
    }

    fn next_turn(&mut self) {
        if !self.closed {
            return;
        }
        (self.functions, self.closed) = (false, false);
        self.segment += 1;
        self.begin();
    }

    fn end(&mut self, state: TaskState, code: TaskCode) {
        // A task that is stopped while its client is asked has an end of its own, in the segment that would have followed.
        self.next_turn();
        if !self.is_shown() {
            return;
        }
        if let Some(answer) = self.task.answer.clone() {
            self.say(&answer);
        }
        let event = match state {
            TaskState::Succeeded if code == TaskCode::AnswerCutOff => ("response.incomplete", "incomplete"),
            TaskState::Succeeded => ("response.completed", "completed"),
            TaskState::Cancelled => ("response.failed", "cancelled"),
            _ if self.task.answer.is_some() => ("response.incomplete", "incomplete"),
            _ => ("response.failed", "failed"),
        };
        self.finish(event.0, event.1);
    }

    fn finish(&mut self, event: &str, status: &'static str) {
        self.status = status;
        self.event_of_response(event);
        self.ended = true;
    }

    // ---- Events ----

    fn item_added(&mut self, item: Value) {
        let at = json!({"output_index": self.output.len()});
        self.event("response.output_item.added", &at, json!({"item": item}));
        self.output.push(item);
    }

    fn item_done(&mut self, index: usize, item: Value) {
        self.event("response.output_item.done", &json!({"output_index": index}), json!({"item": item}));
        self.output[index] = item;
    }

    fn event_of_response(&mut self, kind: &str) {
        let response = self.response();
        self.event(kind, &json!({}), json!({"response": response}));
    }

    fn event(&mut self, kind: &str, at: &Value, more: Value) {
        let mut event = Map::new();
        event.insert("type".to_owned(), kind.into());
        event.insert("sequence_number".to_owned(), self.sequence.into());
        for fields in [at.clone(), more] {
            if let Value::Object(fields) = fields {
                event.extend(fields);
            }
        }
        self.sequence += 1;
        self.events.push(event.into());
    }
}

#[cfg(test)]
mod tests;
