//! The key of page tokens.

use crate::{StoreError, connect::Store};

impl Store {
    /// Returns what gateways seal page tokens with; it never changes.
    pub async fn page_key(&self) -> Result<Vec<u8>, StoreError> {
        on_connection!(self, |db| sqlx::query_scalar!("SELECT key FROM page_key").fetch_one(db).await)
    }
}
