//! Register: tells the dispatchers which tools this worker runs, and learns where their jobs arrive.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use redial_proto::{Registered, Registration, ToolSpec, subjects::ControlVerb};
use redial_queue::QueueError;
use tokio::time::Instant;

use crate::{
    error::WorkerError,
    state::{WorkerState, pause_up_to},
};

const TIMEOUT: Duration = Duration::from_secs(5);
const PAUSE_CAP: Duration = Duration::from_secs(2);
/// Bytes of specifications in one message; the rest is for the names of the other tools.
const MAX_BYTES: usize = 600_000;

/// Registers all tools, in as many messages as they need.
pub(crate) async fn register(state: &WorkerState) -> Result<(), WorkerError> {
    let mut waiting = BTreeMap::new();
    for registration in registrations(state)? {
        let registered = send(state, &registration).await?;
        state.set_consumers(registered.consumers);
        waiting.extend(registered.waiting);
    }
    note_waiting(state, waiting);
    Ok(())
}

/// Tools that are named in the log one by one; the others are counted.
const MAX_NAMED: usize = 20;

/// Logs which tools get no calls until an operator accepts them, if others wait than after the last registration.
fn note_waiting(state: &WorkerState, waiting: BTreeMap<String, Vec<String>>) {
    let mut known = state.waiting.lock();
    if *known == waiting {
        return;
    }
    for (tool, reasons) in waiting.iter().take(MAX_NAMED) {
        let (identity, remedy) = (state.id.identity(), "`redial tools` shows it, and how to accept it");
        tracing::warn!(
            tool,
            identity = identity.as_str(),
            ?reasons,
            remedy,
            "A tool waits until an operator accepts it"
        );
    }
    let more = waiting.len().saturating_sub(MAX_NAMED);
    if more > 0 {
        tracing::warn!(more, "More tools wait until an operator accepts them");
    }
    for tool in known.keys().filter(|tool| !waiting.contains_key(*tool)) {
        tracing::info!(tool, "A tool does not wait any more");
    }
    *known = waiting;
}

/// Repeats the request until a dispatcher replies. Fails only if it refuses these tools.
async fn send(state: &WorkerState, registration: &Registration) -> Result<Registered, WorkerError> {
    let mut failures = 0;
    loop {
        let asked = Instant::now();
        match state.queue.request::<_, Registered>(&state.subject(ControlVerb::Register), registration, TIMEOUT).await {
            Ok(registered) => {
                state.hear(Some(registered.at), asked, registered.lease_ms);
                return Ok(registered);
            }
            Err(QueueError::Api(error)) if !error.code.is_retryable() => return Err(WorkerError::Refused(error)),
            Err(error @ QueueError::TooLarge { .. }) => return Err(error.into()),
            Err(error) => {
                failures += 1;
                let wait = pause_up_to(PAUSE_CAP, failures);
                tracing::warn!(wait_ms = wait.as_millis(), %error, "Failed to register the worker");
                tokio::time::sleep(wait).await;
            }
        }
    }
}

/// Registers again whenever the answer to a heartbeat asks for it. One is sent after every reconnection; were all workers to register
/// then, they would keep the dispatchers busy for minutes after a restart of nats-server.
pub(crate) async fn keep_registered(state: Arc<WorkerState>) {
    loop {
        state.register_now.notified().await;
        match register(&state).await {
            Ok(()) => tracing::debug!("Registered the worker again"),
            Err(error) => tracing::error!(%error, "Failed to register the worker again"),
        }
    }
}

/// Makes one message or several: each is complete, with some specifications and the names of all other tools.
fn registrations(state: &WorkerState) -> Result<Vec<Registration>, WorkerError> {
    let mut tools: Vec<&ToolSpec> = state.tools.values().map(|tool| &tool.spec).collect();
    tools.sort_by(|a, b| a.name.cmp(&b.name));
    let parts = parts(&tools)?;
    let registration = |part: &[&ToolSpec]| {
        let others = tools.iter().filter(|tool| !part.iter().any(|one| one.name == tool.name));
        Registration {
            worker: state.id.clone(),
            started_at: state.started_at,
            slots: state.slots.all,
            pools: state.slots.by_pool.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            contract: state.queue.contract(),
            host: state.host.clone(),
            tools: part.iter().map(|tool| (*tool).clone()).collect(),
            other_tools: others.map(|tool| (tool.name.clone(), tool.pool.clone())).collect(),
        }
    };
    Ok(parts.iter().map(|part| registration(part)).collect())
}

/// Splits tools into parts whose specifications fit into one message.
fn parts<'a>(tools: &[&'a ToolSpec]) -> Result<Vec<Vec<&'a ToolSpec>>, WorkerError> {
    let mut parts: Vec<Vec<&ToolSpec>> = Vec::new();
    let mut bytes = 0;
    for tool in tools {
        // Specifications have text keys only, so they always have JSON.
        let size = serde_json::to_string(tool).map_or(0, |json| json.len());
        if size > MAX_BYTES {
            let reason = format!("its specification takes {size} bytes; allowed: {MAX_BYTES}");
            return Err(WorkerError::Tool { tool: tool.name.clone(), reason });
        }
        match parts.last_mut() {
            Some(part) if bytes + size <= MAX_BYTES => {
                bytes += size;
                part.push(tool);
            }
            _ => {
                bytes = size;
                parts.push(vec![tool]);
            }
        }
    }
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(name: &str, bytes: usize) -> ToolSpec {
        ToolSpec { description: "x".repeat(bytes), ..ToolSpec::named(name) }
    }

    #[test]
    fn tools_that_do_not_fit_one_message_are_sent_in_several() {
        let specs: Vec<ToolSpec> = (0..5).map(|n| spec(&format!("tool-{n}"), 250_000)).collect();
        let tools: Vec<&ToolSpec> = specs.iter().collect();
        let sizes: Vec<usize> = parts(&tools).unwrap().iter().map(Vec::len).collect();
        assert_eq!(sizes, [2, 2, 1]);
        let error = parts(&[&spec("huge", 700_000)]).unwrap_err().to_string();
        assert!(error.contains("\"huge\"") && error.contains("allowed: 600000"), "{error}");
    }
}
