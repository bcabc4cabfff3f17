//! Register: tells the dispatchers which tools this worker runs.

use std::{sync::Arc, time::Duration};

use redial_proto::{Registration, subjects};
use redial_queue::QueueError;

use crate::{error::WorkerError, pause, state::WorkerState};

const TIMEOUT: Duration = Duration::from_secs(5);
const PAUSE_CAP: Duration = Duration::from_secs(2);

/// Repeats the request until a dispatcher replies. Fails only if it refuses these tools.
pub(crate) async fn register(state: &WorkerState) -> Result<(), WorkerError> {
    let registration = registration(state);
    let mut failures = 0;
    loop {
        let answer = state.queue.request::<_, serde_json::Value>(subjects::REGISTER, &registration, TIMEOUT).await;
        match answer {
            Ok(_) => return Ok(()),
            Err(QueueError::Api(error)) if !error.code.is_retryable() => return Err(WorkerError::Refused(error)),
            Err(error @ QueueError::TooLarge { .. }) => return Err(error.into()),
            Err(error) => {
                failures += 1;
                let wait = pause::after(failures, PAUSE_CAP);
                tracing::warn!(wait_ms = wait.as_millis(), %error, "Failed to register the worker");
                tokio::time::sleep(wait).await;
            }
        }
    }
}

/// Registers again whenever a dispatcher requests it, and after every reconnection.
pub(crate) async fn keep_registered(state: Arc<WorkerState>) {
    let mut connections = state.queue.connections();
    loop {
        tokio::select! {
            () = state.register_now.notified() => {}
            Ok(()) = connections.changed() => {}
        }
        match register(&state).await {
            Ok(()) => tracing::debug!("Registered the worker again"),
            Err(error) => tracing::error!(%error, "Failed to register the worker again"),
        }
    }
}

fn registration(state: &WorkerState) -> Registration {
    let mut tools: Vec<_> = state.tools.values().map(|tool| tool.spec.clone()).collect();
    tools.sort_by(|a, b| a.name.cmp(&b.name));
    Registration {
        worker: state.id.clone(),
        started_at: state.started_at,
        slots: state.slots,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        tools,
    }
}
