//! A private nats-server with JetStream that a test can kill, pause, wipe and start again on the same port.

use std::time::Duration;

use redial_queue::{Queue, QueueConfig};
use redial_servers::{Nats, NatsConfig, Server as _, Signal};
use redial_testkit::RawNats;
use rustix::process::{Pid, kill_process};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    net::TcpListener,
};

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

    /// Starts a server; returns it with a connection with all streams and pool `default`.
    pub(crate) async fn with_queue() -> (Self, Queue) {
        let server = Box::pin(Self::started()).await;
        let queue = Box::pin(server.ready()).await;
        (server, queue)
    }

    /// Starts a server without streams; returns it with a connection.
    pub(crate) async fn with_connection() -> (Self, Queue) {
        let server = Box::pin(Self::started()).await;
        let queue = Box::pin(server.connect()).await;
        (server, queue)
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

    /// Sends a signal; returns once a stop has arrived: each thread stops when it runs next.
    pub(crate) fn signal(&self, signal: Signal) {
        let pid = self.nats.as_ref().unwrap().pid();
        kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), signal).unwrap();
        while signal == Signal::STOP && !all_stopped(pid) {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    pub(crate) fn config(&self) -> QueueConfig {
        QueueConfig { url: self.url.clone(), name: "test".into(), ..QueueConfig::default() }
    }

    pub(crate) async fn connect(&self) -> Queue {
        within(20, Queue::connect(&self.config())).await.unwrap()
    }

    /// Returns a connection with all streams and pool `default`.
    pub(crate) async fn ready(&self) -> Queue {
        let queue = self.connect().await;
        within(20, ensure(&queue)).await;
        queue
    }

    /// Refuses the next logins in the place of a killed server.
    pub(crate) async fn refuse_logins(&self, count: usize) {
        let url: async_nats::ServerAddr = self.url.parse().unwrap();
        let listener = TcpListener::bind((url.host(), url.port())).await.unwrap();
        let info = serde_json::json!({
            "server_id": "x", "version": "2.9.10", "host": url.host(), "port": url.port(), "headers": true,
            "max_payload": 1_048_576, "proto": 1, "auth_required": true,
        });
        for _ in 0..count {
            let mut stream = BufReader::new(listener.accept().await.unwrap().0);
            stream.write_all(format!("INFO {info}\r\n").as_bytes()).await.unwrap();
            stream.read_line(&mut String::new()).await.unwrap();
            stream.write_all(b"-ERR 'Authorization Violation'\r\n").await.unwrap();
            // Until the client closes it.
            while stream.read_line(&mut String::new()).await.is_ok_and(|read| read > 0) {}
        }
    }

    /// Publishes a message with these headers, whatever they are.
    pub(crate) async fn publish_with_headers(&self, subject: &str, header: &str) {
        let size = header.len();
        let lines = format!("HPUB {subject} {size} {size}\r\n{header}\r\n");
        RawNats::connect(&self.url).await.send_raw(lines.as_bytes()).await;
    }

    /// Returns JetStream without Redial's settings, for what an operator could do.
    pub(crate) async fn jetstream(&self) -> async_nats::jetstream::Context {
        async_nats::jetstream::new(self.client().await)
    }

    /// Returns a client without Redial's settings.
    pub(crate) async fn client(&self) -> async_nats::Client {
        let url: async_nats::ServerAddr = self.url.parse().unwrap();
        let (user, password) = (url.username().unwrap().to_owned(), url.password().unwrap().to_owned());
        let options = async_nats::ConnectOptions::with_user_and_password(user, password);
        options.connect(url).await.unwrap()
    }
}

/// Creates streams and pool as soon as the server is ready, as a dispatcher does every second.
pub(crate) async fn ensure(queue: &Queue) {
    let mut waits = tokio::time::interval(Duration::from_millis(50));
    loop {
        waits.tick().await;
        if queue.ensure_streams().await.is_ok() && queue.ensure_jobs("default").await.is_ok() {
            return;
        }
    }
}

/// Fails the test if the future takes longer than this.
pub(crate) async fn within<T>(seconds: u64, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(seconds), future).await.expect("took too long")
}

pub(crate) async fn lost(queue: &Queue) {
    within(20, async {
        while queue.is_connected() {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

/// True if every thread of a process is stopped. Where the system does not tell, it is taken for so.
fn all_stopped(pid: u32) -> bool {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return true };
    threads.flatten().all(|thread| {
        let stat = std::fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
        // The name may hold anything; the state follows its last parenthesis.
        stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with('T'))
    })
}
