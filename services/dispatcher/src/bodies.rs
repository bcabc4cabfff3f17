//! Bodies that wait to be put together, and the memory for them.

use std::{sync::Arc, time::Duration};

use redial_proto::{ApiError, Code};
use redial_queue::Request;
use redial_shares::{FairQueue, Share, Shares};

/// Memory for whole bodies at once, in units of [`UNIT`]: 256 MiB.
const UNITS: usize = 256;
const UNIT: usize = 1024 * 1024;
/// What a body takes for each of its bytes while it is worked on: itself, and what was read from it.
const COPIES: usize = 3;
/// Bodies of one sender that wait for memory at a time: who waits has a share of those who are answered.
const WAITING: usize = 16;
/// Bodies that are put together at once, those that wait for memory included.
pub(crate) const AT_ONCE: usize = 4;

/// A request whose body is in pieces, and where it waits next.
pub(crate) type Waiting = (Request, Arc<FairQueue<Request>>);

pub(crate) struct Bodies {
    waiting: FairQueue<Waiting>,
    at_once: Shares,
    memory: Shares,
}

impl Default for Bodies {
    fn default() -> Self {
        Self { waiting: FairQueue::default(), at_once: Shares::new(AT_ONCE), memory: Shares::new(UNITS) }
    }
}

impl Bodies {
    /// Lets a request in pieces wait here, then where others of its kind do. Gives it back if too many wait.
    pub(crate) fn add(
        &self,
        sender: &str,
        request: Request,
        next: Arc<FairQueue<Request>>,
    ) -> Result<(), Box<Request>> {
        self.waiting.add(sender, (request, next), 0).map_err(|(request, _)| Box::new(request))
    }

    /// Takes the next one; `None` once closed.
    pub(crate) async fn next(&self) -> Option<(Waiting, Share)> {
        self.waiting.take_with(&self.at_once).await
    }

    /// Takes no more of them; returns those not begun with.
    pub(crate) async fn close(&self) -> Vec<Waiting> {
        self.waiting.close(Duration::ZERO).await
    }

    /// Waits for the memory to work on a body of so many bytes, which the tenant of its owner, or the worker identity, shares with
    /// others. A small one needs none, so that nobody waits for it behind large ones. At most [`WAITING`] of a sender wait.
    pub(crate) async fn memory(&self, owner: &str, bytes: usize) -> Result<Option<Share>, ApiError> {
        if bytes < UNIT {
            return Ok(None);
        }
        // The user of a tenant follows the point.
        let sender = owner.split('.').next().unwrap_or(owner);
        if self.memory.waiting(sender) >= WAITING {
            let message = "too many large bodies of this sender wait for their turn; try again";
            return Err(ApiError::new(Code::Unavailable, message));
        }
        let units = bytes.saturating_mul(COPIES).div_ceil(UNIT).min(UNITS);
        Ok(Some(self.memory.take(sender, units).await))
    }
}

#[cfg(test)]
mod tests {
    use futures_util::{FutureExt as _, future::join_all};

    use super::*;

    #[tokio::test]
    async fn small_bodies_wait_for_nothing_and_few_large_ones_of_a_tenant_do() {
        let bodies = Bodies::default();
        let large = async |user: usize| bodies.memory(&format!("user flood.{user}"), 16 << 20).await;
        let held = [large(0).await.unwrap(), large(1).await.unwrap()];
        let mut waiting = std::pin::pin!(join_all((0..100).map(|user| async move { large(user).await.is_ok() })));
        assert!((&mut waiting).now_or_never().is_none());
        assert_eq!(bodies.memory.waiting("user flood"), WAITING);
        assert!(matches!(bodies.memory("user flood.0", 1_000).now_or_never(), Some(Ok(None))));
        let other = bodies.memory("user other.bob", 16 << 20).now_or_never();
        assert!(other.is_some_and(|memory| memory.is_ok()), "another tenant has its share");
        drop(held);
        assert_eq!(waiting.await.into_iter().filter(|is_answered| *is_answered).count(), WAITING);
        assert!(bodies.memory("worker one", usize::MAX).await.is_ok(), "nothing is held any more");
    }
}
