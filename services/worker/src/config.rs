//! How a worker runs.

use std::time::Duration;

use redial_queue::QueueConfig;
use tokio_util::sync::CancellationToken;

/// Settings of one worker.
#[derive(Clone, Debug)]
pub struct WorkerConfig {
    /// How to reach NATS.
    pub nats: QueueConfig,
    /// A readable name, the first part of the worker's id. Default: `worker`.
    pub name: String,
    /// Calls that each pool runs at once, unless its tools say otherwise. Default: 64.
    pub slots: u32,
    /// How long running calls may take to finish after the shutdown. Default: 30 s.
    pub drain_grace: Duration,
    /// Cancelled, it ends the grace at once: for a second signal.
    pub kill: CancellationToken,
}

impl WorkerConfig {
    /// Every default.
    pub fn new(nats_url: impl Into<String>, name: impl Into<String>) -> Self {
        let name = name.into();
        Self {
            nats: QueueConfig { url: nats_url.into(), name: name.clone(), ..QueueConfig::default() },
            name,
            ..Self::default()
        }
    }
}

impl Default for WorkerConfig {
    fn default() -> Self {
        Self {
            nats: QueueConfig::default(),
            name: "worker".to_owned(),
            slots: 64,
            drain_grace: Duration::from_secs(30),
            kill: CancellationToken::new(),
        }
    }
}
