//! What the streams of one gateway share: each thing is read or heard once, however many streams it is for.

mod ends;
mod texts;

use redial_proto::Tenant;
use tokio::sync::Semaphore;

use self::{ends::Feeds, texts::LiveTexts};
pub(crate) use self::{
    ends::{EndedItem, Hint, LOOK, PAGE, Tail, time_id},
    texts::{Follower, Sent},
};

/// Streams that read a page at the same time. A thousand that are woken together leave connections to requests.
const READS: usize = 4;

/// See the module.
pub(crate) struct FanOut {
    pub(crate) reads: Semaphore,
    pub(crate) live: LiveTexts,
    pub(crate) feeds: Feeds,
}

impl Default for FanOut {
    fn default() -> Self {
        Self { reads: Semaphore::new(READS), live: LiveTexts::default(), feeds: Feeds::default() }
    }
}

impl FanOut {
    /// Tells the feeds of a tenant of a step of one of its tasks: a [`redial_proto::TaskNotice`].
    pub(crate) fn notice(&self, tenant: &Tenant, notice: &[u8]) {
        self.feeds.notice(tenant, notice);
    }
}
