//! The calls that a task asks for, as rows to write.

use redial_proto::{
    AgentSpec, CallId, CallState, ErrorClass, Failure, Help, Repair, RetryPolicy, ToolEffect, ToolSpec, function,
    limits, turn,
};
use redial_records::{EndedCall, NewCall, TaskCall, TaskRecord, TurnTools};
use serde_json::Value;
use uuid::Uuid;

use super::{
    super::{
        inputs::TaskRun,
        step::{WantedCall, WantedTurn, failed},
    },
    needs::Needs,
    request,
};
use crate::{accept::unknown_spec, tools::Tools};

/// Makes a tool call that the state machine wants: of a function of the client, or of a tool. It is refused if its tool
/// is no longer registered.
pub(super) fn tool(record: &TaskRecord, agent: &AgentSpec, call: WantedCall, tools: &Tools) -> NewCall {
    let registered = tools.get(&call.tool).filter(|tool| !tool.is_model());
    let known = of_client(agent, &call.tool).or_else(|| registered.map(|tool| tool.spec.clone()));
    let is_known = known.is_some();
    let spec = known.unwrap_or_else(|| unknown_spec(&printable(&call.tool)));
    let gone = || failed(ErrorClass::UnknownTool, format!("no worker registers the tool {:?} any more", spec.name));
    let refusal = call.refusal.or_else(|| (!is_known).then(gone));
    let arguments = match &refusal {
        Some(_) => as_json(call.arguments),
        None => call.arguments,
    };
    let (id, turn, call_index) = (call.id, call.turn, call.call_index);
    let tool_version = Uuid::try_parse(&call.version).ok().filter(|_| refusal.is_none());
    let WantedCall { repairs, undeclared, help, .. } = call;
    let call = Content { id, turn, call_index, repairs, undeclared, help, spec, arguments, tool_version, refusal };
    call.row(record)
}

/// Returns a function as a tool that no worker serves. Nothing is known of its effect, and it never runs twice.
fn of_client(agent: &AgentSpec, name: &str) -> Option<ToolSpec> {
    let timeout_ms = agent.function_timeout_ms();
    agent.function(name).map(|function| ToolSpec {
        pool: function::POOL.to_owned(),
        effect: ToolEffect::Unsafe,
        timeout_ms,
        retry: RetryPolicy { max_attempts: 1, deadline_ms: timeout_ms, ..RetryPolicy::default() },
        ..ToolSpec::named(function.name.clone())
    })
}

/// Makes the call that asks a model. One that no worker serves, or whose request does not fit, is refused.
pub(super) fn turn(
    record: &TaskRecord,
    run: &TaskRun,
    wanted: &WantedTurn,
    tools: &Tools,
) -> Result<(NewCall, Option<TurnTools>), Needs> {
    let name = turn::tool_name(&wanted.model);
    let known = tools.get(&name).filter(|tool| tool.is_model());
    let request = match known {
        Some(_) => {
            let conversation = run.conversation.for_view().ok_or_else(|| Needs::Conversation(request::reach(run)))?;
            request::request(run, conversation, wanted, tools)
        }
        None => Err(failed(ErrorClass::UnknownTool, format!("no worker serves the model {:?}", wanted.model))),
    };
    let (arguments, offers, refusal) = match request {
        Ok((request, offers)) => (request, offers, None),
        Err(failure) => (request::empty_request(run, wanted), None, Some(failure)),
    };
    let unserved = || ToolSpec { pool: turn::POOL.to_owned(), ..ToolSpec::named(name) };
    let spec = known.map_or_else(unserved, |tool| tool.spec.clone());
    let (id, turn) = (wanted.id, wanted.turn);
    let (repairs, undeclared) = (Vec::new(), Vec::new());
    let tool_version = None;
    let content =
        Content { id, turn, call_index: 0, repairs, undeclared, help: None, spec, arguments, tool_version, refusal };
    Ok((content.row(record), offers))
}

/// What distinguishes a call from the others of its task.
struct Content {
    id: CallId,
    turn: u32,
    call_index: u32,
    repairs: Vec<Repair>,
    undeclared: Vec<String>,
    help: Option<Box<Help>>,
    spec: ToolSpec,
    /// Valid JSON.
    arguments: String,
    tool_version: Option<Uuid>,
    refusal: Option<Failure>,
}

impl Content {
    fn row(self, record: &TaskRecord) -> NewCall {
        let shortened = |failure: Failure| Failure {
            message: limits::shorten(&failure.message, limits::MAX_ERROR_MESSAGE),
            ..failure
        };
        NewCall {
            submitted_by: None,
            id: self.id,
            tool: self.spec.name,
            pool: self.spec.pool,
            effect: self.spec.effect,
            tenant: record.tenant.clone(),
            key: None,
            content: None,
            conversation: Some(record.conversation.clone()),
            arguments: self.arguments,
            tool_version: self.tool_version,
            repairs: self.repairs,
            undeclared: self.undeclared,
            help: self.help,
            timeout_ms: self.spec.timeout_ms,
            retry: None,
            notify: false,
            traceparent: record.traceparent.clone(),
            deadline_ms: self.spec.retry.deadline_ms,
            refusal: self.refusal.map(shortened),
            redrive_of: None,
            task: Some(TaskCall { task: record.id, turn: self.turn, call_index: self.call_index }),
            consumer: None,
        }
    }
}

/// Returns the end of a wanted call that cannot run; the state machine does not know of it yet.
pub(super) fn ended(call: &NewCall) -> Option<EndedCall> {
    let (refusal, of) = (call.refusal.clone()?, call.task?);
    Some(EndedCall {
        call: call.id,
        turn: of.turn,
        call_index: of.call_index,
        state: CallState::Refused,
        failure: Some(refusal),
        output: None,
        arguments: None,
    })
}

/// Cleans a name as a model wrote it: it may be anything.
fn printable(name: &str) -> String {
    let name: String = name.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
    limits::shorten(&name, limits::MAX_KEY)
}

/// Returns what a model wrote, as it is if it is an object that the tables take, else as a string.
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
    fn any_text_of_a_model_is_stored_as_json() {
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
