//! How streams on NATS are created: the setting of one dispatcher is that of all.

use crate::{Store, StoreError};

impl Store {
    /// Puts on record how many servers of the NATS cluster keep each stream.
    pub async fn set_stream_replicas(&self, replicas: u32) -> Result<(), StoreError> {
        // Five at most.
        let replicas = i16::try_from(replicas).unwrap_or(i16::MAX);
        let done = on_connection!(self, |db| {
            sqlx::query!(
                "INSERT INTO stream_settings (replicas) VALUES ($1) \
                 ON CONFLICT (only_row) DO UPDATE SET replicas = EXCLUDED.replicas",
                replicas
            )
            .execute(db)
            .await
        });
        done.map(drop)
    }

    /// Returns how many servers of the NATS cluster keep each stream; `None` if no dispatcher ever said so.
    pub async fn stream_replicas(&self) -> Result<Option<u32>, StoreError> {
        let found = on_connection!(self, |db| {
            sqlx::query_scalar!("SELECT replicas FROM stream_settings").fetch_optional(db).await
        })?;
        Ok(found.and_then(|replicas| u32::try_from(replicas).ok()))
    }
}
