//! What the streams of events of a gateway share.

pub(crate) mod live;
pub(crate) mod sse;
pub(crate) mod tails;

use tokio::sync::Semaphore;

use self::{live::LiveTexts, tails::Tails};

/// Streams that read a page at the same time. A thousand that are woken together leave connections to requests.
const READS: usize = 4;

/// See the module.
pub(crate) struct Streams {
    pub(crate) reads: Semaphore,
    pub(crate) live: LiveTexts,
    pub(crate) tails: Tails,
}

impl Default for Streams {
    fn default() -> Self {
        Self { reads: Semaphore::new(READS), live: LiveTexts::default(), tails: Tails::default() }
    }
}
