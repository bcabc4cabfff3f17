//! What a gateway has, and how its tenants share it.

use std::{num::NonZeroU32, sync::Arc, time::Duration};

use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter, clock::Clock as _};
use parking_lot::Mutex;
use redial_proto::{Code, Tenant};
use redial_shares::{Share, Shares};
use tokio::time::timeout;

use crate::{config::GatewayConfig, problem::Problem};

/// How long a request waits for a share of its tenant: as long as for the answer of a dispatcher.
const PATIENCE: Duration = Duration::from_secs(20);
/// When to try again what waited for so long.
const AGAIN: Duration = Duration::from_secs(5);

/// Requests at a time that are neither a stream nor a wait: their bodies and answers are in memory, 5 MiB each at most. More wait
/// before anything of them is read.
const REQUESTS: usize = 128;
/// Pages of the console at a time: a page is in memory, some MiB at most, until it was sent. More wait before they are made.
const PAGES: usize = 32;
/// Streams of calls that are read at a time: each has 3 MiB in memory at most, besides a large line.
const UPLOADS: usize = 64;
/// Bodies, lines and answers at a time that have more than [`LARGE_BYTES`].
const LARGE: usize = 8;
/// Larger bodies and answers wait for their share.
pub(crate) const LARGE_BYTES: usize = 1024 * 1024;

/// A wait for so many calls counts as one stream: each call that is waited for costs memory and a part of every look.
const CALLS_OF_STREAM: usize = 50;

/// The tenants share what is counted for all of them, and have what is counted for each.
#[derive(Debug)]
pub(crate) struct Limits {
    rate: DefaultKeyedRateLimiter<Tenant>,
    per_second: u32,
    /// Streams and waiting requests, of each.
    streams: Shares,
    most_streams: usize,
    requests: Shares,
    pages: Shares,
    uploads: Shares,
    large: Shares,
    /// Reads that may take seconds.
    long_reads: Shares,
    /// Reads of lists in which everything matches.
    list_reads: Shares,
    /// What streams read when they are woken.
    stream_reads: Shares,
}

impl Limits {
    pub(crate) fn new(config: &GatewayConfig) -> Self {
        let GatewayConfig { rate, streams, connections, .. } = config;
        let quota = Quota::per_second(NonZeroU32::new(*rate).unwrap_or(NonZeroU32::MIN));
        // Of each kind a tenant has a quarter of the connections to Postgres, so it leaves some to all else that it and others read.
        let reads = || Shares::new((*connections as usize / 2).max(2));
        Self {
            rate: RateLimiter::keyed(quota),
            per_second: *rate,
            streams: Shares::of_each(*streams as usize),
            most_streams: *streams as usize,
            requests: Shares::new(REQUESTS),
            pages: Shares::new(PAGES),
            uploads: Shares::new(UPLOADS),
            large: Shares::new(LARGE),
            long_reads: reads(),
            list_reads: reads(),
            stream_reads: reads(),
        }
    }

    /// Waits until a stream of this tenant may read what it shows next.
    pub(crate) async fn stream_read(&self, tenant: &Tenant) -> Share {
        self.stream_reads.take(tenant.as_str(), 1).await
    }

    /// Waits until an export of this tenant may read its next portion.
    pub(crate) async fn export_read(&self, tenant: &Tenant) -> Share {
        self.long_reads.take(tenant.as_str(), 1).await
    }
}

/// The limits of the tenant of one request, which counts as one of several at a time until it becomes a stream or a wait.
#[derive(Clone, Debug)]
pub(crate) struct RequestLimits {
    limits: Arc<Limits>,
    tenant: Tenant,
    /// The share of the request itself, until its answer was sent.
    own: Arc<Mutex<Option<Share>>>,
    /// The same for its body, and for its answer, if they are large.
    large: Arc<Mutex<Option<Share>>>,
}

impl RequestLimits {
    pub(crate) fn new(limits: Arc<Limits>, tenant: Tenant) -> Self {
        Self { limits, tenant, own: Arc::default(), large: Arc::default() }
    }

