//! `/v1/responses`, as OpenAI's clients know it.

mod create;
mod get;

use redial_proto::UserRole;
use serde_json::Value;

use crate::{
    endpoint::{Endpoint, IDEMPOTENCY_KEY},
    events::{MEDIA, ServerSentEvent},
};

const TAG: &str = "openai";
const READ: &[UserRole] = &[UserRole::Read];
const SUBMIT: &[UserRole] = &[UserRole::Submit];

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::post("/v1/responses", create::create)
            .about(TAG, "create_response", "Ask an agent, or answer its functions (OpenAI's responses)")
            .roles(SUBMIT)
            .header(IDEMPOTENCY_KEY)
            .body::<Value>()
            .answer::<Value>(200, "The response, or with `stream` its events.")
            .answer_as::<ServerSentEvent>(200, "The response, or with `stream` its events.", MEDIA),
        Endpoint::get("/v1/responses/{id}", get::get)
            .about(TAG, "get_response", "A response; with `stream=true` its events after `starting_after`")
            .roles(READ)
            .query::<get::ResponseQuery>()
            .answer::<Value>(200, "The response, or its events.")
            .answer_as::<ServerSentEvent>(200, "The response, or its events.", MEDIA),
        Endpoint::delete("/v1/responses/{id}", get::delete)
            .about(TAG, "delete_response", "Refused: what is on record is erased by conversation")
            .description("Always an error. `DELETE /v1/conversations/{name}` erases a whole conversation.")
            .roles(READ),
        Endpoint::post("/v1/responses/{id}/cancel", get::cancel)
            .about(TAG, "cancel_response", "Stop the task of a response")
            .roles(SUBMIT)
            .answer::<Value>(
                200,
                "The response; without the role `read` only its `id`, `object`, `status` and `model`.",
            ),
        Endpoint::get("/v1/responses/{id}/input_items", get::input_items)
            .about(TAG, "list_response_input_items", "What a response answers")
            .roles(READ)
            .query::<get::ListQuery>()
            .answer::<Value>(200, "A list of items."),
    ]
}
