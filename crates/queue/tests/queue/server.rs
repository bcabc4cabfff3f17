//! A private nats-server with JetStream that a test can kill, pause, wipe and start again on the same port.

use std::time::Duration;

use redial_queue::{Queue, QueueConfig};
use redial_servers::{Nats, NatsConfig, Signal};
use rustix::process::{Pid, kill_process};
use tempfile::TempDir;

pub(crate) struct Server {
    folder: TempDir,
    url: String,
    nats: Option<Nats>,
}

impl Server {
    pub(crate) async fn started() -> Self {
        let mut server = Self { folder: tempfile::tempdir().unwrap(), url: String::new(), nats: None };
        server.start().await;
        server
    }

    pub(crate) async fn start(&mut self) {
        let nats = Nats::start(NatsConfig::new(self.folder.path())).await.unwrap();
        self.url = nats.url();
        self.nats = Some(nats);
    }

    pub(crate) async fn kill(&mut self) {
        self.nats.take().unwrap().kill().await;
    }

    /// Kills and restarts it with its store.
    pub(crate) async fn restart(&mut self) {
        self.kill().await;
        self.start().await;
    }

    /// Kills and restarts it with an empty store.
    pub(crate) async fn wipe(&mut self) {
        let store = self.nats.as_ref().unwrap().store().to_owned();
        self.kill().await;
        std::fs::remove_dir_all(store).unwrap();
        self.start().await;
    }

    /// Stops and restarts it without the messages of a stream, but with the progress of its consumers. A disk that was
    /// full when the messages were to be written leaves this state.
    pub(crate) async fn lose_messages(&mut self, stream: &str) {
        let store = self.nats.as_ref().unwrap().store().to_owned();
        self.nats.take().unwrap().stop().await;
        std::fs::remove_dir_all(store.join("jetstream/REDIAL/streams").join(stream).join("msgs")).unwrap();
        self.start().await;
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = self.nats.as_ref().unwrap().pid();
        kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), signal).unwrap();
    }

    pub(crate) fn config(&self) -> QueueConfig {
        QueueConfig { url: self.url.clone(), name: "test".into(), ..QueueConfig::default() }
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

    /// JetStream without Redial's settings, for what an operator could do.
    pub(crate) async fn jetstream(&self) -> async_nats::jetstream::Context {
        let url: async_nats::ServerAddr = self.url.parse().unwrap();
        let (user, password) = (url.username().unwrap().to_owned(), url.password().unwrap().to_owned());
        let options = async_nats::ConnectOptions::with_user_and_password(user, password);
        async_nats::jetstream::new(options.connect(url).await.unwrap())
    }
}

/// Creates streams and pool as soon as the server is ready, as a dispatcher does every second.
pub(crate) async fn ensure(queue: &Queue) {
    let mut waits = tokio::time::interval(Duration::from_millis(50));
    loop {
        waits.tick().await;
        if queue.ensure_streams().await.is_ok() && queue.ensure_pool("default").await.is_ok() {
            return;
        }
    }
}

/// Fails the test if the future takes longer than this.
pub(crate) async fn within<T>(seconds: u64, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(seconds), future).await.expect("took too long")
}
