//! What the open feeds of a tenant listen to.

use std::collections::HashMap;

use bytes::Bytes;
use parking_lot::{Mutex, MutexGuard};
use redial_proto::{TaskNotice, Tenant};
use redial_store::{Time, audit::EndedPosition};
use tokio::sync::{broadcast, watch};

use super::sse::Page;

/// Events that may wait for the slowest stream; one that is further behind is told that it missed some.
const WAITING: usize = 2_000;

/// What a stream is told.
#[derive(Clone)]
pub(crate) struct Hint {
    pub(crate) text: Bytes,
    pub(crate) id: Option<Time>,
    /// Where what it tells of is in the order of ends.
    pub(crate) position: Option<EndedPosition>,
}

/// What the streams of a tenant listen to.
#[derive(Clone)]
pub(crate) struct Tail {
    pub(crate) hints: broadcast::Sender<Hint>,
    /// What ended before is not read any more; `None` until the record was read.
    pub(crate) certain: watch::Sender<Option<Time>>,
}

/// The tenants with open feeds.
#[derive(Default)]
pub(crate) struct Tails {
    of: Mutex<HashMap<Tenant, Tail>>,
}

impl Tails {
    /// Returns what the streams of this tenant listen to. True if it is new: whoever made it must read for it.
    pub(crate) fn listen(&self, tenant: &Tenant) -> (Tail, broadcast::Receiver<Hint>, bool) {
        let mut tails = self.lock();
        if let Some(tail) = tails.get(tenant) {
            return (tail.clone(), tail.hints.subscribe(), false);
        }
        let tail = Tail { hints: broadcast::Sender::new(WAITING), certain: watch::Sender::new(None) };
        let hints = tail.hints.subscribe();
        tails.insert(tenant.clone(), tail.clone());
        (tail, hints, true)
    }

    /// Forgets a tenant that has no open feed. False if it has.
    pub(crate) fn forget_unused(&self, tenant: &Tenant) -> bool {
        let mut tails = self.lock();
        let is_unused = tails.get(tenant).is_none_or(|tail| tail.hints.receiver_count() == 0);
        if is_unused {
            tails.remove(tenant);
        }
        is_unused
    }

    /// Tells the feeds of a tenant of a step of a task, by its [`TaskNotice`]. Its end is told from the record.
    pub(crate) fn notice(&self, tenant: &Tenant, notice: &[u8]) {
        let Some(tail) = self.lock().get(tenant).cloned() else { return };
        let Ok(notice) = serde_json::from_slice::<TaskNotice>(notice) else { return };
        let mut page = Page::default();
        if !notice.state.is_terminal() && page.event(None, "step", &notice).is_ok() {
            // An error says that no stream listens.
            let _ = tail.hints.send(Hint { text: page.into_bytes(), id: None, position: None });
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Tenant, Tail>> {
        self.of.lock()
    }
}
