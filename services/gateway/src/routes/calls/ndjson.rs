//! Takes a stream of any number of calls: a line each. Nothing is held but what is being submitted: a client that does not read
//! the answers is not read from either.

use std::{io, time::Duration};

use axum::{
    body::{Body, BodyDataStream},
    extract::Request,
    http::header,
    response::{IntoResponse, Response},
};
use bytes::{Bytes, BytesMut};
use futures_util::{Stream, StreamExt as _, stream};
use redial_proto::{
    ApiError, Caller, Code, SubmitBatch, SubmitBatchReply, SubmitResult, limits,
    subjects::{self, TRACEPARENT, Verb},
};
use redial_queue::{Origin, QueueError};
use redial_shares::Share;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::{Instant, timeout_at};

use crate::{
    extract::{check_depth, text},
    gateway::{Gateway, Shared},
    identity::Identity,
    limits::LARGE_BYTES,
    pace::{self, LeastRate},
    problem::Problem,
};

pub(super) const MEDIA: &str = "application/x-ndjson";
/// Lines of one request to the dispatchers.
const LINES: usize = 500;
/// Bytes of one request to the dispatchers, but for its last line.
const BYTES: usize = 256 * 1024;
/// Bytes of a line that is submitted.
const LINE: usize = limits::MAX_PAYLOAD + 512 * 1024;
/// Requests to the dispatchers at a time.
const AT_ONCE: usize = 8;
/// Whoever sends nothing for so long is cut off.
const IDLE: Duration = Duration::from_mins(1);
const ANSWER: Duration = Duration::from_secs(20);
/// How often a request is sent to the dispatchers whose lines all have keys.
const TRIES: u32 = 5;
/// The wait before the first repetition; it doubles.
const AGAIN: Duration = Duration::from_millis(250);

pub(super) async fn submit(gateway: Shared, who: &Identity, request: Request) -> Result<Response, Problem> {
    let shares = (who.limits.stream()?, who.limits.upload().await?);
    let caller = who.caller(Verb::CallSubmit)?;
    let (who, traceparent) = (who.clone(), text(request.headers(), TRACEPARENT).map(str::to_owned));
    let lines = Lines::of(request.into_body().into_data_stream(), Some((gateway.clone(), who)));
    let submitted = batches(lines)
        .map(move |batch| {
            let (gateway, caller, traceparent) = (gateway.clone(), caller.clone(), traceparent.clone());
            async move { batch.submit(&gateway, &caller, traceparent.as_deref()).await }
        })
        .buffered(AT_ONCE)
        .map(move |answers| {
            // It counts for as long as the stream is there.
            let _ = &shares;
            answers
        });
    Ok(([(header::CONTENT_TYPE, MEDIA)], Body::from_stream(submitted)).into_response())
}

struct Lines {
    body: BodyDataStream,
    buffer: BytesMut,
    /// Bytes of the line that is too long, so far.
    skipped: usize,
    /// Who sends them. Large lines of nobody, as in tests, wait for no share.
    sender: Option<(Shared, Identity)>,
    /// While a line is large.
    large: Option<Large>,
}

/// A large line: nothing more of it is read before it has its share, so that few are in memory at a time.
struct Large {
    _share: Share,
    /// At which the line has to come. Others wait for the share.
    rate: LeastRate,
}

struct Broken(ApiError);

impl Lines {
    fn of(body: BodyDataStream, sender: Option<(Shared, Identity)>) -> Self {
        Self { body, buffer: BytesMut::new(), skipped: 0, sender, large: None }
    }

    /// Returns the next line, or its error; `None` at the end of the body. Of a line that is too long nothing is kept.
    async fn next(&mut self) -> Result<Option<Result<Bytes, ApiError>>, Broken> {
        let mut looked = 0;
        loop {
            if let Some(end) = self.buffer[looked..].iter().position(|byte| *byte == b'\n') {
                let line = self.buffer.split_to(looked + end + 1).freeze();
                if line.len() > LARGE_BYTES {
                    // What follows would keep the memory of the line.
                    self.buffer = BytesMut::from(&self.buffer[..]);
                }
                return Ok(Some(self.ended(line)));
            }
            looked = self.buffer.len();
            if looked > LINE || self.skipped > 0 {
                self.skipped += looked;
                self.buffer = BytesMut::new();
                self.large = None;
                looked = 0;
            }
            let until = self.share_until(looked).await?;
            match timeout_at(until, self.body.next()).await {
                Ok(Some(Ok(piece))) => {
                    self.buffer.extend_from_slice(&piece);
                    if let Some(large) = &mut self.large {
                        large.rate.add(piece.len());
                    }
                }
                Ok(Some(Err(error))) => {
                    let message =
                        format!("the body did not arrive whole: {error}; the lines after this one were not read");
                    return Err(Broken(ApiError::new(Code::InvalidMessage, message)));
                }
                Ok(None) if self.buffer.is_empty() && self.skipped == 0 => return Ok(None),
                Ok(None) => {
                    let line = std::mem::take(&mut self.buffer).freeze();
                    return Ok(Some(self.ended(line)));
                }
                Err(_) if self.large.as_mut().is_some_and(|large| large.rate.holds()) => {}
                Err(_) => {
                    let what = match &self.large {
                        Some(_) => format!("less than {} of a line came", pace::IN_WORDS),
                        None => format!("nothing arrived for {} s", IDLE.as_secs()),
                    };
                    let message = format!("{what}; the lines after this one were not read");
                    return Err(Broken(ApiError::new(Code::InvalidMessage, message)));
                }
            }
        }
    }

