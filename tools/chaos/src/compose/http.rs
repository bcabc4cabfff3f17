//! A client of the gateway, which repeats a request until it is answered. It speaks only as much HTTP as it needs.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::Context as _;
use redial_proto::CallId;
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    sync::watch,
};

use crate::load::PlannedCall;

/// A request without an answer after this time has an unknown outcome.
const ANSWER: Duration = Duration::from_secs(3);
/// The pause before a request is repeated.
const PAUSE: Duration = Duration::from_millis(100);

/// Submits calls, in the background.
pub(super) struct Gateway {
    shared: Arc<Shared>,
    done: watch::Receiver<bool>,
}

struct Shared {
    port: u16,
    token: String,
    acknowledged: Mutex<Vec<(CallId, Option<String>)>>,
    surprises: Mutex<Vec<String>>,
    asked_again: AtomicU64,
    skip_pauses: AtomicBool,
}

/// What an answer means.
#[derive(Debug, PartialEq)]
enum Answer {
    Accepted(CallId),
    /// A server is down, or the outcome is unknown: the same is asked again.
    Again,
    Wrong(String),
}

impl Gateway {
    /// Begins to submit calls, spread over a time.
    pub(super) fn start(port: u16, token: String, calls: Vec<PlannedCall>, over: Duration) -> Self {
        let shared = Arc::new(Shared {
            port,
            token,
            acknowledged: Mutex::default(),
            surprises: Mutex::default(),
            asked_again: AtomicU64::new(0),
            skip_pauses: AtomicBool::new(false),
        });
        let (sender, done) = watch::channel(false);
        let submitting = Arc::clone(&shared);
        tokio::spawn(async move {
            submitting.submit_all(&calls, over).await;
            sender.send_replace(true);
        });
        Self { shared, done }
    }

    /// Submits the rest without pauses.
    pub(super) fn skip_pauses(&self) {
        self.shared.skip_pauses.store(true, Ordering::Relaxed);
    }

    /// Waits until everything was answered.
    pub(super) async fn done(&self) {
        let mut done = self.done.clone();
        let _ended = done.wait_for(|done| *done).await;
    }

    pub(super) fn acknowledged(&self) -> Vec<(CallId, Option<String>)> {
        self.shared.acknowledged.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn surprises(&self) -> Vec<String> {
        self.shared.surprises.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn asked_again(&self) -> u64 {
        self.shared.asked_again.load(Ordering::Relaxed)
    }
}

impl Shared {
    async fn submit_all(&self, calls: &[PlannedCall], over: Duration) {
        let (began, all) = (Instant::now(), u32::try_from(calls.len()).unwrap_or(u32::MAX).max(1));
        for (n, call) in (0..).zip(calls) {
            while began.elapsed() < over / all * n && !self.skip_pauses.load(Ordering::Relaxed) {
                tokio::time::sleep(PAUSE).await;
            }
            self.submit(call).await;
        }
    }

    async fn submit(&self, call: &PlannedCall) {
        loop {
            let answer = tokio::time::timeout(ANSWER, self.ask(call)).await;
            match answer.unwrap_or(Ok(Answer::Again)).unwrap_or(Answer::Again) {
                Answer::Accepted(id) => {
                    let mut acknowledged = self.acknowledged.lock().unwrap_or_else(PoisonError::into_inner);
                    return acknowledged.push((id, call.submission.key.clone()));
                }
                Answer::Wrong(found) => {
                    return self.surprises.lock().unwrap_or_else(PoisonError::into_inner).push(found);
                }
                Answer::Again => {
                    self.asked_again.fetch_add(1, Ordering::Relaxed);
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }

    async fn ask(&self, call: &PlannedCall) -> anyhow::Result<Answer> {
        let body = serde_json::to_string(&call.submission)?;
        let (port, token, length) = (self.port, &self.token, body.len());
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await?;
        let request = format!(
            "POST /v1/calls HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n\
             Content-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        read(&answer)
    }
}

/// An answer that is cut off is an error.
fn read(answer: &str) -> anyhow::Result<Answer> {
    let (head, body) = answer.split_once("\r\n\r\n").context("the answer has no end of its head")?;
    let status = head.split(' ').nth(1).context("the answer has no status")?;
    let lengths = head.lines().filter_map(|line| line.split_once(": "));
    let mut lengths = lengths.filter(|(name, _)| name.eq_ignore_ascii_case("content-length")).map(|(_, value)| value);
    let length = lengths.next();
    anyhow::ensure!(length.is_none_or(|length| length == body.len().to_string()), "the answer is cut off");
    Ok(match status {
        "200" | "202" => {
            let view: Value = serde_json::from_str(body)?;
            let id = view["id"].as_str().or(view["call"].as_str()).context("the answer names no call")?;
            Answer::Accepted(id.parse().map_err(|_| anyhow::anyhow!("{id:?} is no call"))?)
        }
        "500" | "502" | "503" | "504" | "429" => Answer::Again,
        _ => Answer::Wrong(format!("the gateway answered {status}: {body}")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_answer_counts() {
        let id = "01a20ecd-6cb6-703a-be3b-999e54ce2b1a";
        let body = format!("{{\"id\":\"{id}\"}}");
        let answer = |status, length| format!("HTTP/1.1 {status} X\r\ncontent-length: {length}\r\n\r\n{body}");
        assert_eq!(read(&answer(202, body.len())).unwrap(), Answer::Accepted(id.parse().unwrap()));
        assert!(read(&answer(202, body.len() + 1)).is_err());
        assert!(read("HTTP/1.1 202 Accepted\r\n").is_err());
        assert_eq!(read(&answer(503, body.len())).unwrap(), Answer::Again);
        assert!(matches!(read(&answer(422, body.len())).unwrap(), Answer::Wrong(_)));
    }
}
