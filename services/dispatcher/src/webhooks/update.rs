//! Changes a webhook, disables it, or enables it again.

use redial_proto::{
    ApiError, Code, UpdateWebhook, WebhookEvent, WebhookState, WebhookView, webhook::check_subscription,
};
use redial_store::WebhookChange;
use redial_webhooks::check_url;

use super::{delete::cancel_open, secret::not_found};
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
    let view = view.ok_or_else(|| not_found(webhook))?;
    if view.state == WebhookState::Disabled {
        let open = asked.store().open_deliveries(webhook, u32::MAX).await.map_err(|error| store_failed(&error))?;
        cancel_open(&asked, open).await;
    }
    Ok(Done { reply: view, changed: 1 })
}
