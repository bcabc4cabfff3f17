//! `/v1/webhooks`: subscriptions to the ends of calls and tasks.

use axum::{
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
};
use redial_api::WebhookList;
use redial_proto::{
    Code, CreateWebhook, DeleteWebhook, DeletedWebhook, RotateWebhook, TestWebhook, TestedWebhook, UpdateWebhook,
    UserRole, WebhookEvent, WebhookSecret, WebhookState, WebhookView, subjects::Verb,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{
    endpoint::{Endpoint, IDEMPOTENCY_KEY},
    extract::{Id, Json},
    gateway::Api,
    idempotency::{id_of, key},
    problem::{JsonResult, Problem},
};

const TAG: &str = "webhooks";
const READ: &[UserRole] = &[UserRole::Read];
const ADMIN: &[UserRole] = &[UserRole::Admin];

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::post("/v1/webhooks", create)
            .about(TAG, "create_webhook", "Subscribe to the ends of calls and tasks")
            .description(
                "Events from now on are posted to `url`, signed as in Standard Webhooks. The answer has the secret; it is not on \
                 record.",
            )
            .roles(ADMIN)
            .header(IDEMPOTENCY_KEY)
            .body::<CreateWebhookBody>()
            .answer::<WebhookSecret>(201, "The webhook and its secret; `Location` is the webhook."),
        Endpoint::get("/v1/webhooks", list)
            .about(TAG, "list_webhooks", "List webhooks")
            .roles(READ)
            .answer::<WebhookList>(200, "All webhooks of the tenant."),
        Endpoint::get("/v1/webhooks/{id}", get)
            .about(TAG, "get_webhook", "One webhook")
            .description("Its deliveries are calls: `GET /v1/calls?tool=redial_webhook&argument=/webhook=<id>`.")
            .roles(READ)
            .answer::<WebhookView>(200, "The webhook."),
        Endpoint::patch("/v1/webhooks/{id}", update)
            .about(TAG, "update_webhook", "Change, disable or enable a webhook")
            .description("What is absent stays. A disabled webhook drops what waits; an enabled one gets events from now on.")
            .roles(ADMIN)
            .body::<UpdateWebhookBody>()
            .answer::<WebhookView>(200, "The webhook."),
        Endpoint::delete("/v1/webhooks/{id}", delete)
            .about(TAG, "delete_webhook", "Delete a webhook")
            .description("What waits for it is dropped, and deliveries under way are cancelled.")
            .roles(ADMIN)
            .answer::<DeletedWebhook>(200, "It is deleted."),
        Endpoint::post("/v1/webhooks/{id}/rotate", rotate)
            .about(TAG, "rotate_webhook", "Give a webhook a new secret")
            .description("For 24 hours deliveries are signed with both. The same request again gets the same secret.")
            .roles(ADMIN)
            .body::<RotateWebhookBody>()
            .answer::<WebhookSecret>(200, "The webhook and its new secret."),
        Endpoint::post("/v1/webhooks/{id}/test", test)
            .about(TAG, "test_webhook", "Send the event webhook.ping")
            .description("The answer names the delivery, a call that can be waited for as any other.")
            .roles(ADMIN)
            .answer::<TestedWebhook>(202, "The delivery is on record; `Location` is its call."),
    ]
}

/// A new webhook.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CreateWebhookBody {
    /// A UUID that you make for it: the same request again gets the same answer. Default: one that stands for the header
    /// `Idempotency-Key`, else a new one.
    #[serde(default)]
    webhook: Option<Uuid>,
    /// Where events are posted: `https://host/path`. It is on record, so it should contain no secret.
    url: String,
    /// Which events; at least one.
    events: Vec<WebhookEvent>,
    /// Only events of calls of these tools; of all tools if there are none.
    #[serde(default)]
    tools: Vec<String>,
    /// Only events of tasks of these agents; of all agents if there are none.
    #[serde(default)]
    agents: Vec<String>,
}

