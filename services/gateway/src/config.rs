//! The settings of a gateway.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    ops::RangeInclusive,
    path::PathBuf,
    time::Duration,
};

use redial_proto::{Tenant, User};
use redial_queue::QueueConfig;

use crate::GatewayError;

#[derive(Clone, Debug)]
pub struct GatewayConfig {
    pub queue: QueueConfig,
    /// Postgres: a role that reads, and writes nothing but when tokens were last used.
    pub database_url: String,
    /// Connections to Postgres at most.
    pub connections: u32,
    /// Port 0 takes a free one.
    pub listen: SocketAddr,
    /// Names and addresses that the header `Host` may have, besides those of this machine's loopback. Empty: any, unless it
    /// listens on loopback.
    pub hosts: Vec<String>,
    /// Who asks if a request has no token; only on loopback. `None`: each request needs one.
    pub without_token: Option<(Tenant, User)>,
    /// Access file: the roles that users of tokens have now. `None`: those of their tokens.
    pub access: Option<PathBuf>,
    /// Requests per second of one tenant.
    pub rate: u32,
    /// Streams and waiting requests of one tenant at a time.
    pub streams: u32,
    /// The longest body that is read whole, in bytes; and the longest line of a stream.
    pub body: usize,
    /// Write a line into the log for each request.
    pub access_log: bool,
    /// How long requests may take to finish after the shutdown.
    pub drain_grace: Duration,
}

impl GatewayConfig {
    pub const CONNECTIONS: RangeInclusive<u32> = 1..=1_000;
    pub const RATE: RangeInclusive<u32> = 1..=1_000_000;
    pub const STREAMS: RangeInclusive<u32> = 1..=1_000_000;
    /// The default of [`GatewayConfig::listen`].
    pub const LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8700);

    pub fn new(queue: QueueConfig, database_url: impl Into<String>) -> Self {
        Self {
            queue,
            database_url: database_url.into(),
            connections: 8,
            listen: Self::LISTEN,
            hosts: Vec::new(),
            without_token: None,
            access: None,
            rate: 1_000,
            streams: 10_000,
            body: redial_proto::limits::MAX_PAYLOAD + 1024 * 1024,
            access_log: false,
            drain_grace: Duration::from_secs(10),
        }
    }

    /// Refuses wrong settings, as an address beyond this machine without tokens: who reaches it may do all.
    pub(crate) fn check(&self) -> Result<(), GatewayError> {
        if self.without_token.is_some() && !self.listen.ip().is_loopback() {
            let message = format!(
                "a gateway that listens on {} asks for tokens; only on 127.0.0.1 or [::1] it may go without",
                self.listen
            );
            return Err(GatewayError::Setting(message));
        }
        Ok(())
    }
}
