//! What one token may do at a time.

use std::{num::NonZeroU32, sync::Arc, time::Duration};

use governor::{DefaultDirectRateLimiter, Quota, RateLimiter, clock::Clock as _};
use parking_lot::{Mutex, MutexGuard};
use redial_proto::Code;
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};

use crate::problem::Problem;

/// The limits of one token, as this gateway counts them.
#[derive(Debug)]
pub(crate) struct Limits {
    rate: DefaultDirectRateLimiter,
    per_second: u32,
    streams: Arc<Semaphore>,
    most_streams: u32,
    long_reads: Arc<Semaphore>,
    large: Arc<Semaphore>,
    requests: Arc<Semaphore>,
    pages: Arc<Semaphore>,
}

/// Pages of the console of one token at a time: a page is in memory, some MiB at most, until it was sent. More wait before they are
/// made.
const PAGES: usize = 16;

/// Requests of one token at a time that are neither a stream nor a wait: their bodies and answers are in memory, 5 MiB each at
/// most. More wait before anything of them is read.
const REQUESTS: usize = 64;

/// Bodies and answers of one token at a time that have more than [`LARGE_BYTES`].
const LARGE_OF_TOKEN: usize = 2;
/// The same of all tokens together.
pub(crate) const LARGE_OF_ALL: usize = 6;
/// Larger bodies and answers wait for their turn.
pub(crate) const LARGE_BYTES: usize = 1024 * 1024;

/// A wait for so many calls counts as one stream: each call that is waited for costs memory and a part of every look.
const CALLS_OF_STREAM: usize = 50;

/// Reads of one token at a time that may take seconds.
const LONG_READS: usize = 2;

impl Limits {
    /// So many requests per second, and so many streams and waiting requests at a time.
    pub(crate) fn new(per_second: u32, streams: u32) -> Self {
        let quota = Quota::per_second(NonZeroU32::new(per_second).unwrap_or(NonZeroU32::MIN));
        Self {
            rate: RateLimiter::direct(quota),
            per_second,
            streams: Arc::new(Semaphore::new(streams as usize)),
            most_streams: streams,
            long_reads: Arc::new(Semaphore::new(LONG_READS)),
            large: Arc::new(Semaphore::new(LARGE_OF_TOKEN)),
            requests: Arc::new(Semaphore::new(REQUESTS)),
            pages: Arc::new(Semaphore::new(PAGES)),
        }
    }

    fn request(&self) -> Result<(), Problem> {
        self.rate.check().map_err(|until| {
            let wait = until.wait_time_from(governor::clock::DefaultClock::default().now());
            let message = format!("the token sent more than {} requests per second", self.per_second);
            Problem::new(Code::RateLimited, message).retry_after(wait.max(Duration::from_secs(1)))
        })
    }

    /// Whether nothing of the token is under way.
    pub(crate) fn are_idle(&self) -> bool {
        self.streams.available_permits() == self.most_streams as usize
            && self.requests.available_permits() == REQUESTS
            && self.pages.available_permits() == PAGES
    }
}

/// The limits of the token of one request, which counts as one of several at a time until it becomes a stream or a wait.
#[derive(Clone, Debug)]
pub(crate) struct RequestLimits {
    token: Arc<Limits>,
    turn: Arc<Mutex<Option<OwnedSemaphorePermit>>>,
    large: Arc<Mutex<Option<LargeTurn>>>,
}

/// The right to hold a large body, and a large answer.
#[derive(Debug)]
pub(crate) struct LargeTurn {
    _own: OwnedSemaphorePermit,
    _all: OwnedSemaphorePermit,
}

impl RequestLimits {
    pub(crate) fn new(token: Arc<Limits>) -> Self {
        Self { token, turn: Arc::default(), large: Arc::default() }
    }

    /// Counts the request, and waits until few enough others are under way.
    pub(crate) async fn begin(&self) -> Result<(), Problem> {
        self.token.request()?;
        *self.turn() = self.token.requests.clone().acquire_owned().await.ok();
        Ok(())
    }

    /// Waits until a page may be made; it counts until the permit is dropped.
    pub(crate) async fn page(&self) -> Result<OwnedSemaphorePermit, AcquireError> {
        self.token.pages.clone().acquire_owned().await
    }

    /// What has to be kept until the answer was sent. `None`: it became a stream.
    pub(crate) fn take_turn(&self) -> Option<OwnedSemaphorePermit> {
        self.turn().take()
    }

