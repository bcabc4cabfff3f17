//! Bodies that wait to be put together, and the memory for them.

use std::{collections::HashMap, sync::Arc, time::Duration};

use parking_lot::Mutex;
use redial_proto::{ApiError, Code};
use redial_queue::Request;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::fair_queue::FairQueue;

/// Memory for whole bodies at once, in units of [`UNIT`]: 256 MiB.
const UNITS: u32 = 256;
const UNIT: usize = 1024 * 1024;
/// What a body takes for each of its bytes while it is worked on: itself, and what was read from it.
const COPIES: usize = 3;
/// Bodies of one sender that wait for memory at a time: who waits has a place among those who are answered.
const PLACES: usize = 16;

/// A request whose body is in pieces, and where it waits next.
pub(crate) type Waiting = (Request, Arc<FairQueue<Request>>);

/// See the module.
pub(crate) struct Bodies {
    waiting: FairQueue<Waiting>,
    memory: Arc<Semaphore>,
    /// How many wait for memory, by sender.
    places: Mutex<HashMap<String, usize>>,
}

/// A place among those who wait for memory.
struct Place<'a> {
    bodies: &'a Bodies,
    sender: &'a str,
}

impl Default for Bodies {
    fn default() -> Self {
        Self {
            waiting: FairQueue::default(),
            memory: Arc::new(Semaphore::new(UNITS as usize)),
            places: Mutex::default(),
        }
    }
}

impl Bodies {
    /// A request whose body is in pieces waits here, and then where the others of its kind do. Gives it back if too many wait.
    pub(crate) fn add(
        &self,
        sender: &str,
        request: Request,
        next: Arc<FairQueue<Request>>,
    ) -> Result<(), Box<Request>> {
        self.waiting.add(sender, (request, next), 0).map_err(|(request, _)| Box::new(request))
    }

    /// The next of them. `None` once there are no more.
    pub(crate) async fn next(&self) -> Option<Waiting> {
        self.waiting.take(1).await.and_then(|mut one| one.pop())
    }

    /// Takes no more of them; returns those that nobody has begun with.
    pub(crate) async fn close(&self) -> Vec<Waiting> {
        self.waiting.close(Duration::ZERO).await
    }

    /// Waits for the memory to work on a body of so many bytes. A small one needs none, so that nobody waits for it behind large ones.
    /// At most [`PLACES`] of a sender wait.
    pub(crate) async fn memory(&self, sender: &str, bytes: usize) -> Result<Option<OwnedSemaphorePermit>, ApiError> {
        if bytes < UNIT {
            return Ok(None);
        }
        let _place = self.place(sender).ok_or_else(|| {
            let message = "too many large bodies of this sender wait for their turn; try again";
            ApiError::new(Code::Unavailable, message)
        })?;
        let units = u32::try_from(bytes.saturating_mul(COPIES).div_ceil(UNIT)).unwrap_or(UNITS).clamp(1, UNITS);
        // Never closed.
        Ok(self.memory.clone().acquire_many_owned(units).await.ok())
    }

    fn place<'a>(&'a self, sender: &'a str) -> Option<Place<'a>> {
        let mut places = self.places.lock();
        let taken = places.entry(sender.to_owned()).or_default();
        (*taken < PLACES).then(|| {
            *taken += 1;
            Place { bodies: self, sender }
        })
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut places = self.bodies.places.lock();
        if let Some(taken) = places.get_mut(self.sender) {
            *taken -= 1;
            if *taken == 0 {
                places.remove(self.sender);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::{FutureExt as _, future::join_all};

    use super::*;

    #[tokio::test]
    async fn small_bodies_wait_for_nothing_and_few_large_ones_of_a_sender_do() {
        let bodies = Bodies::default();
        let all = bodies.memory("flood", 1 << 30).await.unwrap();
        let waiting = join_all((0..100).map(|_| async { bodies.memory("flood", 16 << 20).await.map(drop) }));
        let mut waiting = std::pin::pin!(waiting);
        assert!((&mut waiting).now_or_never().is_none());
        assert_eq!(bodies.places.lock().get("flood"), Some(&PLACES));
        assert!(matches!(bodies.memory("flood", 1_000).now_or_never(), Some(Ok(None))));
        assert!(bodies.memory("other", 16 << 20).now_or_never().is_none(), "it waits, too");
        drop(all);
        let answered = waiting.await;
        assert_eq!(answered.iter().filter(|one| one.is_ok()).count(), PLACES);
        assert!(bodies.places.lock().is_empty());
    }
}
