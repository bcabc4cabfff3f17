//! The request for a model turn.

use redial_proto::{ErrorClass, Failure, Message, StoredMessage, ToolOffer, Trimmed, TurnRequest, limits};

use super::super::{
    inputs::TaskRun,
    step::{WantedTurn, failed},
};
use crate::{
    tools::{RegisteredTool, Tools},
    view::{Limits, READ_RESULT, read_result_offer, view},
};

/// Room for the rest of the request, and for what an estimate may be off.
const MARGIN: usize = 4 * 1024;
/// A request with less room for the conversation makes no sense.
const LEAST_FOR_MESSAGES: usize = 16 * 1024;

/// The request for a turn, as JSON that fits the arguments of a call.
pub(super) fn request(
    run: &TaskRun,
    conversation: &[StoredMessage],
    turn: &WantedTurn,
    tools: &Tools,
) -> Result<String, Failure> {
    let mut offers = if turn.tools { offers(run, tools) } else { Vec::new() };
    let most = limits::MAX_ARGUMENTS - MARGIN;
    let bytes = most.saturating_sub(length(&offers)? + length(&read_result_offer())?);
    if bytes < LEAST_FOR_MESSAGES {
        return Err(too_large(format!(
            "the descriptions of the agent's {} tools leave {bytes} bytes for the conversation; at least \
             {LEAST_FOR_MESSAGES} of {most} are needed: offer fewer tools",
            offers.len()
        )));
    }
    let agent = &run.agent;
    let view_limits = Limits { context_tokens: agent.context_tokens, result_bytes: agent.result_bytes, bytes };
    let (messages, trimmed) = view(conversation, run.task.pruned(), view_limits);
    if turn.tools && (trimmed.shortened > 0 || has_read_on(conversation)) {
        offers.push(read_result_offer());
    }
    let request = TurnRequest {
        max_tokens: agent.max_tokens,
        temperature: agent.temperature,
        ..turn_request(run, turn, (messages, trimmed), offers)
    };
    let text = json(&request)?;
    if text.len() > limits::MAX_ARGUMENTS {
        let (size, most) = (text.len(), limits::MAX_ARGUMENTS);
        return Err(too_large(format!("the conversation takes {size} bytes even when shortened; allowed: {most}")));
    }
    Ok(text)
}

/// The record of a request that could not be made.
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

/// The tools that the agent may use, by name: a stable prompt is cheaper to read for most providers.
fn offers(run: &TaskRun, tools: &Tools) -> Vec<ToolOffer> {
    let mut offered: Vec<&RegisteredTool> = tools
        .values()
        .map(AsRef::as_ref)
        .filter(|tool| !tool.is_model() && tool.spec.name != READ_RESULT && run.agent.offers(&tool.spec.name))
        .collect();
    offered.sort_unstable_by(|a, b| a.spec.name.cmp(&b.spec.name));
    offered.into_iter().map(offer).collect()
}

fn offer(tool: &RegisteredTool) -> ToolOffer {
    let spec = &tool.spec;
    ToolOffer {
        name: spec.name.clone(),
        description: spec.description.clone(),
        parameters: spec.parameters.clone(),
        version: tool.version.clone(),
        polling: spec.polling,
        sequential: spec.sequential,
        repairs: spec.repairs,
    }
}

/// The model has used the built-in tool before: the tool must stay offered.
fn has_read_on(messages: &[StoredMessage]) -> bool {
    messages.iter().any(|stored| stored.message.calls.iter().any(|call| call.tool == READ_RESULT))
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