    /// Waits for a turn to hold what is large.
    pub(crate) async fn large(&self, of_all: &Arc<Semaphore>) -> Result<LargeTurn, AcquireError> {
        let own = self.token.large.clone().acquire_owned().await?;
        Ok(LargeTurn { _own: own, _all: of_all.clone().acquire_owned().await? })
    }

    /// Whether the request itself has such a turn.
    pub(crate) fn holds_large(&self) -> bool {
        self.large_turn().is_some()
    }

    /// The turn of the request itself: for its body, and for its answer until that was sent.
    pub(crate) fn keep_large(&self, turn: LargeTurn) {
        *self.large_turn() = Some(turn);
    }

    /// What has to be kept until a large answer was sent.
    pub(crate) fn take_large(&self) -> Option<LargeTurn> {
        self.large_turn().take()
    }

    fn large_turn(&self) -> MutexGuard<'_, Option<LargeTurn>> {
        self.large.lock()
    }

    /// Keeps the permit of a wait until the answer was sent, as its turn is kept for any other request.
    pub(crate) fn keep(&self, permit: OwnedSemaphorePermit) {
        *self.turn() = Some(permit);
    }

    /// Waits for a turn to read for long.
    pub(crate) async fn long_read(&self) -> Result<OwnedSemaphorePermit, AcquireError> {
        self.token.long_reads.clone().acquire_owned().await
    }

    /// Counts a stream, until the permit is dropped. It is none of those any more that wait for a turn.
    pub(crate) fn stream(&self) -> Result<OwnedSemaphorePermit, Problem> {
        self.streams(1)
    }

    /// Counts a request that waits for `calls` calls, until its answer was sent: as one stream for each [`CALLS_OF_STREAM`] of
    /// them, or as all that the token may have.
    pub(crate) fn wait_for(&self, calls: usize) -> Result<(), Problem> {
        let streams = u32::try_from(calls.div_ceil(CALLS_OF_STREAM)).unwrap_or(u32::MAX);
        self.keep(self.streams(streams.clamp(1, self.token.most_streams.max(1)))?);
        Ok(())
    }

    fn streams(&self, count: u32) -> Result<OwnedSemaphorePermit, Problem> {
        let permit = self.token.streams.clone().try_acquire_many_owned(count).map_err(|_| {
            let (most, free) = (self.token.most_streams, self.token.streams.available_permits());
            let message = format!(
                "{free} of the {most} streams and waiting requests of the token are free; this request needs {count}"
            );
            Problem::new(Code::RateLimited, message)
        })?;
        self.take_turn();
        // Whoever waits holds no body any more.
        self.take_large();
        Ok(permit)
    }

    fn turn(&self) -> MutexGuard<'_, Option<OwnedSemaphorePermit>> {
        self.turn.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn requests_wait_for_a_turn_and_streams_and_waits_give_theirs_back() {
        let token = Arc::new(Limits::new(1_000, 1));
        let mut open = Vec::new();
        for _ in 0..REQUESTS {
            let request = RequestLimits::new(token.clone());
            request.begin().await.unwrap();
            open.push(request);
        }
        let late = RequestLimits::new(token.clone());
        let waits = tokio::spawn(async move { late.begin().await.map(|()| late) });
        tokio::task::yield_now().await;
        assert!(!waits.is_finished(), "{REQUESTS} are under way");
        let stream = open[0].stream().unwrap();
        let late = waits.await.unwrap().unwrap();
        assert!(open[1].stream().is_err(), "one stream is allowed");
        let kept = late.take_turn();
        drop((open, late));
        assert!(!token.are_idle(), "an answer is being sent");
        drop(kept);
        assert!(!token.are_idle(), "a stream is open");
        drop(stream);
        assert!(token.are_idle());
    }

    #[tokio::test]
    async fn a_wait_counts_until_its_answer_was_sent() {
        let token = Arc::new(Limits::new(1_000, 30));
        let request = RequestLimits::new(token.clone());
        request.begin().await.unwrap();
        request.wait_for(1_000).unwrap();
        assert_eq!((token.requests.available_permits(), token.streams.available_permits()), (REQUESTS, 10));
        let sent = request.take_turn();
        drop(request);
        assert_eq!(token.streams.available_permits(), 10, "an answer is being sent");
        drop(sent);
        assert!(token.are_idle());
    }
}
