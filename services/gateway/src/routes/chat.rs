//! `/v1/chat/completions`, as OpenAI's clients know it.

use axum::{
    http::HeaderMap,
    response::{IntoResponse, Response},
};
use redial_proto::UserRole;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::{
    endpoint::{Endpoint, IDEMPOTENCY_KEY},
    events::{MEDIA, ServerSentEvent},
    extract::Json,
    gateway::{Api, Shared},
    idempotency::key,
    identity::Identity,
    openai::{
        answer::answer,
        begin::{Place, Question, begin},
        chat, committed,
        follow::Follow,
        ids::ResponseId,
        input::Input,
        request,
        submit::Refusal,
        wrong,
    },
    problem::Problem,
};

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::post("/v1/chat/completions", create)
            .about(
                "openai",
                "create_chat_completion",
                "Ask an agent, or answer its functions (OpenAI's chat completions)",
            )
            .roles(&[UserRole::Submit])
            .header(IDEMPOTENCY_KEY)
            .body::<Value>()
            .answer::<Value>(200, "The completion, or with `stream` its chunks.")
            .answer_as::<ServerSentEvent>(200, "The completion, or with `stream` its chunks.", MEDIA),
    ]
}

/// The body. What is not here is the agent's to decide, such as `temperature`, and has no effect.
#[derive(Deserialize)]
struct CreateCompletion {
    model: Option<String>,
    #[serde(default)]
    messages: Vec<Value>,
    n: Option<u32>,
    stream: Option<bool>,
    stream_options: Option<StreamOptions>,
    metadata: Option<Map<String, Value>>,
    tools: Option<Vec<Value>>,
    tool_choice: Option<Value>,
    response_format: Option<Value>,
}

#[derive(Clone, Copy, Default, Deserialize)]
struct StreamOptions {
    #[serde(default)]
    include_usage: bool,
}

async fn create(
    Api { gateway, who }: Api,
    headers: HeaderMap,
    Json(body): Json<CreateCompletion>,
) -> Result<Response, Refusal> {
    let permit = who.limits.stream()?;
    let streams = body.stream == Some(true);
    let usage = body.stream_options.unwrap_or_default().include_usage;
    let id = commit(&gateway, &who, &headers, body).await?;
    let shown = async {
        let mut follow = Follow::begin(&gateway, &who, id).await?;
        if streams {
            return Ok(chat::chunks(gateway.clone(), follow, id, usage, permit));
        }
        who.limits.keep(permit);
        follow.read().await?;
        follow.end().await?;
        chat::completion(follow.record(), id).map(|body| axum::Json(body).into_response())
    };
    let mut response = shown.await.unwrap_or_else(Problem::into_response);
    committed(response.headers_mut());
    Ok(response)
}

async fn commit(
    gateway: &Shared,
    who: &Identity,
    headers: &HeaderMap,
    body: CreateCompletion,
) -> Result<ResponseId, Refusal> {
    if let Some(n) = body.n.filter(|n| *n != 1) {
        return Err(wrong("n", format!("n is {n}; allowed: 1")).into());
    }
    request::check_tool_choice(body.tool_choice.as_ref())?;
    request::check_format("response_format", body.response_format.as_ref())?;
    let input = Input::of_chat(&body.messages)?;
    if !input.outputs.is_empty() {
        return answer(gateway, who, None, &input.outputs, "messages").await.map_err(Into::into);
    }
    let mut notes = request::metadata(body.metadata)?;
    let place = notes.remove("conversation").map_or(Place::Any, Place::Conversation);
    let agent = body.model.ok_or_else(|| wrong("model", "model is missing; allowed: the name of an agent"))?;
    let functions = request::functions(&body.tools.unwrap_or_default())?;
    let key = key(headers, None)?;
    let question = Question { agent, input, instructions: None, functions, notes, key, place, param: "messages" };
    begin(gateway, who, question, headers).await
}
