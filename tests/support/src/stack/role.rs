//! A dispatcher or a worker of a stack.

use redial_queue::QueueConfig;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use redial_testkit::Servers;

/// A running dispatcher or worker.
#[derive(Debug)]
pub(super) struct Role {
    pub(super) is_dispatcher: bool,
    pub(super) shutdown: CancellationToken,
    pub(super) running: JoinHandle<()>,
}

/// How a role connects to NATS.
pub(super) fn nats(servers: &Servers, name: &str) -> QueueConfig {
    QueueConfig { url: servers.nats_url().to_owned(), name: name.to_owned(), ..QueueConfig::default() }
}
