//! What one token may do at a time.

use std::{num::NonZeroU32, sync::Arc, time::Duration};

use governor::{DefaultDirectRateLimiter, Quota, RateLimiter, clock::Clock as _};
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
}

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
        }
    }

    /// Counts a request.
    pub(crate) fn request(&self) -> Result<(), Problem> {
        self.rate.check().map_err(|until| {
            let wait = until.wait_time_from(governor::clock::DefaultClock::default().now());
            let message = format!("the token sent more than {} requests per second", self.per_second);
            Problem::new(Code::RateLimited, message).retry_after(wait.max(Duration::from_secs(1)))
        })
    }

    /// Waits for a turn to read for long.
    pub(crate) async fn long_read(&self) -> Result<OwnedSemaphorePermit, AcquireError> {
        self.long_reads.clone().acquire_owned().await
    }

    /// Counts a stream or a waiting request, until the permit is dropped.
    pub(crate) fn stream(&self) -> Result<OwnedSemaphorePermit, Problem> {
        self.streams.clone().try_acquire_owned().map_err(|_| {
            let message = format!("the token has {} streams and waiting requests open", self.most_streams);
            Problem::new(Code::RateLimited, message)
        })
    }
}
