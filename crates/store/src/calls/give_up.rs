//! Makes sure that claims are not granted once their worker no longer waits for them.

use redial_proto::{GrantRef, WorkerId};
use uuid::Uuid;

use crate::{StoreError, columns::int, connect::Store};

impl Store {
    /// Marks calls that are still ready, so that these claims for them come too late. Running calls stay as they are, and
    /// calls of tools that the worker does not serve.
    pub async fn give_up(&self, worker: &WorkerId, claims: &[GrantRef]) -> Result<(), StoreError> {
        let mut sorted = claims.to_vec();
        sorted.sort_unstable_by_key(|claim| claim.call);
        let ids: Vec<Uuid> = sorted.iter().map(|claim| claim.call.0).collect();
        let attempts: Vec<i32> = sorted.iter().map(|claim| int(claim.attempt)).collect();
        let claim_ids: Vec<Uuid> = sorted.iter().map(|claim| claim.claim.0).collect();
        self.run_again(|| async {
            let mut db = self.checkout().await?;
            sqlx::query_file!("sql/give_up.sql", &ids, &attempts, &claim_ids, worker.as_str())
                .execute(&mut *db)
                .await?;
            db.done(());
            Ok(())
        })
        .await
    }
}
