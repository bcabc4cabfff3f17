//! Changes a webhook, disables it, or enables it again. What is under way to one that is disabled is cancelled by the loop in
//! `follow.rs`.

use redial_proto::{ApiError, Code, UpdateWebhook, WebhookEvent, WebhookView, webhook::check_subscription};
use redial_store::WebhookChange;
use redial_webhooks::check_url;

use super::secret::not_found;
use crate::{
    actions::{Action, Done},
    asked::Asked,
    error::store_failed,
};

impl Action for UpdateWebhook {
    type Reply = WebhookView;

    fn targets(&self) -> Vec<String> {
        vec![self.webhook.to_string()]
    }

    async fn check(&self, _: &Asked) -> Result<(), ApiError> {
        let events = self.events.as_deref().unwrap_or(&[WebhookEvent::AnyCall]);
        let (tools, agents) = (self.tools.as_deref().unwrap_or_default(), self.agents.as_deref().unwrap_or_default());
        let url = self.url.as_deref().map_or(Ok(()), check_url);
        url.and_then(|()| check_subscription(events, tools, agents))
            .map_err(|what| ApiError::new(Code::InvalidValue, what))
    }
}

pub(crate) async fn update(asked: Asked, request: UpdateWebhook) -> Result<Done<WebhookView>, ApiError> {
    let UpdateWebhook { webhook, url, events, tools, agents, state } = request;
    let change = WebhookChange { url, events, tools, agents, state };
    let view = asked.store().update_webhook(webhook, &change).await.map_err(|error| store_failed(&error))?;
    Ok(Done { reply: view.ok_or_else(|| not_found(webhook))?, changed: 1 })
}
