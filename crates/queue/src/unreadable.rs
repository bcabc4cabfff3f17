//! Messages of a stream that the client cannot receive: a carriage return in a header ends it, other malformed headers
//! end its connection. nats-server accepts them and delivers them again and again, so they are found without receiving them:
//! the API returns a message as JSON, by its sequence number.

use async_nats::{HeaderName, HeaderValue, StatusCode};
use base64::{Engine as _, prelude::BASE64_STANDARD};
use redial_proto::subjects::DISPATCHERS;
use serde::Deserialize;

use crate::{Queue, QueueError, connect::ANSWER, streams::body};

/// A message that no client of this crate can receive.
pub struct Unreadable {
    /// The subject that it was published on.
    pub subject: String,
    pub payload: Vec<u8>,
    pub stream_sequence: u64,
    stream: &'static str,
}

#[derive(Deserialize)]
struct Found {
    message: Stored,
}

#[derive(Deserialize)]
struct Stored {
    subject: String,
    seq: u64,
    #[serde(default)]
    hdrs: String,
    #[serde(default)]
    data: String,
}

impl Queue {
    /// Returns the messages of a stream for dispatchers that were delivered, not answered, and that cannot be received.
    /// One round trip for each message that was delivered and not answered.
    pub async fn unreadable(&self, stream: &'static str) -> Result<Vec<Unreadable>, QueueError> {
        let progress = self.progress(stream).await?;
        let (mut unreadable, mut next) = (Vec::new(), progress.answered_to + 1);
        for _ in 0..progress.unanswered {
            let request = serde_json::json!({"seq": next, "next_by_subj": ">"});
            let stored = match self.api(&format!("STREAM.MSG.GET.{stream}"), body(&request)?).await {
                Ok(Found { message }) if message.seq <= progress.delivered_to => message,
                Ok(_) | Err(QueueError::Missing { .. }) => break,
                Err(error) => return Err(error),
            };
            next = stored.seq + 1;
            let decode = |text: &str| BASE64_STANDARD.decode(text).map_err(|error| QueueError::nats(stream, &error));
            if !stored.hdrs.is_empty() && !is_readable(&decode(&stored.hdrs)?) {
                let (subject, stream_sequence) = (stored.subject, stored.seq);
                unreadable.push(Unreadable { subject, payload: decode(&stored.data)?, stream_sequence, stream });
            }
        }
        Ok(unreadable)
    }

    /// Discards a message, and waits until the server has done so: it is never delivered again.
    pub async fn discard(&self, message: &Unreadable) -> Result<(), QueueError> {
        let Unreadable { stream, stream_sequence, .. } = message;
        // The server looks only at the sequence number of the stream.
        let subject = format!("$JS.ACK.{stream}.{DISPATCHERS}.1.{stream_sequence}.1.0.0");
        self.send_request(&subject, "+TERM".into(), ANSWER).await.map(|_| ())
    }
}

/// True if the client can parse these headers; it does so in the same way (async-nats 0.51, `connection.rs`).
fn is_readable(headers: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(headers) else { return false };
    let mut lines = text.lines().peekable();
    let Some(status) = lines.next().and_then(|version| version.strip_prefix("NATS/1.0")) else { return false };
    let status = status.trim().split(' ').next().unwrap_or_default().trim();
    if !status.is_empty() && status.parse::<StatusCode>().is_err() {
        return false;
    }
    while let Some(line) = lines.next() {
        if line.is_empty() {
            continue;
        }
        let Some((name, value)) = line.split_once(':') else { return false };
        let mut value = value.trim_start().to_owned();
        while let Some(more) = lines.next_if(|line| line.starts_with(char::is_whitespace)) {
            value.push_str(more);
        }
        if name.parse::<HeaderName>().is_err() || value.trim_end().parse::<HeaderValue>().is_err() {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_readable_if_the_client_can_parse_them() {
        for readable in [
            "NATS/1.0\r\n\r\n",
            "NATS/1.0 404 No Messages\r\n\r\n",
            "NATS/1.0\r\na: b\r\n\r\n",
            "NATS/1.0\r\na:b\r\n c\r\nd:\r\n\r\n",
        ] {
            assert!(is_readable(readable.as_bytes()), "{readable:?}");
        }
        let unreadable: [&[u8]; 8] = [
            b"",
            b"NATS/1.0\r\na: b\rc\r\n\r\n",
            b"NATS/1.0\r\na: b\r\n c\rd\r\n\r\n",
            b"NATS/1.0\r\na b\r\n\r\n",
            b"NATS/1.0\r\nn\xc3\xa4me: a\r\n\r\n",
            b"NATS/1.0\r\na: \xff\r\n\r\n",
            b"NATS/1.0 abc\r\n\r\n",
            b"NATS/2.0\r\na: b\r\n\r\n",
        ];
        for unreadable in unreadable {
            assert!(!is_readable(unreadable), "{:?}", String::from_utf8_lossy(unreadable));
        }
    }
}
