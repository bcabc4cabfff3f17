//! A small NATS client that can send what a correct one never would, and keeps what the server says.
//!
//! The protocol is text: `PUB subject [reply-to] size`, a line end, the bytes, a line end.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
    time::timeout,
};

const ANSWER: Duration = Duration::from_mins(1);
/// Without a leader nobody answers.
const LEADER: Duration = Duration::from_secs(1);

/// A message as it was received.
#[derive(Debug, Default)]
pub struct Received {
    /// Of a job that is the answer to a pull: the job's own.
    pub subject: String,
    /// Where it wants an answer, if it does.
    pub reply: String,
    pub header: String,
    /// What comes after them.
    pub body: String,
}

#[derive(Debug)]
pub struct RawNats {
    stream: BufReader<TcpStream>,
    inbox: String,
    subscriptions: u32,
    requests: u32,
    /// Messages in the order in which they came.
    pub received: Vec<Received>,
    /// What the server refused.
    pub refusals: Vec<String>,
}

impl RawNats {
    /// Connects to `nats://user:password@address:port`.
    pub async fn connect(url: &str) -> Self {
        Self::open(url, "_INBOX.raw").await.unwrap()
    }

    /// Connects with another inbox. The error is what the server says.
    pub async fn open(url: &str, inbox: &str) -> Result<Self, String> {
        let (login, address) = url.strip_prefix("nats://").unwrap().rsplit_once('@').unwrap();
        let (user, password) = login.split_once(':').unwrap();
        Self::login(address, &json!({"user": user, "pass": password}), inbox).await
    }

    /// Connects with these options, and subscribes to an inbox. The error is what the server says.
    pub async fn login(address: &str, login: &Value, inbox: &str) -> Result<Self, String> {
        let stream = BufReader::new(TcpStream::connect(address).await.map_err(|error| error.to_string())?);
        let (received, refusals) = (Vec::new(), Vec::new());
        let mut client = Self { stream, inbox: inbox.to_owned(), subscriptions: 0, requests: 0, received, refusals };
        let mut options = json!({"verbose": false, "pedantic": false, "headers": true});
        options.as_object_mut().unwrap().extend(login.as_object().unwrap().clone());
        client.write(format!("CONNECT {options}\r\nSUB {inbox}.> 0\r\n").as_bytes()).await?;
        client.flush().await?;
        Ok(client)
    }

    pub async fn subscribe(&mut self, subject: &str) {
        self.subscriptions += 1;
        self.send_raw(format!("SUB {subject} {}\r\n", self.subscriptions).as_bytes()).await;
    }

    /// Publishes any bytes, and waits until the server has processed them.
    pub async fn publish(&mut self, subject: &str, payload: &[u8]) {
        self.send_raw(&Self::message(subject, "", "", payload)).await;
    }

    /// Publishes any bytes with a header of any bytes.
    pub async fn publish_with(&mut self, subject: &str, (name, value): (&str, &str), payload: &[u8]) {
        self.send_raw(&Self::message(subject, "", &format!("{name}: {value}"), payload)).await;
    }

    /// Publishes with a reply subject; without a header if that is empty.
    pub async fn send(&mut self, subject: &str, reply: &str, header: &str, body: &str) {
        self.send_raw(&Self::message(subject, reply, header, body.as_bytes())).await;
    }

    /// Sends lines of the protocol as they are, and waits until the server has read them.
    pub async fn send_raw(&mut self, bytes: &[u8]) {
        self.write(bytes).await.unwrap();
        self.flush().await.unwrap();
    }

    /// Sends a request of any bytes, and returns the next message.
    pub async fn request(&mut self, subject: &str, payload: impl AsRef<[u8]>) -> Received {
        self.answer(subject, "", payload.as_ref()).await.unwrap()
    }

    /// Sends a request with a header.
    pub async fn request_with(&mut self, subject: &str, (name, value): (&str, &str), payload: &[u8]) -> Received {
        self.answer(subject, &format!("{name}: {value}"), payload).await.unwrap()
    }

    async fn answer(&mut self, subject: &str, header: &str, payload: &[u8]) -> Result<Received, String> {
        self.requests += 1;
        let reply = format!("{}.{}", self.inbox, self.requests);
        let before = self.received.len();
        self.write(&Self::message(subject, &reply, header, payload)).await?;
        while self.received.len() == before {
            self.step().await?;
        }
        Ok(self.received.remove(before))
    }

