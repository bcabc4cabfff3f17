//! Settings of a dispatcher.

use std::{ops::RangeInclusive, path::PathBuf, time::Duration};

use redial_proto::limits;
use redial_queue::QueueConfig;
use redial_store::{Purpose, StoreConfig};
use redial_webhooks::WebhookKey;

use crate::error::DispatcherError;

/// Settings of a dispatcher. Every default is fit for production.
#[derive(Clone, Debug)]
pub struct DispatcherConfig {
    pub queue: QueueConfig,
    /// `postgres://user:password@host:port/name`.
    pub database_url: String,
    /// Connections to Postgres. Default 16.
    pub connections: u32,
    /// Time that a worker holds a call without a heartbeat. Default 15 s.
    pub lease: Duration,
    /// Ended calls and conversations are deleted after this. Default: never.
    pub retention: Option<Duration>,
    /// File that declares agents: `docs/TASKS.md`. Default: none, and tasks bring their agents with them.
    pub agents: Option<PathBuf>,
    /// Access file: what tenants may use. Default: none, and all of them may use everything.
    pub access: Option<PathBuf>,
    /// Tools that other worker identities register, and laxer effects, wait for nobody. Default: they wait for
    /// `redial tools accept`.
    pub accept_tools: bool,
    /// Servers of the NATS cluster that keep each stream: put on record, for all dispatchers. Default: what is on record; without
    /// that, streams stay as they are, and new ones have one replica.
    pub nats_replicas: Option<u32>,
    /// The most bytes of the arguments of a call, and of the output of an attempt. Default 16 MiB.
    pub max_payload: usize,
    /// The secrets of webhooks are derived from it. Default: none, and no webhook can be created.
    pub webhook_key: Option<WebhookKey>,
}

impl DispatcherConfig {
    pub const CONNECTIONS: RangeInclusive<u32> = 4..=1000;
    pub const LEASE: RangeInclusive<Duration> = Duration::from_millis(300)..=Duration::from_hours(1);
    pub const RETENTION: RangeInclusive<Duration> = Duration::from_mins(1)..=Duration::from_hours(100 * 8766);
    /// With an even number, no more servers may fail than with one less.
    pub const NATS_REPLICAS: [u32; 3] = [1, 3, 5];

    /// Returns the defaults of everything but the two servers.
    pub fn new(queue: QueueConfig, database_url: impl Into<String>) -> Self {
        Self {
            queue,
            database_url: database_url.into(),
            connections: 16,
            lease: Duration::from_secs(15),
            retention: None,
            agents: None,
            access: None,
            accept_tools: false,
            nats_replicas: None,
            max_payload: limits::MAX_PAYLOAD,
            webhook_key: None,
        }
    }

    pub(crate) fn store(&self) -> StoreConfig {
        StoreConfig { url: self.database_url.clone(), connections: self.connections, purpose: Purpose::Dispatch }
    }

    pub(crate) fn lease_ms(&self) -> u64 {
        u64::try_from(self.lease.as_millis()).unwrap_or(u64::MAX)
    }

    /// Returns how long a worker counts as live after a heartbeat, in ms: a lease, and at least 15 s, so that a pool
    /// whose workers stand still for a moment, and lose short leases by that, still has its tools.
    pub(crate) fn live_ms(&self) -> u64 {
        self.lease_ms().max(15_000)
    }

    pub(crate) fn check(&self) -> Result<(), DispatcherError> {
        let wrong = |text: String| Err(DispatcherError::Setting(text));
        if !Self::CONNECTIONS.contains(&self.connections) {
            return wrong(format!("connections is {}; allowed: {:?}", self.connections, Self::CONNECTIONS));
        }
        if !Self::LEASE.contains(&self.lease) {
            return wrong(format!("lease is {:?}; allowed: {:?}", self.lease, Self::LEASE));
        }
        if let Some(replicas) = self.nats_replicas.filter(|replicas| !Self::NATS_REPLICAS.contains(replicas)) {
            return wrong(format!("nats_replicas is {replicas}; allowed: 1, 3 or 5"));
        }
        if !limits::PAYLOADS.contains(&self.max_payload) {
            return wrong(format!("max_payload is {}; allowed: {:?} bytes", self.max_payload, limits::PAYLOADS));
        }
        match self.retention {
            Some(age) if !Self::RETENTION.contains(&age) => {
                wrong(format!("retention is {age:?}; allowed: {:?}, or none", Self::RETENTION))
            }
            _ => Ok(()),
        }
    }
}
