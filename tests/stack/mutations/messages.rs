//! Changes messages between Redial's processes and NATS into what a dispatcher or a worker with a bug would send or
//! believe.
//!
//! In NATS's protocol a message is a line and, for four verbs, a body whose size ends that line; a line end follows.

use std::io;

use redial_proto::{ControlMessage, GrantRef, Job, ReportBatch, subjects};
use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{
        TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::Mutex,
};

use super::wire::{Hits, Wire};

/// A change of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MessageChange {
    /// Every publication of a job has the message id of the first.
    SameMessageId,
    /// A dispatcher acknowledges a submission of the intake stream when it gets it, and a worker's result too, whose
    /// worker it then notifies that it is ingested.
    AnswersFirst,
    /// A worker takes the number of a job's delivery for the number of the attempt.
    DeliveriesAreAttempts,
    /// A worker believes that its lease never ends.
    EndlessLease,
}

/// Listens before the NATS of a URL; returns the URL through itself.
pub(crate) async fn before(url: &str, change: MessageChange, hits: &Hits) -> (Wire, String) {
    let hits = hits.clone();
    Wire::before(url, move |client, server| forward(client, server, change, hits.clone())).await
}

async fn forward(client: TcpStream, server: TcpStream, change: MessageChange, hits: Hits) -> io::Result<()> {
    let (from_client, mut to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let to_server = Mutex::new(to_server);
    let sent = async {
        let mut from = BufReader::new(from_client);
        loop {
            let mut message = Message::read(&mut from).await?;
            if change == MessageChange::SameMessageId && message.forget_publication() {
                hits.add();
            }
            message.write(&mut *to_server.lock().await).await?;
        }
    };
    let received = async {
        let mut from = BufReader::new(from_server);
        loop {
            let mut message = Message::read(&mut from).await?;
            let answers = if change == MessageChange::AnswersFirst { message.answers() } else { Vec::new() };
            if !answers.is_empty() || message.changed_by(change) {
                hits.add();
            }
            for answer in answers {
                answer.write(&mut *to_server.lock().await).await?;
            }
            message.write(&mut to_client).await?;
        }
    };
    tokio::select! {
        done = sent => done,
        done = received => done,
    }
}

/// A line without its sizes, and what follows it.
struct Message {
    line: Vec<String>,
    /// Headers come first in it; their size.
    headers: Option<usize>,
    body: Option<Vec<u8>>,
}

impl Message {
    async fn read(from: &mut BufReader<OwnedReadHalf>) -> io::Result<Self> {
        let mut line = String::new();
        if from.read_line(&mut line).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let text = line.trim_end();
        let verb = text.split(' ').next().unwrap_or_default();
        if !["PUB", "HPUB", "MSG", "HMSG"].contains(&verb) {
            return Ok(Self { line: vec![text.to_owned()], headers: None, body: None });
        }
        let mut line: Vec<String> = text.split_ascii_whitespace().map(str::to_owned).collect();
        let mut size = || line.pop().unwrap().parse::<usize>().unwrap();
        let all = size();
        let headers = verb.starts_with('H').then(size);
        let mut body = vec![0; all + 2];
        from.read_exact(&mut body).await?;
        body.truncate(all);
        Ok(Self { line, headers, body: Some(body) })
    }

    fn published(subject: &str, body: Vec<u8>) -> Self {
        Self { line: vec!["PUB".to_owned(), subject.to_owned()], headers: None, body: Some(body) }
    }

    async fn write(&self, to: &mut OwnedWriteHalf) -> io::Result<()> {
        let mut bytes = self.line.join(" ").into_bytes();
        if let Some(body) = &self.body {
            let headers = self.headers.map_or_else(String::new, |size| format!(" {size}"));
            bytes.extend(format!("{headers} {}\r\n", body.len()).bytes());
            bytes.extend(body);
        }
        bytes.extend(b"\r\n");
        to.write_all(&bytes).await
    }

    /// What a consumer of this stream delivered: where to answer.
    fn delivered_by(&self, stream: &str) -> Option<&str> {
        // Verb, subject, number of the subscription, where to answer.
        self.line.get(3).map(String::as_str).filter(|reply| reply.starts_with(&format!("$JS.ACK.{stream}.")))
    }

    fn json(&self) -> &[u8] {
        &self.body.as_deref().unwrap_or_default()[self.headers.unwrap_or(0)..]
    }

    fn set_json(&mut self, json: &impl serde::Serialize) {
        let body = self.body.get_or_insert_default();
        body.truncate(self.headers.unwrap_or(0));
        body.extend(serde_json::to_vec(json).unwrap());
    }

    /// Changes a message from the server; returns whether it did.
    fn changed_by(&mut self, change: MessageChange) -> bool {
        match change {
            MessageChange::DeliveriesAreAttempts => self.number_by_delivery(),
            MessageChange::EndlessLease => self.stretch_lease(),
            MessageChange::SameMessageId | MessageChange::AnswersFirst => false,
        }
    }

    /// `<call>.<attempt>.<publication>` is the id of a job's message.
    fn forget_publication(&mut self) -> bool {
        let (Some(size), Some(body)) = (self.headers, &self.body) else { return false };
        let headers = std::str::from_utf8(&body[..size]).unwrap();
        let Some((before, rest)) = headers.split_once("Nats-Msg-Id: ") else { return false };
        let (id, after) = rest.split_once("\r\n").unwrap();
        let Some((attempt, publication)) = id.rsplit_once('.') else { return false };
        let changed = publication != "1";
        let headers = format!("{before}Nats-Msg-Id: {attempt}.1\r\n{after}").into_bytes();
        self.headers = Some(headers.len());
        self.body = Some([&headers, &body[size..]].concat());
        changed
    }

    fn number_by_delivery(&mut self) -> bool {
        // `$JS.ACK.<stream>.<consumer>.<deliveries>.…`
        let deliveries = self.delivered_by("JOBS").and_then(|reply| reply.split('.').nth(4)?.parse().ok());
        let Some(deliveries) = deliveries else { return false };
        let mut job: Job = serde_json::from_slice(self.json()).unwrap();
        job.attempt = deliveries;
        self.set_json(&job);
        true
    }

    /// The answer to a claim says how long the leases of its grants are.
    fn stretch_lease(&mut self) -> bool {
        let Ok(mut reply) = serde_json::from_slice::<Value>(self.json()) else { return false };
        if reply.get("grants").is_none() {
            return false;
        }
        let Some(lease) = reply.get_mut("lease_ms") else { return false };
        *lease = 3_600_000.into();
        self.set_json(&reply);
        true
    }

    fn answers(&self) -> Vec<Self> {
        if let Some(reply) = self.delivered_by("INTAKE") {
            return vec![Self::published(reply, b"+ACK".to_vec())];
        }
        let Some(reply) = self.delivered_by("RESULTS") else { return Vec::new() };
        let batch: ReportBatch = serde_json::from_slice(self.json()).unwrap();
        let ingested =
            batch.reports.iter().map(|report| serde_json::from_str::<GrantRef>(report.get()).unwrap()).collect();
        let message = ControlMessage { ingested, cancelled: Vec::new() };
        let control = Self::published(&subjects::worker(&batch.worker), serde_json::to_vec(&message).unwrap());
        vec![Self::published(reply, b"+ACK".to_vec()), control]
    }
}