    /// Counts the request, and waits until few enough others are under way.
    pub(crate) async fn begin(&self) -> Result<(), Problem> {
        self.limits.rate.check_key(&self.tenant).map_err(|until| {
            let wait = until.wait_time_from(governor::clock::DefaultClock::default().now());
            let message = format!("the tenant sent more than {} requests per second", self.limits.per_second);
            Problem::new(Code::RateLimited, message).retry_after(wait.max(Duration::from_secs(1)))
        })?;
        let own = self.share(&self.limits.requests, "requests").await?;
        self.keep(own);
        Ok(())
    }

    /// Waits until a page may be made; it counts until the share is dropped.
    pub(crate) async fn page(&self) -> Result<Share, Problem> {
        self.share(&self.limits.pages, "pages of the console").await
    }

    /// Waits until another stream of calls may be read.
    pub(crate) async fn upload(&self) -> Result<Share, Problem> {
        self.share(&self.limits.uploads, "streams of calls").await
    }

    /// Waits until something large may be held.
    pub(crate) async fn large(&self) -> Result<Share, Problem> {
        self.share(&self.limits.large, "bodies and answers over 1 MiB").await
    }

    /// Waits until a read that may take seconds may begin.
    pub(crate) async fn long_read(&self) -> Result<Share, Problem> {
        self.share(&self.limits.long_reads, "searches and statistics").await
    }

    /// Waits until a list in which everything matches may be read.
    pub(crate) async fn list_read(&self) -> Result<Share, Problem> {
        self.share(&self.limits.list_reads, "lists").await
    }

    async fn share(&self, shares: &Shares, of: &str) -> Result<Share, Problem> {
        timeout(PATIENCE, shares.take(self.tenant.as_str(), 1)).await.map_err(|_| {
            let message = format!(
                "the tenant's share of {of} at a time was in use for {} s; try again, or at another gateway",
                PATIENCE.as_secs()
            );
            Problem::new(Code::Unavailable, message).retry_after(AGAIN)
        })
    }

    /// Takes what has to be kept until the answer was sent; `None` if it became a stream.
    pub(crate) fn take_share(&self) -> Option<Share> {
        self.own.lock().take()
    }

    pub(crate) fn holds_large(&self) -> bool {
        self.large.lock().is_some()
    }

    /// Keeps the share of the request itself: for its body, and for its answer until that was sent.
    pub(crate) fn keep_large(&self, share: Share) {
        *self.large.lock() = Some(share);
    }

    /// Takes what has to be kept until a large answer was sent.
    pub(crate) fn take_large(&self) -> Option<Share> {
        self.large.lock().take()
    }

    /// Keeps the share of a wait until the answer was sent, as for any other request.
    pub(crate) fn keep(&self, share: Share) {
        *self.own.lock() = Some(share);
    }

    /// Counts a stream, until the share is dropped. It is none of those any more that wait for a share of the requests.
    pub(crate) fn stream(&self) -> Result<Share, Problem> {
        self.streams(1)
    }

    /// Counts a request that waits for `calls` calls, until its answer was sent: as one stream for each [`CALLS_OF_STREAM`] of
    /// them, or as all that the tenant may have.
    pub(crate) fn wait_for(&self, calls: usize) -> Result<(), Problem> {
        let streams = calls.div_ceil(CALLS_OF_STREAM);
        self.keep(self.streams(streams.clamp(1, self.limits.most_streams.max(1)))?);
        Ok(())
    }

    fn streams(&self, count: usize) -> Result<Share, Problem> {
        let Limits { streams, most_streams: most, .. } = &*self.limits;
        let share = streams.try_take(self.tenant.as_str(), count).ok_or_else(|| {
            let free = most.saturating_sub(streams.held(self.tenant.as_str()));
            let message = format!(
                "{free} of the {most} streams and waiting requests of the tenant are free; this request needs {count}"
            );
            Problem::new(Code::RateLimited, message)
        })?;
        self.take_share();
        // Whoever waits holds no body any more.
        self.take_large();
        Ok(share)
    }
}

