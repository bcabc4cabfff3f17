//! One step of an erasure: a transaction that deletes a bounded number of rows, and writes into the tombstone that it did.

use uuid::Uuid;

use super::{
    calls, letters,
    progress::Progress,
    statistics, tasks,
    tombstone::{Phase, RawTombstone, Tombstone, lock},
};
use crate::{StoreError, connect::Store};

impl Store {
    /// Deletes what is next of an erasure: of up to `limit` rows of one kind. Returns how far it is then; `None` if it was
    /// given up. Steps of several dispatchers wait for one another, so each row counts once.
    pub async fn erase_step(&self, id: Uuid, limit: u32) -> Result<Option<Tombstone>, StoreError> {
        self.run(async {
            let mut transaction = self.begin().await?;
            let Some(raw) = lock(&mut transaction, id).await? else {
                transaction.commit().await?;
                return Ok(None);
            };
            let tombstone = read(raw)?;
            if tombstone.phase == Phase::Done {
                transaction.commit().await?;
                return Ok(Some(tombstone));
            }
            let mut progress = Progress::of(&tombstone);
            match tombstone.phase {
                // Whether anything is open is looked at outside of this transaction.
                Phase::Open | Phase::Done => {}
                Phase::Letters | Phase::LastLetters => {
                    letters::erase(&mut transaction, &tombstone, &mut progress).await?;
                }
                Phase::Tasks => tasks::erase(&mut transaction, &tombstone, &mut progress, limit).await?,
                Phase::Calls => calls::erase(&mut transaction, &tombstone, &mut progress, limit).await?,
                Phase::Statistics => statistics::erase(&mut transaction, &tombstone, &mut progress).await?,
            }
            let written = progress.write(&mut transaction, id).await?;
            transaction.commit().await?;
            Ok(Some(read(written)?))
        })
        .await
    }
}

fn read(raw: RawTombstone) -> Result<Tombstone, sqlx::Error> {
    Tombstone::try_from(raw).map_err(|error| sqlx::Error::InvalidArgument(error.to_string()))
}
