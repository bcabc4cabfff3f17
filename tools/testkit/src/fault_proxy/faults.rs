//! The faults of a proxy's connections, and what it observes of them.

use std::net::SocketAddr;

/// One side of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The side that connected.
    Client,
    /// The side that was connected to.
    Server,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Faults {
    /// Where new connections go to, if not to the listener's own server.
    pub(super) target: Option<SocketAddr>,
    /// Nothing is forwarded to this side.
    pub(super) to_client: bool,
    pub(super) to_server: bool,
    /// Counts the cuts: a connection ends when this is no longer what it was at its beginning.
    pub(super) cuts: u64,
    /// The same for connections that end in the middle of the next piece of data.
    pub(super) tears: u64,
    /// The same for connections of which only this side is closed.
    pub(super) lost_clients: u64,
    pub(super) lost_servers: u64,
    /// Counts calls of `answers`: what was sent before a call does not count for it.
    pub(super) looks: u64,
}

/// What goes through the proxy.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Traffic {
    pub(super) open: usize,
    /// The last look after which a server answered what a client had sent after it.
    pub(super) answered: u64,
}
