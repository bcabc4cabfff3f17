//! What is asked of a response on record.

use axum::{
    extract::Path,
    response::{IntoResponse, Response},
};
use redial_proto::{TaskCancel, TaskCancelReply, UserRole, limits, subjects::Verb};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::{
    extract::Query,
    gateway::{Api, Shared},
    identity::Identity,
    openai::{
        answer::waiting,
        follow::{Follow, Segments, not_found, task_of},
        ids::{ResponseId, of_item},
        items, stream, wrong,
    },
    prefer,
    problem::{JsonResult, Problem},
};

/// How a response is shown. OpenAI's other parameters have no effect.
#[derive(Deserialize, JsonSchema)]
pub(super) struct ResponseQuery {
    /// Its events, as they come.
    stream: Option<bool>,
    /// Only events after this `sequence_number`.
    starting_after: Option<u64>,
}

/// Which items: all of them fit into one list.
#[derive(Deserialize, JsonSchema)]
pub(super) struct ListQuery {
    /// `asc` or `desc`. Default `desc`.
    order: Option<String>,
}

fn id(text: &str) -> Result<ResponseId, Problem> {
    text.parse().map_err(|message: String| wrong("response_id", message))
}

pub(super) async fn get(
    Api { gateway, who }: Api,
    Path(response): Path<String>,
    Query(query): Query<ResponseQuery>,
) -> Result<Response, Problem> {
    let mut follow = Follow::begin(&gateway, &who, id(&response)?).await?;
    follow.must_exist().await?;
    let ResponseQuery { stream, starting_after, .. } = query;
    if stream == Some(true) {
        let permit = who.limits.stream()?;
        return Ok(stream::answer(gateway, follow, starting_after, permit));
    }
    if starting_after.is_some() {
        return Err(wrong("starting_after", "starting_after is set without stream=true; allowed: both, or neither"));
    }
    follow.read().await?;
    Ok(axum::Json(follow.record().response()).into_response())
}

/// Refuses to delete: half of a conversation would be left, and a model would be shown it.
pub(super) async fn delete(Api { gateway, who }: Api, Path(response): Path<String>) -> Result<Response, Problem> {
    let response = id(&response)?;
    let task = task_of(&gateway, &who, response).await?;
    let message = format!(
        "a response alone cannot be deleted; allowed: DELETE /v1/conversations/{} erases its whole conversation (role admin)",
        task.conversation
    );
    Err(wrong("response_id", message))
}

pub(super) async fn cancel(Api { gateway, who }: Api, Path(response): Path<String>) -> JsonResult<Value> {
    let response = id(&response)?;
    who.limits.wait_for(1)?;
    let mut follow = Follow::begin(&gateway, &who, response).await?;
    follow.must_exist().await?;
    follow.read().await?;
    // A response that asks the client for something is complete; its task still waits.
    let is_asking = !waiting(&gateway, &who, response.task).await?.is_empty();
    if !follow.record().is_over() || is_asking {
        let request = TaskCancel { task: response.task };
        let _: TaskCancelReply = gateway.ask_twice(&who, Verb::TaskCancel, &request).await?;
        // The response itself may be over already. One whose task takes longer to stop is shown as it is.
        if let Ok(ended) = timeout(prefer::LONGEST, follow.end_of_task()).await {
            ended?;
        }
    }
    // It waited: the role `read` may be lost.
    let who = gateway.rights.narrow(who)?;
    Ok(axum::Json(shown(&who, follow.record().response())))
}

/// Shows whoever may only submit what became of the response, and not what is in it.
fn shown(who: &Identity, mut response: Value) -> Value {
    if who.in_role(&[UserRole::Read]).is_err()
        && let Some(fields) = response.as_object_mut()
    {
        fields.retain(|name, _| matches!(name.as_str(), "id" | "object" | "status" | "model"));
    }
    response
}

pub(super) async fn input_items(
    Api { gateway, who }: Api,
    Path(response): Path<String>,
    Query(query): Query<ListQuery>,
) -> JsonResult<Value> {
    let response = id(&response)?;
    let task = task_of(&gateway, &who, response).await?;
    let mut data = match response.segment.checked_sub(1) {
        None => vec![items::user_message(&of_item("msg", response, 0), &task.input)],
        Some(before) => answers(&gateway, &who, response, before).await?,
    };
    if query.order.as_deref() != Some("asc") {
        data.reverse();
    }
    let of = |item: Option<&Value>| item.map(|item| item["id"].clone());
    let (first, last) = (of(data.first()), of(data.last()));
    Ok(axum::Json(json!({"object": "list", "data": data, "first_id": first, "last_id": last, "has_more": false})))
}

/// Returns the answers that began a segment.
async fn answers(gateway: &Shared, who: &Identity, response: ResponseId, before: u32) -> Result<Vec<Value>, Problem> {
    let store = gateway.store.of(&who.tenant);
    let functions = store.functions_of(response.task).await?;
    let segments = Segments::of(&functions);
    let turn = segments.turn(before).ok_or_else(|| not_found(response))?;
    let records = store.records_of(&segments.of_turn(turn).map(|one| one.call).collect::<Vec<_>>()).await?;
    let answer = |one: &redial_store::FunctionCall| {
        let record = records.iter().find(|record| record.line.call == one.call)?;
        let output = record.attempts_made.last()?.output.as_ref()?;
        let text = serde_json::from_str::<String>(output.get()).unwrap_or_else(|_| output.get().to_owned());
        Some(items::function_output(one.call, &limits::shorten(&text, limits::MAX_REPLY)))
    };
    Ok(segments.of_turn(turn).filter_map(answer).collect())
}
