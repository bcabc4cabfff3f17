//! One step of an erasure: a transaction that deletes a bounded number of rows, and writes into the tombstone that it did.

use uuid::Uuid;

use super::{
    begin, calls, letters, statistics, tasks,
    tombstone::{Phase, RawTombstone, Tombstone},
};
use crate::{StoreError, connect::Store};

impl Store {
    /// Deletes what is next of an erasure: of up to `limit` rows of one kind. Returns how far it is then; `None` if it was
    /// given up. Steps of several dispatchers wait for one another, so each row counts once.
    pub async fn erase_step(&self, id: Uuid, limit: u32) -> Result<Option<Tombstone>, StoreError> {
        self.run(async {
            let mut db = begin(self).await?;
            let locked = sqlx::query_file_as!(RawTombstone, "sql/forget_lock.sql", id).fetch_optional(&mut *db).await?;
            let locked = locked.map(Tombstone::try_from).transpose();
            let mut tombstone = locked.map_err(|error| sqlx::Error::InvalidArgument(error.to_string()))?;
            if let Some(tombstone) = tombstone.as_mut().filter(|tombstone| tombstone.phase != Phase::Done) {
                match tombstone.phase {
                    // Whether anything is open is looked at outside of this transaction.
                    Phase::Open | Phase::Done => {}
                    Phase::Letters | Phase::LastLetters => letters::erase(&mut db, tombstone).await?,
                    Phase::Tasks => tasks::erase(&mut db, tombstone, limit).await?,
                    Phase::Calls => calls::erase(&mut db, tombstone, limit).await?,
                    Phase::Statistics => statistics::erase(&mut db, tombstone).await?,
                }
                tombstone.write(&mut db).await?;
            }
            db.commit().await?;
            Ok(tombstone)
        })
        .await
    }
}