async fn create(
    Api { gateway, who }: Api,
    headers: HeaderMap,
    Json(body): Json<CreateWebhookBody>,
) -> Result<Response, Problem> {
    let CreateWebhookBody { webhook, url, events, tools, agents } = body;
    let of_key = key(&headers, None)?.map(|key| id_of(&who, "webhook", &key));
    if of_key.is_some() && webhook.is_some() {
        return Err(Problem::invalid("webhook and the header Idempotency-Key are both set; allowed: one of them"));
    }
    let webhook = webhook.or(of_key).unwrap_or_else(Uuid::new_v4);
    let request = CreateWebhook { webhook, url, events, tools, agents };
    let created: WebhookSecret = gateway.ask_twice(&who, Verb::WebhookCreate, &request).await?;
    Ok(located(StatusCode::CREATED, &created, format!("/v1/webhooks/{webhook}")))
}

fn located(status: StatusCode, body: &impl Serialize, location: String) -> Response {
    (status, [(header::LOCATION, location)], axum::Json(body)).into_response()
}

async fn list(Api { gateway, who }: Api) -> JsonResult<WebhookList> {
    Ok(axum::Json(WebhookList { webhooks: gateway.store.of(&who.tenant).webhooks().await? }))
}

async fn get(Api { gateway, who }: Api, Id(webhook): Id<Uuid>) -> JsonResult<WebhookView> {
    let found = gateway.store.of(&who.tenant).webhook(webhook).await?.map(|found| found.view);
    let missing = || Problem::new(Code::WebhookNotFound, format!("no webhook {webhook} is on record"));
    found.map(axum::Json).ok_or_else(missing)
}

/// What changes in a webhook.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct UpdateWebhookBody {
    /// Where events are posted. Deliveries under way keep their URL.
    #[serde(default)]
    url: Option<String>,
    /// Which events.
    #[serde(default)]
    events: Option<Vec<WebhookEvent>>,
    /// Only events of calls of these tools; an empty list means all.
    #[serde(default)]
    tools: Option<Vec<String>>,
    /// Only events of tasks of these agents; an empty list means all.
    #[serde(default)]
    agents: Option<Vec<String>>,
    /// Whether events are delivered.
    #[serde(default)]
    state: Option<WebhookState>,
}

async fn update(
    Api { gateway, who }: Api,
    Id(webhook): Id<Uuid>,
    Json(body): Json<UpdateWebhookBody>,
) -> JsonResult<WebhookView> {
    let UpdateWebhookBody { url, events, tools, agents, state } = body;
    let request = UpdateWebhook { webhook, url, events, tools, agents, state };
    Ok(axum::Json(gateway.ask_twice(&who, Verb::WebhookUpdate, &request).await?))
}

async fn delete(Api { gateway, who }: Api, Id(webhook): Id<Uuid>) -> JsonResult<DeletedWebhook> {
    Ok(axum::Json(gateway.ask(&who, Verb::WebhookDelete, &DeleteWebhook { webhook }).await?))
}

/// Which secret is replaced.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RotateWebhookBody {
    /// `secret_version` of the webhook now.
    version: u32,
}

async fn rotate(
    Api { gateway, who }: Api,
    Id(webhook): Id<Uuid>,
    Json(RotateWebhookBody { version }): Json<RotateWebhookBody>,
) -> JsonResult<WebhookSecret> {
    let request = RotateWebhook { webhook, version };
    Ok(axum::Json(gateway.ask_twice(&who, Verb::WebhookRotate, &request).await?))
}

async fn test(Api { gateway, who }: Api, Id(webhook): Id<Uuid>) -> Result<Response, Problem> {
    let tested: TestedWebhook = gateway.ask(&who, Verb::WebhookTest, &TestWebhook { webhook }).await?;
    Ok(located(StatusCode::ACCEPTED, &tested, format!("/v1/calls/{}", tested.call)))
}
