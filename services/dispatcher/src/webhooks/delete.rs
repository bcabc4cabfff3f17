//! Deletes a webhook. What waits for it is dropped; the loop in `follow.rs` cancels what is under way, whatever dies now.

use redial_proto::{ApiError, DeleteWebhook, DeletedWebhook};

use super::secret::not_found;
use crate::{actions::Done, asked::Asked, error::store_failed};

pub(crate) async fn delete(asked: Asked, request: DeleteWebhook) -> Result<Done<DeletedWebhook>, ApiError> {
    let open = asked.store().delete_webhook(request.webhook).await.map_err(|error| store_failed(&error))?;
    let cancelled = open.ok_or_else(|| not_found(request.webhook))?;
    Ok(Done { reply: DeletedWebhook { cancelled }, changed: 1 })
}
