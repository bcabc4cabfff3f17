//! A private nats-server with JetStream that a test can kill, pause, wipe and start again on the same port.

use std::{
    net::TcpListener,
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::Duration,
};

use redial_queue::{Queue, QueueConfig};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

pub(crate) struct Server {
    folder: TempDir,
    port: u16,
    child: Option<Child>,
}

impl Server {
    /// A server that does not run yet.
    pub(crate) fn stopped() -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        Self { folder: tempfile::tempdir().unwrap(), port, child: None }
    }

    pub(crate) fn started() -> Self {
        let mut server = Self::stopped();
        server.start(&[]);
        server
    }

    pub(crate) fn start(&mut self, arguments: &[&str]) {
        let program =
            std::env::var_os("REDIAL_NATS_SERVER").map_or_else(|| PathBuf::from("nats-server"), PathBuf::from);
        let child = Command::new(&program)
            .args(["--addr", "127.0.0.1", "--port", &self.port.to_string(), "--jetstream", "--store_dir"])
            .arg(self.store())
            .args(arguments)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        self.child = Some(child.unwrap_or_else(|error| panic!("{}: {error}", program.display())));
    }

    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    /// Kills it and starts it again with what it had stored.
    pub(crate) fn restart(&mut self) {
        self.kill();
        self.start(&[]);
    }

    /// Kills it and starts it again with nothing.
    pub(crate) fn wipe(&mut self) {
        self.kill();
        std::fs::remove_dir_all(self.store()).unwrap();
        self.start(&[]);
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = self.child.as_ref().unwrap().id();
        kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), signal).unwrap();
    }

    fn store(&self) -> PathBuf {
        self.folder.path().join("store")
    }

    pub(crate) fn config(&self) -> QueueConfig {
        QueueConfig { url: format!("nats://127.0.0.1:{}", self.port), name: "test".into(), ..QueueConfig::default() }
    }

    pub(crate) async fn connect(&self) -> Queue {
        within(20, Queue::connect(&self.config())).await.unwrap()
    }

    /// A connection with all streams and pool `default`.
    pub(crate) async fn ready(&self) -> Queue {
        let queue = self.connect().await;
        within(20, ensure(&queue)).await;
        queue
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Makes streams and pool, again until the server is ready for it: what a dispatcher does every second.
pub(crate) async fn ensure(queue: &Queue) {
    let mut waits = tokio::time::interval(Duration::from_millis(50));
    loop {
        waits.tick().await;
        if queue.ensure_streams().await.is_ok() && queue.ensure_pool("default").await.is_ok() {
            return;
        }
    }
}

/// Fails the test if it takes longer than so many seconds.
pub(crate) async fn within<T>(seconds: u64, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(seconds), future).await.expect("took too long")
}