    /// Waits for the share of a line of which so many bytes have arrived; returns when to look at how many more have.
    async fn share_until(&mut self, bytes: usize) -> Result<Instant, Broken> {
        if let (true, None, Some((gateway, who))) = (bytes > LARGE_BYTES, &self.large, &self.sender) {
            let share = gateway.large(who).await.map_err(|problem| Broken(problem.error))?;
            self.large = Some(Large { _share: share, rate: LeastRate::begin() });
        }
        Ok(self.large.as_ref().map_or_else(|| Instant::now() + IDLE, |large| large.rate.until()))
    }

    /// Returns a line, of which this is the rest.
    fn ended(&mut self, rest: Bytes) -> Result<Bytes, ApiError> {
        let bytes = std::mem::take(&mut self.skipped) + rest.trim_ascii_end().len();
        if bytes <= LINE {
            return Ok(rest);
        }
        self.large = None;
        Err(ApiError::new(Code::TooLarge, format!("the line has {bytes} bytes; allowed: {LINE}")))
    }

    /// Returns true if the next line has arrived whole.
    fn has_line(&self) -> bool {
        self.buffer.contains(&b'\n')
    }
}

struct Batch {
    /// A submission, or why the line is none.
    lines: Vec<Result<Box<RawValue>, ApiError>>,
    /// Bytes of the lines that are submitted.
    bytes: usize,
    /// Whether all of them have keys, so that they may be sent again.
    keyed: bool,
    /// Until they are submitted, if a line is large.
    large: Option<Large>,
}

/// Makes a batch of what has arrived, so that a slow sender waits for nothing.
fn batches(lines: Lines) -> impl Stream<Item = Batch> + Send {
    stream::unfold(Some(lines), |lines| async move {
        let mut lines = lines?;
        let mut batch = Batch::new();
        loop {
            match lines.next().await {
                Ok(None) => return (!batch.lines.is_empty()).then_some((batch, None)),
                Ok(Some(Ok(line))) => {
                    batch.add(line.trim_ascii());
                    batch.large = lines.large.take();
                }
                Ok(Some(Err(error))) => batch.lines.push(Err(error)),
                Err(Broken(error)) => {
                    batch.lines.push(Err(error));
                    return Some((batch, None));
                }
            }
            let is_full = batch.lines.len() >= LINES || batch.bytes >= BYTES;
            if is_full || (!lines.has_line() && !batch.lines.is_empty()) {
                return Some((batch, Some(lines)));
            }
        }
    })
}

impl Batch {
    const fn new() -> Self {
        Self { lines: Vec::new(), bytes: 0, keyed: true, large: None }
    }

    /// Adds a line; empty ones are no calls.
    fn add(&mut self, line: &[u8]) {
        #[derive(Deserialize)]
        struct Keyed {
            key: Option<serde::de::IgnoredAny>,
        }
        if line.is_empty() {
            return;
        }
        let read = check_depth(line).map_err(|problem| problem.error).and_then(|()| {
            serde_json::from_slice::<Box<RawValue>>(line)
                .map_err(|error| ApiError::new(Code::InvalidMessage, format!("the line cannot be read: {error}")))
        });
        // A line that cannot be read is not sent.
        self.keyed &= read.is_err() || serde_json::from_slice::<Keyed>(line).is_ok_and(|keyed| keyed.key.is_some());
        self.bytes += line.len();
        self.lines.push(read);
    }

    /// Returns the lines of the answer; an error if it has to break off.
    async fn submit(self, gateway: &Gateway, caller: &Caller, traceparent: Option<&str>) -> io::Result<Bytes> {
        gateway.stats.lines.inc_by(self.lines.len() as u64);
        let calls: Vec<_> = self.lines.iter().filter_map(|line| line.as_ref().ok().cloned()).collect();
        let sent = if calls.is_empty() {
            Ok(Vec::new())
        } else {
            send(gateway, caller, SubmitBatch { calls }, self.keyed, traceparent).await
        };
        self.answer(sent)
    }

