//! How many servers of a cluster keep each stream. The consumers follow their stream: they name no number of their own.

use std::sync::atomic::Ordering;

use serde_json::Value;

use super::{StreamConfig, body};
use crate::{Queue, QueueError};

impl Queue {
    /// Sets how many servers keep each stream from the next check on: existing ones are updated, and those that are
    /// missing created so.
    pub fn set_replicas(&self, replicas: u32) {
        self.inner.replicas.store(replicas, Ordering::Relaxed);
    }

    /// True if the server is a member of a cluster: only there a stream can have replicas.
    pub fn is_in_cluster(&self) -> bool {
        self.live().client.server_info().cluster.is_some_and(|name| !name.is_empty())
    }

    pub(super) fn replicas_at_creation(&self) -> u32 {
        self.inner.replicas.load(Ordering::Relaxed).max(1)
    }

    /// Gives a stream the replicas of the setting. A failure is no reason to stop: the stream works as it is, and the next
    /// check tries again.
    pub(super) async fn replicate(&self, found: &StreamConfig) {
        let (wanted, refused) = (self.inner.replicas.load(Ordering::Relaxed), &self.inner.replicas_refused);
        if wanted == 0 || wanted == found.num_replicas {
            return;
        }
        let (stream, was) = (&found.name, found.num_replicas);
        match self.update_replicas(found, wanted).await {
            Ok(()) => {
                refused.store(false, Ordering::Relaxed);
                tracing::info!(stream, was, replicas = wanted, "Changed the replicas of a stream");
            }
            Err(error) if !refused.swap(true, Ordering::Relaxed) => {
                tracing::warn!(%error, stream, replicas = was, wanted, "Failed to change the replicas of a stream; trying again");
            }
            Err(error) => tracing::debug!(%error, stream, wanted, "Failed to change the replicas of a stream again"),
        }
    }

    async fn update_replicas(&self, found: &StreamConfig, replicas: u32) -> Result<(), QueueError> {
        let updated = StreamConfig { num_replicas: replicas, ..found.clone() };
        let _updated: Value = self.api(&format!("STREAM.UPDATE.{}", found.name), body(&updated)?).await?;
        Ok(())
    }
}
