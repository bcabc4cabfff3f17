//! The secret of a webhook, derived when it is answered: it is never on record.

use redial_proto::{ApiError, Code, Tenant, WebhookSecret};
use redial_store::WebhookOnRecord;
use redial_webhooks::WebhookKey;
use secrecy::ExposeSecret;
use uuid::Uuid;

/// Returns the error of a dispatcher without a key.
pub(super) fn no_key() -> ApiError {
    let message = "this dispatcher has no key for the secrets of webhooks: set REDIAL_WEBHOOK_KEY to 32 bytes or more, such as the \
                   output of `openssl rand -base64 32`, the same at all dispatchers and at the workers that deliver";
    ApiError::new(Code::InvalidConfiguration, message)
}

/// Checks that the secret of a webhook is derived from this key. Of another key this dispatcher can derive no secret,
/// and what is delivered is not signed with what it would derive.
pub(super) fn check_key(key: &WebhookKey, webhook: &WebhookOnRecord) -> Result<(), ApiError> {
    if key.id() == webhook.key {
        return Ok(());
    }
    let (id, version) = (webhook.view.webhook, webhook.view.secret_version);
    let message = format!(
        "the secret of webhook {id} is derived from another REDIAL_WEBHOOK_KEY than this dispatcher has, so its deliveries fail; \
         set that key again everywhere, or rotate version {version} of the secret and give the receiver the new one"
    );
    Err(ApiError::new(Code::InvalidConfiguration, message))
}

/// Returns the answer with the secret of the webhook's current version.
pub(super) fn with_secret(
    key: &WebhookKey,
    tenant: &Tenant,
    webhook: WebhookOnRecord,
) -> Result<WebhookSecret, ApiError> {
    check_key(key, &webhook)?;
    let webhook = webhook.view;
    let secret = key.secret(tenant.as_str(), webhook.webhook, webhook.secret_version);
    Ok(WebhookSecret { secret: secret.expose_secret().to_owned(), webhook })
}

pub(super) fn not_found(webhook: Uuid) -> ApiError {
    ApiError::new(Code::WebhookNotFound, format!("no webhook {webhook} is on record"))
}
