//! Deletes a webhook. What waits for it is dropped, and what is under way is cancelled.

use redial_proto::{ApiError, CallId, DeleteWebhook, DeletedWebhook};

use super::secret::not_found;
use crate::{
    actions::{Action, Done},
    asked::Asked,
    error::store_failed,
};

impl Action for DeleteWebhook {
    type Reply = DeletedWebhook;

    fn targets(&self) -> Vec<String> {
        vec![self.webhook.to_string()]
    }
}

pub(crate) async fn delete(asked: Asked, request: DeleteWebhook) -> Result<Done<DeletedWebhook>, ApiError> {
    let deleted = asked.store().delete_webhook(request.webhook).await.map_err(|error| store_failed(&error))?;
    let deleted = deleted.ok_or_else(|| not_found(request.webhook))?;
    let cancelled = cancel_open(&asked, deleted.open).await;
    Ok(Done { reply: DeletedWebhook { cancelled }, changed: 1 })
}

/// Cancels deliveries; returns how many would have gone on. One that cannot be cancelled now is sent: its receiver has to be
/// ready for late deliveries anyway.
pub(super) async fn cancel_open(asked: &Asked, open: Vec<CallId>) -> u64 {
    let mut cancelled = 0;
    for call in open {
        match asked.cancel(call).await {
            Ok((_, changed)) => cancelled += u64::from(changed),
            Err(error) => tracing::warn!(%error, %call, "Failed to cancel a delivery of a webhook that is gone"),
        }
    }
    cancelled
}
