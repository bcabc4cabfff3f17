//! Configuration of a worker.

use std::{ops::RangeInclusive, time::Duration};

use redial_proto::subjects::pools_token;
use redial_queue::QueueConfig;
use redial_tools::CommandUser;
use tokio_util::sync::CancellationToken;

use crate::error::WorkerError;

/// Settings of one worker. [`WorkerConfig::new`] sets every field to its default.
#[derive(Clone, Debug)]
pub struct WorkerConfig {
    /// Address and credentials of NATS.
    pub nats: QueueConfig,
    /// The worker's identity: the first part of its id, and what its credentials are for. Characters other than ASCII letters,
    /// digits, `_` and `-` become `-`; at most 50. Default: `worker`.
    pub name: String,
    /// Where the worker runs, for people. Default: none.
    pub host: Option<String>,
    /// The pools of its credentials, which are part of the subjects of its requests. Default: none are named, and the server
    /// must allow all.
    pub pools: Vec<String>,
    /// How many calls each pool runs at once, unless its tools set a [`crate::Tool::concurrency`]. Default: 64.
    pub slots: u32,
    /// How many programs all command tools together run at once. Default: two for each core.
    pub command_slots: u32,
    /// The user that the programs of a manifest run as. Default: the worker's own, and if that is root, none: then a manifest
    /// with command tools is refused.
    pub command_user: CommandUser,
    /// The grace period: how long running calls may take to finish after the shutdown began. Default: 30 s.
    pub drain_grace: Duration,
    /// Ends the grace period at once when it is cancelled, for example on a second SIGTERM.
    pub kill: CancellationToken,
}

impl WorkerConfig {
    /// What `slots` and `command_slots`, and the concurrency of a tool or a model, may be.
    pub const SLOTS: RangeInclusive<u32> = 1..=100_000;

    pub(crate) fn pools_token(&self) -> Result<String, WorkerError> {
        pools_token(self.pools.iter().map(String::as_str)).map_err(WorkerError::Pools)
    }

    /// The defaults, with the address of NATS and a name.
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
            host: None,
            pools: Vec::new(),
            slots: 64,
            command_slots: default_command_slots(),
            command_user: CommandUser::Own,
            drain_grace: Duration::from_secs(30),
            kill: CancellationToken::new(),
        }
    }
}

/// Returns two a core: programs compute, unlike requests, which mostly wait; more would only slow one another.
fn default_command_slots() -> u32 {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    u32::try_from(cores).unwrap_or(u32::MAX).saturating_mul(2).min(*WorkerConfig::SLOTS.end())
}
