//! What a model saw in a turn, and what it answered.

use redial_api::TurnView;
use redial_proto::{Code, Message, ReplyCall, TaskId, TurnReply, TurnRequest, limits::shorten, turn};
use redial_store::StoreError;

use crate::{
    extract::Ids,
    gateway::Api,
    problem::{JsonResult, Problem},
};

/// Bytes of one text that are shown.
const TEXT: usize = 64 * 1024;
/// Messages that are shown: the first and the last so many.
const ENDS: usize = 200;

pub(super) async fn turn(Api { gateway, who }: Api, Ids(task, number): Ids<TaskId, u32>) -> JsonResult<TurnView> {
    let _share = gateway.long_read(&who).await?;
    let store = gateway.store.of(&who.tenant);
    let missing = || Problem::new(Code::NotFound, format!("task {task} has no turn {number} on record"));
    if store.task(task).await?.is_none() {
        return Err(super::get::not_found(task));
    }
    let before = number.checked_sub(1).ok_or_else(missing)?;
    let after = if before == 0 { (0, 0) } else { (before, i32::MAX.unsigned_abs()) };
    let found = store.timed_calls(task, after, 1).await?;
    let asked = found.into_iter().find(|call| call.turn == number && call.call_index == 0).ok_or_else(missing)?;
    let record = store.records_of(&[asked.call]).await?.into_iter().next().ok_or_else(missing)?;
    let bad = |error: serde_json::Error| StoreError::BadData(format!("call {}: {error}", asked.call));
    let request: TurnRequest = serde_json::from_str(record.arguments.get()).map_err(bad)?;
    let output = record.attempts_made.iter().rev().find_map(|attempt| attempt.output.as_deref());
    let reply: Option<TurnReply> = output.map(|output| serde_json::from_str(output.get())).transpose().map_err(bad)?;
    let (messages, not_shown) = ends(request.messages);
    Ok(axum::Json(TurnView {
        turn: number,
        call: asked.call,
        model: turn::model_name(&asked.tool).unwrap_or(&asked.tool).to_owned(),
        state: asked.state,
        submitted_at: asked.submitted_at,
        finished_at: asked.finished_at,
        messages: messages.into_iter().map(cut).collect(),
        not_shown,
        tools: request.tools.into_iter().map(|tool| tool.name).collect(),
        trimmed: request.trimmed,
        reply: reply.map(|reply| TurnReply {
            text: reply.text.map(|text| shorten(&text, TEXT)),
            thought: reply.thought.map(|thought| shorten(&thought, TEXT)),
            calls: reply
                .calls
                .into_iter()
                .map(|call| ReplyCall { arguments: shorten(&call.arguments, TEXT), ..call })
                .collect(),
            provider: None,
            ..reply
        }),
    }))
}

/// Returns the first and the last messages, and how many lie between.
fn ends(mut messages: Vec<Message>) -> (Vec<Message>, u32) {
    let between = messages.len().saturating_sub(2 * ENDS);
    if between > 0 {
        messages.drain(ENDS..ENDS + between);
    }
    (messages, u32::try_from(between).unwrap_or(u32::MAX))
}

fn cut(mut message: Message) -> Message {
    message.content = shorten(&message.content, TEXT);
    message.thought = message.thought.map(|thought| shorten(&thought, TEXT));
    message.provider = None;
    for call in &mut message.calls {
        call.arguments = shorten(&call.arguments, TEXT);
    }
    message
}
