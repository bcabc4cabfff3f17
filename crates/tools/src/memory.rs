//! Memory for large outputs: a bound for all attempts of a worker together.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// An output of more bytes waits for memory.
const SMALL: usize = 1024 * 1024;

/// The right to the memory of one attempt's output; by default there is no bound. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct OutputMemory {
    /// One permit for each large output at a time.
    outputs: Option<Arc<Semaphore>>,
    held: Arc<Mutex<Option<OwnedSemaphorePermit>>>,
}

impl OutputMemory {
    /// Memory of which each large output takes one permit.
    pub fn new(outputs: Arc<Semaphore>) -> Self {
        Self { outputs: Some(outputs), held: Arc::default() }
    }

    /// Waits until an output that has so many bytes so far may grow to the limit. It waits once at most, so that no two outputs wait
    /// for each other.
    pub async fn grown_to(&self, bytes: usize) {
        let Some(outputs) = self.outputs.as_ref().filter(|_| bytes > SMALL && !self.is_held()) else { return };
        // Never closed.
        let permit = outputs.clone().acquire_owned().await.ok();
        *self.held.lock() = permit;
    }

    fn is_held(&self) -> bool {
        self.held.lock().is_some()
    }

    /// What is held now. The memory is free for others once it is dropped.
    pub fn take(&self) -> Option<OwnedSemaphorePermit> {
        self.held.lock().take()
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn large_outputs_wait_for_each_other_and_small_ones_for_nobody() {
        let outputs = Arc::new(Semaphore::new(1));
        let [one, other] = [(); 2].map(|()| OutputMemory::new(outputs.clone()));
        one.grown_to(SMALL + 1).await;
        one.grown_to(2 * SMALL).await;
        other.grown_to(SMALL).await;
        assert!(other.grown_to(SMALL + 1).now_or_never().is_none());
        drop(one.take());
        other.grown_to(SMALL + 1).await;
        OutputMemory::default().grown_to(usize::MAX).await;
    }
}