#[cfg(test)]
impl Limits {
    /// Makes the limits of a gateway without servers.
    pub(crate) fn for_tests(streams: u32) -> Arc<Self> {
        let config = GatewayConfig::new(redial_queue::QueueConfig::default(), "");
        Arc::new(Self::new(&GatewayConfig { streams, ..config }))
    }
}

#[cfg(test)]
mod tests {
    use futures_util::{FutureExt as _, future::join_all};

    use super::*;

    fn request(limits: &Arc<Limits>, tenant: &str) -> RequestLimits {
        RequestLimits::new(limits.clone(), tenant.parse().unwrap())
    }

    /// Begins as many requests of a tenant as may be under way.
    fn flood(limits: &Arc<Limits>, tenant: &str) -> Vec<RequestLimits> {
        let mut open = Vec::new();
        loop {
            let next = request(limits, tenant);
            if next.begin().now_or_never().is_none() {
                return open;
            }
            open.push(next);
        }
    }

    #[tokio::test]
    async fn requests_wait_for_their_share_and_streams_and_waits_give_theirs_back() {
        let limits = Limits::for_tests(1);
        let open = flood(&limits, "acme");
        assert_eq!(open.len(), REQUESTS / 2);
        let late = request(&limits, "acme");
        let waits = tokio::spawn(async move { late.begin().await.map(|()| late) });
        tokio::task::yield_now().await;
        assert!(!waits.is_finished(), "as many are under way as the tenant has a share of");
        request(&limits, "globex").begin().now_or_never().unwrap().unwrap();
        let stream = open[0].stream().unwrap();
        let late = waits.await.unwrap().unwrap();
        assert!(open[1].stream().is_err(), "one stream is allowed");
        let kept = late.take_share();
        drop((open, late));
        let held = || (limits.requests.held("acme"), limits.streams.held("acme"));
        assert_eq!(held(), (1, 1), "an answer is being sent, and a stream is open");
        drop((kept, stream));
        assert_eq!(held(), (0, 0));
    }

    #[tokio::test]
    async fn a_wait_counts_until_its_answer_was_sent() {
        let limits = Limits::for_tests(30);
        let request = request(&limits, "acme");
        request.begin().await.unwrap();
        request.wait_for(1_000).unwrap();
        let held = || (limits.requests.held("acme"), limits.streams.held("acme"));
        assert_eq!(held(), (0, 20));
        let sent = request.take_share();
        drop(request);
        assert_eq!(held(), (0, 20), "an answer is being sent");
        drop(sent);
        assert_eq!(held(), (0, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn of_everything_that_tenants_share_one_leaves_others_a_part_and_a_wait_has_an_end() {
        let limits = Limits::for_tests(100);
        let (acme, globex) = (request(&limits, "acme"), request(&limits, "globex"));
        macro_rules! shared {
            ($($kind:ident: $most:expr),*) => {$({
                let mut flood = std::pin::pin!(join_all((0..100).map(|_| acme.$kind())));
                assert!((&mut flood).now_or_never().is_none(), stringify!($kind));
                let of_other = globex.$kind().now_or_never();
                assert!(of_other.is_some_and(|share| share.is_ok()), stringify!($kind));
                let (served, refused): (Vec<_>, Vec<_>) = flood.await.into_iter().partition(Result::is_ok);
                assert_eq!(served.len(), $most, stringify!($kind));
                let refused: Vec<Problem> = refused.into_iter().filter_map(Result::err).collect();
                assert!(refused.iter().all(|problem| problem.status() == 503 && problem.again() == Some(AGAIN)));
            })*};
        }
        shared!(page: PAGES / 2, upload: UPLOADS / 2, large: LARGE / 2, long_read: 2, list_read: 2);
        let _held = (limits.stream_read(&acme.tenant).await, limits.stream_read(&acme.tenant).await);
        assert!(limits.stream_read(&acme.tenant).now_or_never().is_none());
        assert!(limits.stream_read(&globex.tenant).now_or_never().is_some());
    }
}
