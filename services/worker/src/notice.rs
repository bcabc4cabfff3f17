//! Notice: what dispatchers say unasked.

use std::sync::Arc;

use redial_proto::{WorkerNotice, subjects};
use redial_queue::Subscription;

use crate::{WorkerError, heartbeat::cancel, shared::Shared};

/// Starts listening. Done before anything is claimed, so that no notice is missed.
pub(crate) async fn subscribe(shared: &Shared) -> Result<Subscription, WorkerError> {
    let subscription = shared.queue.subscribe(&subjects::worker(&shared.id)).await?;
    shared.queue.flush().await;
    Ok(subscription)
}

/// Obeys notices until the connection is closed for good.
pub(crate) async fn obey(shared: Arc<Shared>, mut notices: Subscription) {
    while let Some(payload) = notices.next().await {
        match serde_json::from_slice::<WorkerNotice>(&payload) {
            Ok(notice) => {
                shared.forget(&notice.ingested);
                cancel(&shared, &notice.cancelled);
            }
            Err(error) => tracing::error!("a notice that is none was ignored: {error}"),
        }
    }
}