    /// Writes the answer; fails if lines without keys are perhaps on record: told otherwise, a client resends them.
    fn answer(self, sent: Result<Vec<SubmitResult>, QueueError>) -> io::Result<Bytes> {
        let mut results = match sent {
            Ok(results) => Ok(results.into_iter()),
            Err(error) if may_be_written(&error) && !self.keyed => {
                tracing::warn!(%error, lines = self.lines.len(), "Broke off the answer to a stream of calls");
                return Err(io::Error::other(error));
            }
            Err(error) => Err(SubmitResult::rejected(Problem::from(error).error)),
        };
        let missing = || SubmitResult::rejected(ApiError::new(Code::Internal, "a dispatcher left out a result"));
        let mut answer = Vec::with_capacity(self.lines.len() * 160);
        for line in self.lines {
            let result = match (line, &mut results) {
                (Ok(_), Ok(results)) => results.next().unwrap_or_else(missing),
                (Ok(_), Err(rejected)) => rejected.clone(),
                (Err(error), _) => SubmitResult::rejected(error),
            };
            // Writing to memory does not fail.
            let _ = serde_json::to_writer(&mut answer, &result);
            answer.push(b'\n');
        }
        Ok(answer.into())
    }
}

/// Says whether calls may be on record although no result of them arrived.
const fn may_be_written(error: &QueueError) -> bool {
    use QueueError::{Decode, Nats, NoAnswersAllowed, Timeout};
    matches!(error, Timeout { .. } | Nats { .. } | Decode { .. } | NoAnswersAllowed { .. })
}

async fn send(
    gateway: &Gateway,
    caller: &Caller,
    batch: SubmitBatch,
    keyed: bool,
    traceparent: Option<&str>,
) -> Result<Vec<SubmitResult>, QueueError> {
    let subject = subjects::api(caller.door, &caller.tenant, &caller.user, caller.role, Verb::CallSubmit);
    let origin = Origin { traceparent, token: caller.token.as_ref() };
    let ask = || gateway.queue.request_from::<_, SubmitBatchReply>(&subject, &batch, ANSWER, origin);
    let mut wait = AGAIN;
    for _ in 1..if keyed { TRIES } else { 1 } {
        match ask().await {
            Err(error) if error.is_retryable() => tokio::time::sleep(wait).await,
            done => return done.map(|reply| reply.results),
        }
        wait *= 2;
    }
    ask().await.map(|reply| reply.results)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_line_that_is_too_long_costs_the_others_nothing() {
        let (good, long) = (r#"{"tool":"echo","key":"k"}"#, "x".repeat(2 * LINE));
        let text = format!("{good}\n{long}\n{good}\r\n{}\n{good}\n{long}", &long[..=LINE]);
        for size in [64 * 1024, text.len()] {
            let pieces: Vec<_> =
                text.as_bytes().chunks(size).map(|piece| Ok::<_, io::Error>(Bytes::copy_from_slice(piece))).collect();
            let body = Body::from_stream(stream::iter(pieces)).into_data_stream();
            let batches: Vec<Batch> = batches(Lines::of(body, None)).collect().await;
            assert!(batches.iter().all(|batch| batch.keyed));
            let lines = batches.into_iter().flat_map(|batch| batch.lines);
            let lines: Vec<_> = lines.map(|line| line.map(drop).map_err(|error| error.message)).collect();
            let too_long = |bytes: usize| Err(format!("the line has {bytes} bytes; allowed: {LINE}"));
            assert_eq!(lines, [Ok(()), too_long(2 * LINE), Ok(()), too_long(LINE + 1), Ok(()), too_long(2 * LINE)]);
        }
    }

    #[test]
    fn an_answer_breaks_off_at_lines_without_keys_that_may_be_on_record() {
        let keyed: &[u8] = br#"{"tool":"echo","arguments":{},"key":"k"}"#;
        let unkeyed: &[u8] = br#"{"tool":"echo","arguments":{}}"#;
        let answer = |lines: &[&[u8]], error: QueueError| {
            let mut batch = Batch::new();
            for line in lines {
                batch.add(line);
            }
            batch.answer(Err(error)).ok().map(|bytes| String::from_utf8(bytes.to_vec()).unwrap())
        };
        let timeout = || QueueError::Timeout { what: "calls.submit".to_owned(), after: ANSWER };
        let nobody = || QueueError::NoResponders { subject: "calls.submit".to_owned() };
        assert_eq!(answer(&[keyed, unkeyed], timeout()), None);
        for (lines, error) in [([keyed, keyed], timeout()), ([unkeyed, unkeyed], nobody()), ([keyed, b"{"], timeout())]
        {
            let answer = answer(&lines, error).unwrap();
            assert_eq!(answer.matches(r#""status":"rejected""#).count(), 2, "{answer}");
            assert!(answer.contains(r#""code":"unavailable""#), "{answer}");
        }
        let refused = QueueError::Api(ApiError::new(Code::Forbidden, "no"));
        assert!(answer(&[unkeyed], refused).unwrap().contains(r#""code":"forbidden""#));
    }
}
