//! When the job of a call that nobody claimed is published again.
//!
//! A job can get lost: the dispatcher dies between the commit and the publish, or the stream's store is wiped. It can
//! also just wait for a worker. A copy is harmless to correctness (a claim decides), and bounded: a job that is lost goes
//! back to the backlog, from which only the room in a window leads to the stream, and the stream drops what is older
//! than [`MAX_JOB_AGE`].

use redial_proto::subjects::MAX_JOB_AGE;

use crate::{Time, span::ms};

/// How long a published job may stay unclaimed before the sweeper looks at its call, in ms.
pub const FIRST_CHECK_MS: u64 = 10_000;
/// The longest wait between two checks, in ms.
pub const MAX_CHECK_MS: u64 = 300_000;
/// Returns when a call is checked again whose job was published at `published_at` and likely waits for a worker, as
/// other jobs of its consumer do; `None` if it cannot be on the stream any more.
pub fn still_queued(published_at: Time, now: Time) -> Option<Time> {
    let waited = u64::try_from((now - published_at).num_milliseconds()).unwrap_or(0);
    (u128::from(waited) < MAX_JOB_AGE.as_millis()).then(|| now + ms(waited.clamp(FIRST_CHECK_MS, MAX_CHECK_MS)))
}
