//! Gives a webhook a new secret.

use redial_proto::{ApiError, Code, RotateWebhook, WebhookSecret, WebhookView};
use redial_store::Rotated;

use super::secret::{no_key, not_found, with_secret};
use crate::{
    actions::{Action, Done},
    asked::Asked,
    error::store_failed,
};

impl Action for RotateWebhook {
    type Reply = WebhookSecret;

    fn targets(&self) -> Vec<String> {
        vec![self.webhook.to_string()]
    }
}

/// The same request again gets the same secret: the reply to the first may be lost.
pub(crate) async fn rotate(asked: Asked, request: RotateWebhook) -> Result<Done<WebhookSecret>, ApiError> {
    let key = asked.webhook_key().ok_or_else(no_key)?;
    let RotateWebhook { webhook, version } = request;
    let rotated = asked.store().rotate_webhook(webhook, version, &key.id()).await;
    let (view, changed) = match rotated.map_err(|error| store_failed(&error))? {
        Rotated::Now(view) => (view, 1),
        Rotated::Other(view) if Some(view.secret_version) == version.checked_add(1) => (view, 0),
        Rotated::Other(view) => return Err(other_version(&view, version)),
        Rotated::NotFound => return Err(not_found(webhook)),
    };
    Ok(Done { reply: with_secret(key, &asked.caller.tenant, view), changed })
}

fn other_version(view: &WebhookView, version: u32) -> ApiError {
    let message =
        format!("version is {version}; allowed: {}, the version of the webhook's secret now", view.secret_version);
    ApiError::new(Code::WrongState, message)
}
