//! Sends a webhook a `webhook.ping`: a delivery like any other, so it is tried again, and its record says what happened.

use redial_proto::{ApiError, Code, TestWebhook, TestedWebhook, WebhookState, webhook::PING};
use redial_store::{PendingEvent, WebhookOnRecord};
use serde_json::json;

use super::{
    deliver::{body, new_call},
    secret::{check_key, no_key, not_found},
};
use crate::{actions::Done, asked::Asked, error::store_failed};

pub(crate) async fn test(asked: Asked, request: TestWebhook) -> Result<Done<TestedWebhook>, ApiError> {
    let key = asked.webhook_key().ok_or_else(no_key)?;
    let id = request.webhook;
    let webhook =
        asked.store().webhook(id).await.map_err(|error| store_failed(&error))?.ok_or_else(|| not_found(id))?;
    check_key(key, &webhook)?;
    let WebhookOnRecord { view, key, .. } = webhook;
    if view.state == WebhookState::Disabled {
        let message = format!("webhook {id} is disabled, so nothing is sent to it; enable it first");
        return Err(ApiError::new(Code::WrongState, message));
    }
    let event = PendingEvent {
        tenant: asked.caller.tenant.to_string(),
        webhook: id,
        subject: uuid::Uuid::now_v7(),
        event: PING.to_owned(),
        at: chrono::Utc::now(),
        url: view.url,
        key,
        version: view.secret_version,
        previous_until: view.previous_until,
    };
    let data = serde_json::value::to_raw_value(&json!({ "webhook": id }));
    let internal = |error: serde_json::Error| ApiError::new(Code::Internal, error.to_string());
    let body = body(&event, &data.map_err(internal)?).map_err(internal)?;
    let mut ping = new_call(&event, body, None).map_err(internal)?;
    ping.submitted_by = Some(asked.caller.user.to_string());
    asked.admit(&mut ping);
    let call = call_of(&asked, ping).await?;
    Ok(Done { reply: TestedWebhook { call }, changed: 1 })
}

async fn call_of(asked: &Asked, ping: redial_records::NewCall) -> Result<redial_proto::CallId, ApiError> {
    let mut results = asked.write(std::slice::from_ref(&ping)).await;
    let result = results.pop();
    let call = result.as_ref().and_then(|result| result.call);
    let error = result.and_then(|result| result.error);
    call.ok_or_else(|| error.unwrap_or_else(|| ApiError::new(Code::Internal, "the delivery was not written")))
}
