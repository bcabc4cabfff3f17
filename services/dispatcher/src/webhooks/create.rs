//! Creates a webhook.

use redial_engine::fingerprint::fingerprint;
use redial_proto::{
    ApiError, Code, CreateWebhook, WebhookSecret,
    webhook::{MAX_WEBHOOKS, check_subscription},
};
use redial_store::{NewWebhook, WebhookCreated};
use redial_webhooks::check_url;

use super::secret::{no_key, with_secret};
use crate::{
    actions::{Action, Done},
    asked::Asked,
    error::store_failed,
};

impl Action for CreateWebhook {
    type Reply = WebhookSecret;

    fn targets(&self) -> Vec<String> {
        vec![self.webhook.to_string()]
    }

    async fn check(&self, _: &Asked) -> Result<(), ApiError> {
        check_url(&self.url)
            .and_then(|()| check_subscription(&self.events, &self.tools, &self.agents))
            .map_err(|what| ApiError::new(Code::InvalidValue, what))
    }
}

/// Creates a webhook. The same request again gets the same answer, also the secret: the reply to the first may be lost.
pub(crate) async fn create(asked: Asked, request: CreateWebhook) -> Result<Done<WebhookSecret>, ApiError> {
    let key = asked.webhook_key().ok_or_else(no_key)?;
    let CreateWebhook { webhook, url, events, tools, agents } = request;
    let new = NewWebhook {
        id: webhook,
        user: asked.caller.user.as_str(),
        content: fingerprint(&serde_json::json!([url, events, tools, agents])),
        url: &url,
        events: &events,
        tools: &tools,
        agents: &agents,
        key: &key.id(),
    };
    match asked.store().create_webhook(&new).await.map_err(|error| store_failed(&error))? {
        WebhookCreated::Created(webhook, is_new) => {
            Ok(Done { reply: with_secret(key, &asked.caller.tenant, *webhook)?, changed: u64::from(is_new) })
        }
        WebhookCreated::Conflict => {
            let message =
                format!("webhook {webhook} was created before with other settings; use another id for another webhook");
            Err(ApiError::new(Code::IdempotencyConflict, message))
        }
        WebhookCreated::TooMany => {
            let message =
                format!("this tenant has {MAX_WEBHOOKS} webhooks, which is the most allowed; delete one first");
            Err(ApiError::new(Code::TooLarge, message))
        }
    }
}
