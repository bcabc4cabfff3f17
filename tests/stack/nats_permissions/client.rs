//! A NATS client that does what a correct one never would, and keeps what the server says.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
    time::timeout,
};

const ANSWER: Duration = Duration::from_secs(25);

/// A message as it was received.
#[derive(Clone, Debug, Default)]
pub(crate) struct Received {
    pub(crate) subject: String,
    pub(crate) reply: String,
    pub(crate) body: String,
}

pub(crate) struct Client {
    stream: BufReader<TcpStream>,
    inbox: String,
    subscriptions: u32,
    requests: u32,
    /// Messages in the order in which they came.
    pub(crate) messages: Vec<Received>,
    /// What the server refused.
    pub(crate) refusals: Vec<String>,
}

impl Client {
    /// Connects and subscribes to an inbox. The error is what the server says.
    pub(crate) async fn connect(address: &str, login: &Value, inbox: &str) -> Result<Self, String> {
        let stream = BufReader::new(TcpStream::connect(address).await.unwrap());
        let (messages, refusals) = (Vec::new(), Vec::new());
        let mut client = Self { stream, inbox: inbox.to_owned(), subscriptions: 0, requests: 0, messages, refusals };
        let mut options = json!({"verbose": false, "pedantic": false, "headers": true, "no_responders": true});
        options.as_object_mut().unwrap().extend(login.as_object().unwrap().clone());
        client.send(format!("CONNECT {options}\r\n").as_bytes()).await?;
        client.flush().await?;
        client.subscribe(&format!("{inbox}.>")).await;
        Ok(client)
    }

    pub(crate) async fn subscribe(&mut self, subject: &str) {
        self.subscriptions += 1;
        self.send(format!("SUB {subject} {}\r\n", self.subscriptions).as_bytes()).await.unwrap();
        self.flush().await.unwrap();
    }

    /// Publishes, and waits until the server has read it. `header` is `Name: value`.
    pub(crate) async fn publish(&mut self, subject: &str, reply: &str, header: &str, body: &str) {
        let message = if header.is_empty() {
            format!("PUB {subject} {reply} {}\r\n{body}\r\n", body.len())
        } else {
            let header = format!("NATS/1.0\r\n{header}\r\n\r\n");
            format!("HPUB {subject} {reply} {} {}\r\n{header}{body}\r\n", header.len(), header.len() + body.len())
        };
        self.send_raw(message.as_bytes()).await;
    }

    /// Sends lines of the protocol as they are, and waits until the server has read them.
    pub(crate) async fn send_raw(&mut self, bytes: &[u8]) {
        self.send(bytes).await.unwrap();
        self.flush().await.unwrap();
    }

    /// Publishes with a reply subject below its own inbox, and waits for the first answer.
    pub(crate) async fn request(&mut self, subject: &str, body: &str) -> Received {
        self.requests += 1;
        let reply = format!("{}.{}", self.inbox, self.requests);
        self.subscriptions += 1;
        self.send(format!("SUB {reply} {}\r\n", self.subscriptions).as_bytes()).await.unwrap();
        let (id, before) = (self.subscriptions, self.messages.len());
        self.send(format!("PUB {subject} {reply} {}\r\n{body}\r\n", body.len()).as_bytes()).await.unwrap();
        // The inbox as a whole is subscribed to, too: each answer comes twice.
        while self.messages.len() < before + 2 {
            self.step().await.unwrap();
        }
        self.send(format!("UNSUB {id}\r\n").as_bytes()).await.unwrap();
        let answer = self.messages[before].clone();
        self.messages.truncate(before);
        answer
    }

    /// A request to JetStream's API.
    pub(crate) async fn api(&mut self, verb: &str, request: &Value) -> Value {
        let answer = self.request(&format!("$JS.API.{verb}"), &request.to_string()).await;
        serde_json::from_str(&answer.body).unwrap_or_else(|error| panic!("{verb}: {error}: {answer:?}"))
    }

    /// Waits for a message that fits, and takes it.
    pub(crate) async fn wait_for(&mut self, what: &str, fits: impl Fn(&Received) -> bool) -> Received {
        loop {
            if let Some(at) = self.messages.iter().position(&fits) {
                return self.messages.remove(at);
            }
            let step = timeout(ANSWER, self.step()).await;
            assert!(
                matches!(step, Ok(Ok(_))),
                "waits for {what}: {step:?}; has {:?} {:?}",
                self.messages,
                self.refusals
            );
        }
    }

    /// The server answers in order: once it answers a ping, it has read all that came before, and sent what it had to say.
    pub(crate) async fn flush(&mut self) -> Result<(), String> {
        self.send(b"PING\r\n").await?;
        while self.step().await? != "PONG" {}
        Ok(())
    }

    async fn send(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.stream.get_mut().write_all(bytes).await.map_err(|error| error.to_string())
    }

    /// Reads a line, and the message that belongs to it.
    async fn step(&mut self) -> Result<String, String> {
        let mut line = String::new();
        let read = timeout(ANSWER, self.stream.read_line(&mut line)).await.expect("NATS says something");
        if read.map_err(|error| error.to_string())? == 0 {
            return Err(format!("the server ended the connection: {:?}", self.refusals));
        }
        let line = line.trim_end().to_owned();
        if line.starts_with("MSG ") || line.starts_with("HMSG ") {
            self.read_message(&line).await;
        } else if line == "PING" {
            self.send(b"PONG\r\n").await?;
        } else if line.starts_with("-ERR") {
            self.refusals.push(line.clone());
            if !line.contains("Permissions Violation") {
                return Err(line);
            }
        }
        Ok(line)
    }

    /// `MSG subject id [reply] size`, `HMSG subject id [reply] header-size size`.
    async fn read_message(&mut self, line: &str) {
        let words: Vec<&str> = line.split(' ').collect();
        let numbers = if words[0] == "HMSG" { 2 } else { 1 };
        let size: usize = words[words.len() - 1].parse().unwrap();
        let header: usize = if numbers == 2 { words[words.len() - 2].parse().unwrap() } else { 0 };
        let mut bytes = vec![0; size + 2];
        self.stream.read_exact(&mut bytes).await.unwrap();
        let reply = if words.len() == 4 + numbers { words[3] } else { "" };
        let body = String::from_utf8_lossy(&bytes[header..size]).into_owned();
        self.messages.push(Received { subject: words[1].to_owned(), reply: reply.to_owned(), body });
    }
}
