//! Streams of server-sent events.
//!
//! What is durable has an id that every gateway reproduces from the record: of a task the step and the decision within it, of a
//! call the attempt, of a tenant's feed a time behind which nothing can appear any more. So a stream can be resumed at any
//! gateway, without a gap. What is not durable (a model's text while it is written, where a call stands now) has no id.
//!
//! A stream is pulled: nothing is read for a reader that has not taken what was read before.

mod call;
mod feed;
mod id;
mod live;
mod sse;
mod stream;
mod task;

use redial_proto::Tenant;
use tokio::sync::Semaphore;

pub(crate) use self::{
    call::follow_call,
    feed::{EndedItem, follow_feed, time_id},
    id::After,
    stream::MEDIA,
    task::follow_task,
};
use self::{feed::Feeds, live::LiveTexts};

/// Streams that read a page at the same time. A thousand that are woken together leave connections to requests.
const READS: usize = 4;

/// What the streams of one gateway share.
pub(crate) struct Events {
    reads: Semaphore,
    live: LiveTexts,
    feeds: Feeds,
}

impl Default for Events {
    fn default() -> Self {
        Self { reads: Semaphore::new(READS), live: LiveTexts::default(), feeds: Feeds::default() }
    }
}

impl Events {
    /// Tells the feeds of a tenant of a step of one of its tasks: a [`redial_proto::TaskNotice`].
    pub(crate) fn notice(&self, tenant: &Tenant, notice: &[u8]) {
        self.feeds.notice(tenant, notice);
    }
}
