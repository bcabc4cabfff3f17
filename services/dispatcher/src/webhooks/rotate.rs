//! Gives a webhook a new secret.

use redial_proto::{ApiError, Code, RotateWebhook, WebhookSecret, WebhookView};
use redial_store::Rotated;

use super::secret::{no_key, not_found, with_secret};
use crate::{actions::Done, asked::Asked, error::store_failed};

/// Rotates a secret. The same request again gets the same one: the reply to the first may be lost.
pub(crate) async fn rotate(asked: Asked, request: RotateWebhook) -> Result<Done<WebhookSecret>, ApiError> {
    let key = asked.webhook_key().ok_or_else(no_key)?;
    let RotateWebhook { webhook, version } = request;
    let rotated = asked.store().rotate_webhook(webhook, version, &key.id()).await;
    let (found, changed) = match rotated.map_err(|error| store_failed(&error))? {
        Rotated::Now(found) => (found, 1),
        Rotated::Other(found) if Some(found.view.secret_version) == version.checked_add(1) => (found, 0),
        Rotated::Other(found) => return Err(other_version(&found.view, version)),
        Rotated::NotFound => return Err(not_found(webhook)),
    };
    Ok(Done { reply: with_secret(key, &asked.caller.tenant, found)?, changed })
}

fn other_version(view: &WebhookView, version: u32) -> ApiError {
    let message =
        format!("version is {version}; allowed: {}, the version of the webhook's secret now", view.secret_version);
    ApiError::new(Code::WrongState, message)
}