    pub async fn jetstream(&mut self, verb: &str, request: &Value) -> Value {
        let answer = self.request(&format!("$JS.API.{verb}"), request.to_string()).await;
        serde_json::from_str(&answer.body).unwrap_or_else(|error| panic!("{verb}: {error}: {answer:?}"))
    }

    /// Sends a request to JetStream's API on a connection of its own; `None` if the server cannot be asked, or nobody
    /// answers: a stream of a cluster may have no leader now.
    pub async fn ask(url: &str, verb: &str) -> Option<Value> {
        let ask = async { Self::open(url, "_INBOX.raw").await?.answer(&format!("$JS.API.{verb}"), "", b"").await };
        serde_json::from_str(&timeout(LEADER, ask).await.ok()?.ok()?.body).ok()
    }

    /// Returns the name of the server that leads a stream, if it has a leader now.
    pub async fn leader(url: &str, stream: &str) -> Option<String> {
        let info = Self::ask(url, &format!("STREAM.INFO.{stream}")).await?;
        info["cluster"]["leader"].as_str().map(str::to_owned)
    }

    /// Counts the messages on a stream.
    pub async fn messages(&mut self, stream: &str) -> u64 {
        self.jetstream(&format!("STREAM.INFO.{stream}"), &json!({})).await["state"]["messages"].as_u64().unwrap()
    }

    /// Waits for a message that fits, and takes it.
    pub async fn wait_for(&mut self, what: &str, fits: impl Fn(&Received) -> bool) -> Received {
        loop {
            if let Some(at) = self.received.iter().position(&fits) {
                return self.received.remove(at);
            }
            let step = self.step().await;
            assert!(step.is_ok(), "waits for {what}: {step:?}; has {:?} {:?}", self.received, self.refusals);
        }
    }

    /// Waits until the server answers a ping. It answers in order: it has read all that came before then, and sent what
    /// it had to say.
    pub async fn flush(&mut self) -> Result<(), String> {
        self.write(b"PING\r\n").await?;
        while self.step().await? != "PONG" {}
        Ok(())
    }

    /// Sends lines of the protocol as they are.
    pub async fn write(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.stream.get_mut().write_all(bytes).await.map_err(|error| error.to_string())
    }

    /// Reads a line, and the message that belongs to it.
    pub async fn step(&mut self) -> Result<String, String> {
        let mut line = String::new();
        let read = timeout(ANSWER, self.stream.read_line(&mut line)).await.map_err(|_| "NATS says nothing")?;
        if read.map_err(|error| error.to_string())? == 0 {
            return Err(format!("the server ended the connection: {:?}", self.refusals));
        }
        let line = line.trim_end().to_owned();
        if line.starts_with("MSG ") || line.starts_with("HMSG ") {
            self.read_message(&line).await;
        } else if line == "PING" {
            self.write(b"PONG\r\n").await?;
        } else if line.starts_with("-ERR") {
            self.refusals.push(line.clone());
            if !line.contains("Permissions Violation") {
                return Err(line);
            }
        }
        Ok(line)
    }

    /// Reads `MSG subject id [reply] size`, or `HMSG subject id [reply] header-size size`.
    async fn read_message(&mut self, line: &str) {
        let words: Vec<&str> = line.split(' ').collect();
        let numbers = if words[0] == "HMSG" { 2 } else { 1 };
        let size: usize = words[words.len() - 1].parse().unwrap();
        let header: usize = if numbers == 2 { words[words.len() - 2].parse().unwrap() } else { 0 };
        let mut bytes = vec![0; size + 2];
        self.stream.read_exact(&mut bytes).await.unwrap();
        let reply = if words.len() == 4 + numbers { words[3] } else { "" };
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (header, body) = (text(&bytes[..header]), text(&bytes[header..size]));
        self.received.push(Received { subject: words[1].to_owned(), reply: reply.to_owned(), header, body });
    }

    /// Writes the lines that publish a message; `header` is empty, or `Name: value`.
    pub fn message(subject: &str, reply: &str, header: &str, payload: &[u8]) -> Vec<u8> {
        let size = payload.len();
        let head = if header.is_empty() {
            format!("PUB {subject} {reply} {size}\r\n")
        } else {
            let header = format!("NATS/1.0\r\n{header}\r\n\r\n");
            format!("HPUB {subject} {reply} {} {}\r\n{header}", header.len(), header.len() + size)
        };
        [head.as_bytes(), payload, b"\r\n"].concat()
    }
}
