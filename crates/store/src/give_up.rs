//! Makes sure that claims which nobody waits for any more are not granted.

use redial_proto::GrantRef;
use uuid::Uuid;

use crate::{Store, StoreError, int};

impl Store {
    /// Marks calls that are still free, so that these claims for them come too late. What is running is left alone.
    pub async fn give_up(&self, claims: &[GrantRef]) -> Result<(), StoreError> {
        let mut sorted = claims.to_vec();
        sorted.sort_unstable_by_key(|claim| claim.call);
        let ids: Vec<Uuid> = sorted.iter().map(|claim| claim.call.0).collect();
        let attempts: Vec<i32> = sorted.iter().map(|claim| int(claim.attempt)).collect();
        let claim_ids: Vec<Uuid> = sorted.iter().map(|claim| claim.claim.0).collect();
        self.run_again(|| async {
            let mut db = self.checkout().await?;
            sqlx::query!(
                "UPDATE calls c SET claim_id = i.claim_id
                 FROM UNNEST($1::uuid[], $2::int[], $3::uuid[]) AS i (id, attempt, claim_id)
                 WHERE c.id = ANY (ARRAY[i.id]) AND c.state = 'ready' AND c.attempt = i.attempt - 1",
                &ids,
                &attempts,
                &claim_ids,
            )
            .execute(&mut *db)
            .await?;
            db.done(());
            Ok(())
        })
        .await
    }
}
