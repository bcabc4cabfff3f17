//! Keeps a server running.

use std::{future::Future, process::ExitStatus, time::Duration};

use redial_backoff::{Backoff, Waits};
use tokio::{sync::watch, task::JoinHandle, time::Instant};
use tokio_util::sync::CancellationToken;

use crate::ServerError;

/// A server that ran this long is restarted without delay when it dies; one that dies sooner is restarted after a growing
/// delay.
const STEADY: Duration = Duration::from_secs(5);
const RESTART: Backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(5));

/// A server, which [`Supervised`] can restart.
pub trait Server: Sized + Send + Sync + 'static {
    type Config: Clone + Send + Sync + 'static;
    /// Its name in logs.
    const NAME: &'static str;
    /// Starts it and waits until it is ready.
    fn start(config: Self::Config) -> impl Future<Output = Result<Self, ServerError>> + Send;
    /// Returns the same configuration with this port.
    fn on_port(config: Self::Config, port: u16) -> Self::Config;
    fn url(&self) -> String;
    fn port(&self) -> u16;
    fn pid(&self) -> u32;
    /// Waits until it has ended, for whatever reason.
    fn ended(&self) -> impl Future<Output = ExitStatus> + Send;
    /// Shuts it down: connections are closed, everything is written. Killed if that takes over 10 s.
    fn stop(self) -> impl Future<Output = ExitStatus> + Send;
}

/// A server that is restarted, at the same address, whenever it dies. Dropping this kills it.
#[derive(Debug)]
pub struct Supervised {
    url: String,
    port: u16,
    pid: watch::Receiver<Option<u32>>,
    shutdown: CancellationToken,
    task: JoinHandle<()>,
}

impl Supervised {
    /// Starts it. Only this first start can fail: later ones are logged and retried until they succeed.
    pub async fn start<S: Server>(config: S::Config) -> Result<Self, ServerError> {
        let server = S::start(config.clone()).await?;
        let (url, port) = (server.url(), server.port());
        let (sender, pid) = watch::channel(Some(server.pid()));
        let shutdown = CancellationToken::new();
        let task = tokio::spawn(watch_over(server, S::on_port(config, port), sender, shutdown.clone()));
        Ok(Self { url, port, pid, shutdown, task })
    }

    /// Returns its address with credentials; the same after every restart.
    pub fn url(&self) -> &str {
        &self.url
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Watches its process id; `None` while it is down. To wait for a restart, watch this.
    pub fn pid(&self) -> watch::Receiver<Option<u32>> {
        self.pid.clone()
    }

    pub async fn stop(mut self) {
        self.shutdown.cancel();
        if let Err(error) = (&mut self.task).await {
            tracing::error!(%error, "Supervision of a server failed");
        }
    }
}

impl Drop for Supervised {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn watch_over<S: Server>(
    mut server: S,
    config: S::Config,
    sender: watch::Sender<Option<u32>>,
    shutdown: CancellationToken,
) {
    let mut delays = RESTART.waits();
    loop {
        let began = Instant::now();
        let status = tokio::select! {
            status = server.ended() => status,
            () = shutdown.cancelled() => {
                let status = server.stop().await;
                tracing::debug!(server = S::NAME, %status, "Stopped a server");
                return;
            }
        };
        sender.send_replace(None);
        tracing::warn!(server = S::NAME, %status, "A server died; restarting it");
        // It holds the lock of the folder.
        drop(server);
        let mut delay = Duration::ZERO;
        if began.elapsed() >= STEADY {
            delays.reset();
        } else {
            delay = delays.next_wait();
        }
        let restarted = tokio::select! {
            server = restart::<S>(&config, delay, &mut delays) => server,
            () = shutdown.cancelled() => return,
        };
        tracing::info!(server = S::NAME, pid = restarted.pid(), "Restarted a server");
        sender.send_replace(Some(restarted.pid()));
        server = restarted;
    }
}

async fn restart<S: Server>(config: &S::Config, mut delay: Duration, delays: &mut Waits) -> S {
    loop {
        tokio::time::sleep(delay).await;
        match S::start(config.clone()).await {
            Ok(server) => return server,
            Err(error) => tracing::error!(server = S::NAME, %error, "Failed to restart a server; trying again"),
        }
        delay = delays.next_wait();
    }
}
