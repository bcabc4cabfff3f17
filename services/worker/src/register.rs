//! Register: tells the dispatchers what this worker can run.

use std::{sync::Arc, time::Duration};

use redial_proto::{Registration, subjects};
use redial_queue::QueueError;

use crate::{WorkerError, pause, shared::Shared};

const ANSWER: Duration = Duration::from_secs(5);
const PAUSE_CAP: Duration = Duration::from_secs(2);

/// Registers until a dispatcher has answered. Fails only if the dispatchers do not want these tools.
pub(crate) async fn register(shared: &Shared) -> Result<(), WorkerError> {
    let registration = registration(shared);
    let mut failures = 0;
    loop {
        let answer = shared.queue.request::<_, serde_json::Value>(subjects::REGISTER, &registration, ANSWER).await;
        match answer {
            Ok(_) => return Ok(()),
            Err(QueueError::Api(error)) if !error.code.is_retryable() => return Err(WorkerError::Refused(error)),
            Err(error @ QueueError::TooLarge { .. }) => return Err(error.into()),
            Err(error) => {
                failures += 1;
                let wait = pause::after(failures, PAUSE_CAP);
                tracing::warn!(wait_ms = wait.as_millis(), "cannot register this worker: {error}");
                tokio::time::sleep(wait).await;
            }
        }
    }
}

/// Registers again whenever a dispatcher asks for it, or the connection was made anew.
pub(crate) async fn keep_announced(shared: Arc<Shared>) {
    let mut connections = shared.queue.connections();
    loop {
        tokio::select! {
            () = shared.register_now.notified() => {}
            Ok(()) = connections.changed() => {}
        }
        match register(&shared).await {
            Ok(()) => tracing::debug!("registered again"),
            Err(error) => tracing::error!("{error}"),
        }
    }
}

fn registration(shared: &Shared) -> Registration {
    let mut tools: Vec<_> = shared.tools.values().map(|tool| tool.spec.clone()).collect();
    tools.sort_by(|a, b| a.name.cmp(&b.name));
    Registration {
        worker: shared.id.clone(),
        started_at: shared.started_at,
        slots: shared.slots,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        tools,
    }
}
