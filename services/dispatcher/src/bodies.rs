//! Bodies that wait to be put together, and the memory for them.

use std::{sync::Arc, time::Duration};

use redial_queue::Request;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::fair_queue::FairQueue;

/// Memory for whole bodies at once, in units of [`UNIT`]: 256 MiB.
const UNITS: u32 = 256;
const UNIT: usize = 1024 * 1024;
/// What a body takes for each of its bytes while it is worked on: itself, and what was read from it.
const COPIES: usize = 3;

/// A request whose body is in pieces, and where it waits next.
pub(crate) type Waiting = (Request, Arc<FairQueue<Request>>);

/// See the module.
pub(crate) struct Bodies {
    waiting: FairQueue<Waiting>,
    memory: Arc<Semaphore>,
}

impl Default for Bodies {
    fn default() -> Self {
        Self { waiting: FairQueue::default(), memory: Arc::new(Semaphore::new(UNITS as usize)) }
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

    /// Waits for the memory to work on a body of so many bytes.
    pub(crate) async fn memory(&self, bytes: usize) -> Option<OwnedSemaphorePermit> {
        let units = u32::try_from(bytes.saturating_mul(COPIES).div_ceil(UNIT)).unwrap_or(UNITS).clamp(1, UNITS);
        self.memory.clone().acquire_many_owned(units).await.ok()
    }
}
