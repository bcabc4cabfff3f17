//! Memory for large outputs: a bound for all attempts of a worker together.

use std::sync::Arc;

use parking_lot::Mutex;
use redial_shares::{Share, Shares};

/// An output of more bytes waits for memory.
const SMALL: usize = 1024 * 1024;

/// The right to the memory of one attempt's output; by default there is no bound. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct OutputMemory {
    /// One for each large output at a time, and whose they are.
    outputs: Option<(Shares, Arc<str>)>,
    held: Arc<Mutex<Option<Share>>>,
}

impl OutputMemory {
    /// Memory for the output of a tenant's call: each large output takes one of those that tenants share.
    pub fn new(outputs: Shares, tenant: &str) -> Self {
        Self { outputs: Some((outputs, tenant.into())), held: Arc::default() }
    }

    /// Waits until an output that has so many bytes so far may grow to the limit. It waits once at most, so that no two outputs wait
    /// for each other.
    pub async fn grown_to(&self, bytes: usize) {
        let outputs = self.outputs.as_ref().filter(|_| bytes > SMALL && !self.is_held());
        let Some((outputs, tenant)) = outputs else { return };
        let share = outputs.take(tenant, 1).await;
        *self.held.lock() = Some(share);
    }

    fn is_held(&self) -> bool {
        self.held.lock().is_some()
    }

    /// What is held now. The memory is free for others once it is dropped.
    pub fn take(&self) -> Option<Share> {
        self.held.lock().take()
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn large_outputs_of_a_tenant_wait_for_each_other_and_small_ones_for_nobody() {
        let outputs = Shares::new(2);
        let [one, other, of_globex] =
            ["acme", "acme", "globex"].map(|tenant| OutputMemory::new(outputs.clone(), tenant));
        one.grown_to(SMALL + 1).await;
        one.grown_to(2 * SMALL).await;
        other.grown_to(SMALL).await;
        assert!(other.grown_to(SMALL + 1).now_or_never().is_none());
        assert!(of_globex.grown_to(SMALL + 1).now_or_never().is_some(), "another tenant has its share");
        drop(one.take());
        other.grown_to(SMALL + 1).await;
        OutputMemory::default().grown_to(usize::MAX).await;
    }
}
