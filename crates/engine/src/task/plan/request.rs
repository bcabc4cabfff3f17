//! The request for a model turn.

use redial_proto::{ErrorClass, Failure, FunctionSpec, Message, ToolOffer, Trimmed, TurnRequest, limits};
use redial_records::{Reach, ReadConversation, TurnOnRecord, TurnTools};
use serde_json::json;

use super::super::{
    inputs::TaskRun,
    step::{WantedTurn, failed},
};
use crate::{
    fingerprint::fingerprint,
    tools::{RegisteredTool, Tools},
    view::{self, Limits, READ_RESULT, numbered_view_of, read_result_offer},
};

/// Room for the rest of the request, and for what an estimate may be off.
const MARGIN: usize = 4 * 1024;
/// A request with less room for the conversation makes no sense.
const LEAST_FOR_MESSAGES: usize = 16 * 1024;

/// Makes the request for a turn as it is kept, with the tools that it offers.
pub(super) fn request(
    run: &TaskRun,
    conversation: &ReadConversation,
    turn: &WantedTurn,
    tools: &Tools,
) -> Result<(String, Option<TurnTools>), Failure> {
    let mut offers = if turn.tools { offers(run, tools) } else { Vec::new() };
    let most = limits::MAX_PAYLOAD - MARGIN;
    let bytes = most.saturating_sub(length(&offers)? + length(&read_result_offer())?);
    if bytes < LEAST_FOR_MESSAGES {
        return Err(too_large(format!(
            "the descriptions of the agent's {} tools leave {bytes} bytes for the conversation; at least \
             {LEAST_FOR_MESSAGES} of {most} are needed: offer fewer tools",
            offers.len()
        )));
    }
    let agent = &run.agent;
    let (view, trimmed) = numbered_view_of(conversation, run.task.pruned(), view_limits(run, bytes));
    if turn.tools && (trimmed.shortened > 0 || run.task.has_read_on()) {
        offers.push(read_result_offer());
    }
    let (seqs, messages): (Vec<u32>, Vec<Message>) = view.into_iter().unzip();
    let request = TurnRequest {
        max_tokens: agent.max_tokens,
        temperature: agent.temperature,
        ..turn_request(run, turn, (messages, trimmed), offers)
    };
    let text = json(&request)?;
    if text.len() > limits::MAX_PAYLOAD {
        let (size, most) = (text.len(), limits::MAX_PAYLOAD);
        return Err(too_large(format!("the conversation takes {size} bytes even when shortened; allowed: {most}")));
    }
    let (on_record, tools) = TurnOnRecord::new(request, &seqs, &text, conversation);
    Ok((on_record.to_json(), tools))
}

/// Returns how much of the conversation the request for any turn of a task can need.
pub(super) fn reach(run: &TaskRun) -> Reach {
    view::reach(run.task.pruned(), view_limits(run, limits::MAX_PAYLOAD))
}

fn view_limits(run: &TaskRun, bytes: usize) -> Limits {
    Limits { context_tokens: run.agent.context_tokens, result_bytes: run.agent.result_bytes, bytes }
}

/// Makes the record of a request that could not be made.
pub(super) fn empty_request(run: &TaskRun, turn: &WantedTurn) -> String {
    json(&turn_request(run, turn, Default::default(), Vec::new())).unwrap_or_else(|_| "{}".to_owned())
}

fn turn_request(
    run: &TaskRun,
    turn: &WantedTurn,
    (messages, trimmed): (Vec<Message>, Trimmed),
    tools: Vec<ToolOffer>,
) -> TurnRequest {
    let (task, language) = (run.id, run.language);
    TurnRequest { task, turn: turn.turn, messages, tools, language, max_tokens: None, temperature: None, trimmed }
}

/// Lists the functions and the tools that the agent may use, by name: a stable prompt is cheaper to read for most
/// providers. A tool that was registered after the task was accepted does not replace a function of its name.
fn offers(run: &TaskRun, tools: &Tools) -> Vec<ToolOffer> {
    let agent = &run.agent;
    let may_use = |name: &str| name != READ_RESULT && agent.offers(name) && agent.function(name).is_none();
    let tools = tools.values().filter(|tool| tool.is_for_agents() && may_use(&tool.spec.name));
    let mut offered: Vec<ToolOffer> =
        tools.map(|tool| offer(tool)).chain(agent.functions.iter().map(of_client)).collect();
    offered.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    offered
}

/// Offers a function. Its version is that of its text, so that its schema is compiled once for as long as it stays the
/// same.
fn of_client(function: &FunctionSpec) -> ToolOffer {
    let version = fingerprint(&json!([function.description, function.parameters])).simple().to_string();
    ToolOffer {
        name: function.name.clone(),
        description: function.description.clone(),
        parameters: function.parameters.clone(),
        version,
        polling: false,
        sequential: false,
        repairs: true,
    }
}

fn offer(tool: &RegisteredTool) -> ToolOffer {
    let spec = &tool.spec;
    ToolOffer {
        name: spec.name.clone(),
        description: spec.description.clone(),
        parameters: spec.parameters.clone(),
        version: tool.version.simple().to_string(),
        polling: spec.polling,
        sequential: spec.sequential,
        repairs: spec.repairs,
    }
}

fn length<T: serde::Serialize>(value: &T) -> Result<usize, Failure> {
    Ok(json(value)?.len())
}

fn json<T: serde::Serialize>(value: &T) -> Result<String, Failure> {
    serde_json::to_string(value)
        .map_err(|error| failed(ErrorClass::Internal, format!("the request cannot be written: {error}")))
}

fn too_large(message: String) -> Failure {
    failed(ErrorClass::Configuration, message)
}
