//! The key of page tokens.

use crate::{StoreError, connect::Store};

impl Store {
    /// What gateways seal page tokens with; it never changes.
    pub async fn page_key(&self) -> Result<Vec<u8>, StoreError> {
        self.run_again(|| async {
            let mut db = self.checkout().await?;
            let key = sqlx::query_scalar!("SELECT key FROM page_key").fetch_one(&mut *db).await?;
            Ok(db.done(key))
        })
        .await
    }
}
