//! A small NATS client that can send what a correct one never would.
//!
//! The protocol is text: `PUB subject [reply-to] size`, a line end, the bytes, a line end.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
};

const ANSWER: Duration = Duration::from_mins(1);
/// Without a leader nobody answers.
const LEADER: Duration = Duration::from_secs(1);
const INBOX: &str = "_INBOX.raw";

/// A connection.
#[derive(Debug)]
pub struct RawNats(BufReader<TcpStream>);

impl RawNats {
    /// Connects to `nats://user:password@address:port`.
    pub async fn connect(url: &str) -> Self {
        let (login, address) = url.strip_prefix("nats://").unwrap().rsplit_once('@').unwrap();
        let (user, password) = login.split_once(':').unwrap();
        let options = json!({"user": user, "pass": password, "verbose": false, "pedantic": false, "headers": true});
        let mut connection = Self(BufReader::new(TcpStream::connect(address).await.unwrap()));
        connection.send(format!("CONNECT {options}\r\nSUB {INBOX} 1\r\n").as_bytes()).await;
        connection.flush().await;
        connection
    }

    /// Publishes any bytes, and waits until the server has processed them.
    pub async fn publish(&mut self, subject: &str, payload: &[u8]) {
        self.publish_with_reply(subject, "", payload).await;
    }

    /// The same, and wants the reply there.
    pub async fn publish_with_reply(&mut self, subject: &str, reply: &str, payload: &[u8]) {
        let head = format!("PUB {subject} {reply} {}\r\n", payload.len());
        self.send(&[head.as_bytes(), payload, b"\r\n"].concat()).await;
        self.flush().await;
    }

    /// The same with a header of any bytes.
    pub async fn publish_with(&mut self, subject: &str, header: (&str, &str), payload: &[u8]) {
        let (name, value) = header;
        let headers = format!("NATS/1.0\r\n{name}: {value}\r\n\r\n");
        let sizes = format!("HPUB {subject} {} {}\r\n", headers.len(), headers.len() + payload.len());
        self.send(&[sizes.as_bytes(), headers.as_bytes(), payload, b"\r\n"].concat()).await;
        self.flush().await;
    }

    /// Sends a request of any bytes, and returns the bytes of the answer.
    pub async fn request(&mut self, subject: &str, payload: &[u8]) -> Vec<u8> {
        let head = format!("PUB {subject} {INBOX} {}\r\n", payload.len());
        self.send(&[head.as_bytes(), payload, b"\r\n"].concat()).await;
        self.answer().await
    }

    /// The same with a header.
    pub async fn request_with(&mut self, subject: &str, (name, value): (&str, &str), payload: &[u8]) -> Vec<u8> {
        let headers = format!("NATS/1.0\r\n{name}: {value}\r\n\r\n");
        let sizes = format!("HPUB {subject} {INBOX} {} {}\r\n", headers.len(), headers.len() + payload.len());
        self.send(&[sizes.as_bytes(), headers.as_bytes(), payload, b"\r\n"].concat()).await;
        self.answer().await
    }

    /// The bytes of the next message.
    async fn answer(&mut self) -> Vec<u8> {
        loop {
            let line = self.line().await;
            if line.starts_with("MSG ") || line.starts_with("HMSG ") {
                let mut sizes = line.rsplit(' ').map(str::parse::<usize>);
                let mut body = vec![0; sizes.next().unwrap().unwrap()];
                self.0.read_exact(&mut body).await.unwrap();
                // A reply with headers has their size before its own.
                let headers = if line.starts_with("HMSG ") { sizes.next().unwrap().unwrap() } else { 0 };
                return body.split_off(headers);
            }
        }
    }

    /// A request to JetStream's API.
    pub async fn jetstream(&mut self, verb: &str, request: &Value) -> Value {
        let reply = self.request(&format!("$JS.API.{verb}"), request.to_string().as_bytes()).await;
        serde_json::from_slice(&reply).unwrap()
    }

    /// A request to JetStream's API on a connection of its own; `None` if the server cannot be asked, or nobody answers: a
    /// stream of a cluster may have no leader now.
    pub async fn ask(url: &str, verb: &str) -> Option<Value> {
        let ask = async {
            let (login, address) = url.strip_prefix("nats://")?.rsplit_once('@')?;
            let (user, password) = login.split_once(':')?;
            let options = json!({"user": user, "pass": password, "verbose": false, "pedantic": false});
            let mut connection = TcpStream::connect(address).await.ok()?;
            let ask = format!("CONNECT {options}\r\nSUB {INBOX} 1\r\nPUB $JS.API.{verb} {INBOX} 0\r\n\r\n");
            connection.write_all(ask.as_bytes()).await.ok()?;
            let mut lines = BufReader::new(connection).lines();
            loop {
                let line = lines.next_line().await.ok()??;
                // Only the answer is a line of JSON.
                if let Ok(answer @ Value::Object(_)) = serde_json::from_str(&line) {
                    return Some(answer);
                }
            }
        };
        tokio::time::timeout(LEADER, ask).await.ok().flatten()
    }

    /// The name of the server that leads a stream, if it has a leader now.
    pub async fn leader(url: &str, stream: &str) -> Option<String> {
        let info = Self::ask(url, &format!("STREAM.INFO.{stream}")).await?;
        info["cluster"]["leader"].as_str().map(str::to_owned)
    }

    /// Messages on a stream.
    pub async fn messages(&mut self, stream: &str) -> u64 {
        self.jetstream(&format!("STREAM.INFO.{stream}"), &json!({})).await["state"]["messages"].as_u64().unwrap()
    }

    /// The server answers in order: once it answers a ping, it has read all that came before.
    async fn flush(&mut self) {
        self.send(b"PING\r\n").await;
        while self.line().await != "PONG" {}
    }

    async fn send(&mut self, bytes: &[u8]) {
        self.0.get_mut().write_all(bytes).await.unwrap();
    }

    async fn line(&mut self) -> String {
        let mut line = String::new();
        tokio::time::timeout(ANSWER, self.0.read_line(&mut line)).await.expect("NATS says something").unwrap();
        let line = line.trim_end().to_owned();
        assert!(!line.starts_with("-ERR"), "NATS: {line}");
        if line == "PING" {
            self.send(b"PONG\r\n").await;
        }
        line
    }
}
