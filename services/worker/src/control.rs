//! Control: handles the messages that dispatchers send to this worker.

use std::sync::Arc;

use redial_proto::{ControlMessage, subjects};
use redial_queue::Subscription;

use crate::{cancel::cancel, error::WorkerError, state::WorkerState};

/// Subscribes to control messages. Called before the first claim, so that the worker misses none.
pub(crate) async fn subscribe(state: &WorkerState) -> Result<Subscription, WorkerError> {
    let subscription = state.queue.subscribe(&subjects::worker(&state.id)).await?;
    state.queue.flush().await;
    Ok(subscription)
}

/// Handles control messages, without an end.
pub(crate) async fn run(state: Arc<WorkerState>, mut messages: Subscription) {
    loop {
        match serde_json::from_slice::<ControlMessage>(&messages.next().await) {
            Ok(message) => {
                state.forget(&message.ingested);
                cancel(&state, &message.cancelled);
            }
            Err(error) => tracing::error!(%error, "Discarded a control message that could not be parsed"),
        }
    }
}
