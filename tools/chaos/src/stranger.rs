//! A hostile client: it sends what a correct one never would, and everything that it receives is searched.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use redial_testkit::Ear;
use serde_json::json;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::{
        TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::{Mutex, watch},
    task::JoinHandle,
};

use crate::access::Login;

/// A server that says nothing for so long is down.
const ANSWER: Duration = Duration::from_secs(10);
/// Between two attempts to connect.
const PAUSE: Duration = Duration::from_millis(500);
/// Where somebody hostile listens. Of these the server lets nobody hear anything of others.
const EVERYWHERE: [&str; 12] = [
    ">",
    "redial.>",
    "redial.events.>",
    "redial.events.acme.>",
    "redial.api.acme.>",
    "redial.intake.>",
    "redial.ctl.>",
    "redial.jobs.>",
    "redial.results.>",
    "_INBOX_client.acme.alice.>",
    "_R_.>",
    "$JS.>",
];

/// A connection.
pub(crate) struct Stranger {
    inbox: String,
    writer: Arc<Mutex<OwnedWriteHalf>>,
    pongs: watch::Receiver<u64>,
    refusals: Arc<AtomicU64>,
    subscriptions: u64,
    reading: JoinHandle<()>,
}

impl Drop for Stranger {
    fn drop(&mut self) {
        self.reading.abort();
    }
}

impl Stranger {
    /// Connects, and subscribes to its own inbox.
    pub(crate) async fn connect(server: &str, login: &Login, ear: Ear) -> io::Result<Self> {
        let url = login.url(server);
        let wrong = || io::Error::new(io::ErrorKind::InvalidInput, "no login in the URL");
        let (user, address) = url.trim_start_matches("nats://").rsplit_once('@').ok_or_else(wrong)?;
        let (user, password) = user.split_once(':').ok_or_else(wrong)?;
        let (reader, writer) = TcpStream::connect(address).await?.into_split();
        let (writer, refusals) = (Arc::new(Mutex::new(writer)), Arc::new(AtomicU64::new(0)));
        let (pong, pongs) = watch::channel(0);
        let reading = Reading { reader: BufReader::new(reader), writer: Arc::clone(&writer), ear, pong };
        let reading = tokio::spawn(reading.run(Arc::clone(&refusals)));
        let inbox = login.inbox.clone();
        let mut stranger = Self { inbox, writer, pongs, refusals, subscriptions: 0, reading };
        let options = json!({"user": user, "pass": password, "verbose": false, "pedantic": false, "headers": true,
            "no_responders": true});
        stranger.send(format!("CONNECT {options}\r\n").as_bytes()).await?;
        let own = format!("{}.>", stranger.inbox);
        stranger.subscribe(&own).await?;
        stranger.flush().await?;
        Ok(stranger)
    }

    /// Subscribes to whatever others receive.
    pub(crate) async fn subscribe_everywhere(&mut self) -> io::Result<()> {
        for subject in EVERYWHERE {
            self.subscribe(subject).await?;
        }
        self.flush().await
    }

    /// Subscribes.
    pub(crate) async fn subscribe(&mut self, subject: &str) -> io::Result<()> {
        self.subscriptions += 1;
        self.send(format!("SUB {subject} {}\r\n", self.subscriptions).as_bytes()).await
    }

    /// Publishes; an empty reply subject is none.
    pub(crate) async fn publish(&mut self, subject: &str, reply: &str, body: &[u8]) -> io::Result<()> {
        let head = format!("PUB {subject} {reply} {}\r\n", body.len());
        self.send(&[head.as_bytes(), body, b"\r\n"].concat()).await
    }

    /// A reply subject of its own.
    pub(crate) fn inbox(&self) -> String {
        format!("{}.answers", self.inbox)
    }

    /// What the server refused so far.
    pub(crate) fn refusals(&self) -> u64 {
        self.refusals.load(Ordering::Relaxed)
    }

    /// Waits until the server has read everything that was sent.
    pub(crate) async fn flush(&mut self) -> io::Result<()> {
        self.pongs.mark_unchanged();
        self.send(b"PING\r\n").await?;
        let answered = tokio::time::timeout(ANSWER, self.pongs.changed()).await;
        match answered {
            Ok(Ok(())) => Ok(()),
            _ => Err(io::Error::new(io::ErrorKind::TimedOut, "NATS does not answer a hostile client")),
        }
    }

    async fn ended(mut self) {
        while self.pongs.changed().await.is_ok() {}
    }

    async fn send(&self, bytes: &[u8]) -> io::Result<()> {
        self.writer.lock().await.write_all(bytes).await
    }
}

/// Listens everywhere for the whole run, and connects again whenever the server was gone.
pub(crate) fn eavesdrop(server: &str, login: Login, ear: Ear) {
    let server = server.to_owned();
    tokio::spawn(async move {
        loop {
            if let Ok(mut stranger) = Stranger::connect(&server, &login, ear.clone()).await
                && stranger.subscribe_everywhere().await.is_ok()
            {
                stranger.ended().await;
            }
            tokio::time::sleep(PAUSE).await;
        }
    });
}

struct Reading {
    reader: BufReader<OwnedReadHalf>,
    writer: Arc<Mutex<OwnedWriteHalf>>,
    ear: Ear,
    pong: watch::Sender<u64>,
}

impl Reading {
    /// Until the connection ends.
    async fn run(mut self, refusals: Arc<AtomicU64>) {
        let mut line = String::new();
        loop {
            line.clear();
            if !self.reader.read_line(&mut line).await.is_ok_and(|read| read > 0) {
                return;
            }
            let words: Vec<&str> = line.split_whitespace().collect();
            match words.as_slice() {
                ["MSG" | "HMSG", subject, .., size] => {
                    let Ok(size) = size.parse::<usize>() else { return };
                    let mut message = vec![0; size + 2];
                    if self.reader.read_exact(&mut message).await.is_err() {
                        return;
                    }
                    self.ear.hear(subject, &message);
                }
                ["PING"] => {
                    let answered = self.writer.lock().await.write_all(b"PONG\r\n").await;
                    if answered.is_err() {
                        return;
                    }
                }
                ["PONG"] => self.pong.send_modify(|pongs| *pongs += 1),
                ["-ERR", ..] => {
                    refusals.fetch_add(1, Ordering::Relaxed);
                }
                _ => {}
            }
        }
    }
}
