//! What a model is asked. Pure.

use redial_engine::{
    task::{CallFailure, NewTurn},
    view::{Limits, READ_RESULT, read_result_offer, view},
};
use redial_proto::{ErrorClass, StoredMessage, ToolOffer, TurnRequest, limits};

use super::super::life::Life;
use redial_engine::tools::{Tool, Tools};

/// Room for the rest of the request, and for what an estimate may be off.
const MARGIN: usize = 4 * 1024;
/// A request with less room for the conversation makes no sense.
const LEAST_FOR_MESSAGES: usize = 16 * 1024;

/// The request for a turn, as JSON that fits the arguments of a call.
pub(super) fn request(life: &Life<'_>, turn: &NewTurn, tools: &Tools) -> Result<String, CallFailure> {
    let mut offers = if turn.tools { offers(life, tools) } else { Vec::new() };
    let most = limits::MAX_ARGUMENTS - MARGIN;
    let bytes = most.saturating_sub(length(&offers)? + length(&read_result_offer())?);
    if bytes < LEAST_FOR_MESSAGES {
        return Err(too_large(format!(
            "the descriptions of the agent's {} tools leave {bytes} bytes for the conversation; at least \
             {LEAST_FOR_MESSAGES} of {most} are needed: offer fewer tools",
            offers.len()
        )));
    }
    let spec = life.spec;
    let view_limits = Limits { context_tokens: spec.context_tokens, result_bytes: spec.result_bytes, bytes };
    let (messages, trimmed) = view(&life.messages, life.task.pruned(), view_limits);
    if turn.tools && (trimmed.shortened > 0 || has_read_on(&life.messages)) {
        offers.push(read_result_offer());
    }
    let request = TurnRequest {
        task: life.id,
        turn: turn.turn,
        messages,
        tools: offers,
        language: life.language,
        max_tokens: spec.max_tokens,
        temperature: spec.temperature,
        trimmed,
    };
    let text = json(&request)?;
    if text.len() > limits::MAX_ARGUMENTS {
        let (size, most) = (text.len(), limits::MAX_ARGUMENTS);
        return Err(too_large(format!("the conversation takes {size} bytes even when shortened; allowed: {most}")));
    }
    Ok(text)
}

/// What stands on record for a request that could not be made.
pub(super) fn empty_request(life: &Life<'_>, turn: &NewTurn) -> String {
    let request = TurnRequest {
        task: life.id,
        turn: turn.turn,
        messages: Vec::new(),
        tools: Vec::new(),
        language: life.language,
        max_tokens: None,
        temperature: None,
        trimmed: redial_proto::Trimmed::default(),
    };
    json(&request).unwrap_or_else(|_| "{}".to_owned())
}

/// The tools that the agent may use, by name: a stable prompt is cheaper to read for most providers.
fn offers(life: &Life<'_>, tools: &Tools) -> Vec<ToolOffer> {
    let mut offered: Vec<&Tool> = tools
        .values()
        .map(AsRef::as_ref)
        .filter(|tool| !tool.is_model() && tool.spec.name != READ_RESULT && life.spec.offers(&tool.spec.name))
        .collect();
    offered.sort_unstable_by(|a, b| a.spec.name.cmp(&b.spec.name));
    offered.into_iter().map(offer).collect()
}

fn offer(tool: &Tool) -> ToolOffer {
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

/// The model has used the built-in tool before: it must not be gone now.
fn has_read_on(messages: &[StoredMessage]) -> bool {
    messages.iter().any(|stored| stored.message.calls.iter().any(|call| call.tool == READ_RESULT))
}

fn length<T: serde::Serialize>(value: &T) -> Result<usize, CallFailure> {
    Ok(json(value)?.len())
}

fn json<T: serde::Serialize>(value: &T) -> Result<String, CallFailure> {
    serde_json::to_string(value).map_err(|error| CallFailure {
        class: ErrorClass::Internal,
        message: format!("the request cannot be written: {error}"),
        details: Vec::new(),
        unknown: false,
    })
}

fn too_large(message: String) -> CallFailure {
    CallFailure { class: ErrorClass::Configuration, message, details: Vec::new(), unknown: false }
}
