//! The calls that a task asks for, as rows to write. Pure.

use redial_engine::task::{self, CallFailure, NewTurn};
use redial_proto::{CallId, CallState, ErrorClass, Failure, ToolSpec, limits, turn};
use redial_records::{NewCall, TaskCall};
use redial_store::{EndedCall, TaskRow};
use serde_json::Value;

use super::super::life::Life;
use super::request;
use redial_engine::accept::unknown_spec;
use redial_engine::tools::Tools;

/// Makes the calls of one task.
pub(super) struct Calls<'a> {
    pub(super) row: &'a TaskRow,
    pub(super) tools: &'a Tools,
}

impl Calls<'_> {
    /// A tool call that the engine wants. One of a tool that is gone by now is refused.
    pub(super) fn tool(&self, call: task::NewCall) -> NewCall {
        let known = self.tools.get(&call.tool).filter(|tool| !tool.is_model());
        let spec = known.map_or_else(|| unknown_spec(&printable(&call.tool)), |tool| tool.spec.clone());
        let gone = || unknown(format!("no worker registers the tool {:?} any more", spec.name));
        let refusal = call.refusal.or_else(|| known.is_none().then(gone));
        let arguments = match &refusal {
            Some(_) => as_json(call.arguments),
            None => call.arguments,
        };
        NewCall { repairs: call.repairs, ..self.row(call.turn, call.call_index, spec, (arguments, refusal)) }
    }

    /// The call that asks a model. One that nobody serves, or whose request does not fit, is refused.
    pub(super) fn model(&self, life: &Life<'_>, asked: &NewTurn) -> NewCall {
        let name = turn::tool_name(&asked.model);
        let known = self.tools.get(&name).filter(|tool| tool.is_model());
        let request = match known {
            Some(_) => request::request(life, asked, self.tools),
            None => Err(unknown(format!("no worker serves the model {:?}", asked.model))),
        };
        let content = match request {
            Ok(request) => (request, None),
            Err(failure) => (request::empty_request(life, asked), Some(failure)),
        };
        let unserved = || ToolSpec { pool: turn::POOL.to_owned(), ..ToolSpec::named(name) };
        let spec = known.map_or_else(unserved, |tool| tool.spec.clone());
        self.row(asked.turn, 0, spec, content)
    }

    fn row(&self, turn: u32, call_index: u32, spec: ToolSpec, content: (String, Option<CallFailure>)) -> NewCall {
        let (arguments, refusal) = content;
        NewCall {
            id: CallId::generate(),
            tool: spec.name,
            pool: spec.pool,
            effect: spec.effect,
            tenant: self.row.tenant.clone(),
            key: None,
            content: None,
            conversation: Some(self.row.conversation.clone()),
            arguments,
            repairs: Vec::new(),
            timeout_ms: spec.timeout_ms,
            retry: None,
            notify: false,
            traceparent: self.row.traceparent.clone(),
            deadline_ms: spec.retry.deadline_ms,
            refusal: refusal.as_ref().map(reason),
            redrive_of: None,
            task: Some(TaskCall { task: self.row.id, turn, call_index }),
        }
    }
}

/// The end of a call that was refused here, unknown to the engine.
pub(super) fn ended(call: &NewCall) -> Option<EndedCall> {
    let (refusal, call_index) = (call.refusal.clone()?, call.task?);
    Some(EndedCall {
        call: call.id,
        turn: call_index.turn,
        call_index: call_index.call_index,
        state: CallState::Refused,
        class: Some(refusal.class),
        message: Some(refusal.message),
        details: (!refusal.details.is_empty()).then(|| serde_json::to_string(&refusal.details).ok()).flatten(),
        output: None,
        arguments: None,
    })
}

fn unknown(message: String) -> CallFailure {
    CallFailure { class: ErrorClass::UnknownTool, message, details: Vec::new(), unknown: false }
}

fn reason(failure: &CallFailure) -> Failure {
    let message = limits::shorten(&failure.message, limits::MAX_ERROR_MESSAGE);
    Failure::new(failure.class, message).with_details(failure.details.clone()).without_effect()
}

/// A name as a model wrote it: it may be anything.
fn printable(name: &str) -> String {
    let name: String = name.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
    limits::shorten(&name, limits::MAX_KEY)
}

/// What a model wrote, as it is if it is an object that the tables take, else as a string.
fn as_json(written: String) -> String {
    let is_object = written.trim_start().starts_with('{')
        && limits::json_depth(&written) <= limits::MAX_DEPTH
        && serde_json::from_str::<serde::de::IgnoredAny>(&written).is_ok();
    if is_object { written } else { Value::String(written).to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_a_model_wrote_is_kept_as_json() {
        for (written, kept) in [
            (r#"{"a": 1}"#, r#"{"a": 1}"#),
            (r#"{"a": 1"#, r#""{\"a\": 1""#),
            ("Paris", r#""Paris""#),
            ("[1]", r#""[1]""#),
            ("", r#""""#),
            ("\0", r#""\u0000""#),
        ] {
            assert_eq!(as_json(written.to_owned()), kept);
        }
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(200), "]".repeat(200));
        assert!(as_json(deep).starts_with('"'));
        assert_eq!(printable("a\0b\nc"), "a\u{fffd}b\u{fffd}c");
    }
}
