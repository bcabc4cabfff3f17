//! Creates a response.

use axum::{
    http::HeaderMap,
    response::{IntoResponse, Response},
};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::{
    extract::Json,
    gateway::{Api, Shared},
    idempotency::key,
    identity::Identity,
    openai::{
        OWN_NOTE,
        answer::answer,
        begin::{Place, Question, begin},
        committed,
        follow::Follow,
        ids::ResponseId,
        input::Input,
        request, stream,
        submit::Refusal,
        wrong,
    },
    problem::Problem,
};

/// The body. What is not here is the agent's to decide, such as `temperature`, and has no effect.
#[derive(Deserialize)]
pub(super) struct CreateResponse {
    model: Option<String>,
    #[serde(default)]
    input: Value,
    instructions: Option<String>,
    background: Option<bool>,
    stream: Option<bool>,
    store: Option<bool>,
    previous_response_id: Option<String>,
    conversation: Option<Value>,
    metadata: Option<Map<String, Value>>,
    tools: Option<Vec<Value>>,
    tool_choice: Option<Value>,
    text: Option<Value>,
}

pub(super) async fn create(
    Api { gateway, who }: Api,
    headers: HeaderMap,
    Json(body): Json<CreateResponse>,
) -> Result<Response, Refusal> {
    let permit = who.limits.stream()?;
    let shape = Shape { streams: body.stream == Some(true), background: body.background == Some(true) };
    let id = commit(&gateway, &who, &headers, body).await?;
    // It is on record: whatever happens now, it must not be sent again.
    let mut response = match show(&gateway, &who, id, shape, permit).await {
        Ok(response) => response,
        Err(problem) => problem.into_response(),
    };
    committed(response.headers_mut());
    Ok(response)
}

async fn commit(
    gateway: &Shared,
    who: &Identity,
    headers: &HeaderMap,
    body: CreateResponse,
) -> Result<ResponseId, Refusal> {
    if body.store == Some(false) {
        return Err(wrong("store", "store is false; allowed: true. Redial keeps everything on record").into());
    }
    request::check_tool_choice(body.tool_choice.as_ref())?;
    request::check_format("text.format", body.text.as_ref().map(|text| &text["format"]))?;
    let read = |id: &String| id.parse::<ResponseId>().map_err(|message| wrong("previous_response_id", message));
    let before = body.previous_response_id.as_ref().map(read).transpose()?;
    let conversation = body.conversation.as_ref().map(conversation).transpose()?.flatten();
    let input = Input::of_response(&body.input)?;
    if !input.outputs.is_empty() {
        return answer(gateway, who, before, &input.outputs, "input").await.map_err(Into::into);
    }
    let mut notes = request::metadata(body.metadata)?;
    let mut note = |name: &str, text: &str| notes.insert(format!("{OWN_NOTE}{name}"), text.to_owned());
    if let Some(before) = &body.previous_response_id {
        note("previous_response_id", before);
    }
    if body.background == Some(true) {
        note("background", "true");
    }
    let place = match (conversation, before) {
        (Some(_), Some(_)) => {
            let message = "conversation and previous_response_id are both set; allowed: one of them";
            return Err(wrong("conversation", message).into());
        }
        (Some(name), None) => Place::Conversation(name),
        (None, Some(before)) => Place::After(before),
        (None, None) => Place::Any,
    };
    let agent = body.model.ok_or_else(|| wrong("model", "model is missing; allowed: the name of an agent"))?;
    let question = Question {
        agent,
        input,
        instructions: body.instructions,
        functions: request::functions(&body.tools.unwrap_or_default())?,
        notes,
        key: key(headers, None)?,
        place,
        param: "input",
    };
    begin(gateway, who, question, headers).await
}

/// Reads a name, or an object with an `id`.
fn conversation(value: &Value) -> Result<Option<String>, Problem> {
    match value {
        Value::Null => Ok(None),
        Value::String(name) => Ok(Some(name.clone())),
        other => {
            let id = other["id"].as_str().map(str::to_owned);
            id.map(Some).ok_or_else(|| wrong("conversation", "conversation: a name or an object with an id is needed"))
        }
    }
}

#[derive(Clone, Copy)]
struct Shape {
    streams: bool,
    background: bool,
}

async fn show(
    gateway: &Shared,
    who: &Identity,
    id: ResponseId,
    shape: Shape,
    permit: redial_shares::Share,
) -> Result<Response, Problem> {
    let mut follow = Follow::begin(gateway, who, id).await?;
    if shape.streams {
        return Ok(stream::answer(gateway.clone(), follow, None, permit));
    }
    who.limits.keep(permit);
    follow.read().await?;
    if !shape.background {
        follow.end().await?;
    }
    Ok(axum::Json(follow.record().response()).into_response())
}
