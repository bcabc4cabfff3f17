//! Redrives by filter: what was asked for, and how far each came.
//!
//! One transaction writes new calls and the progress of the redrive that they belong to ([`Store::redrive_step`]), under the
//! guard that the step is still the one that took it. So every call counts once, and a redrive that was cancelled writes none.

mod list;
mod step;

pub use step::{Counted, RedriveStep, RedriveWork};

use redial_proto::{CreateRedrive, RedriveFilter, RedriveId, RedriveState, RedriveView, User, tolerant};
use uuid::Uuid;

use crate::{
    StoreError, TenantStore, Time,
    columns::{bigint, int},
    connect::Store,
};

/// Redrives of a tenant that have not ended, at most.
pub const MAX_OPEN_REDRIVES: u32 = 20;
/// Redrives of a tenant that have ended and are kept.
const KEPT: i64 = 1_000;

/// What became of a request for a redrive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CreatedRedrive {
    /// It is on record, and nobody asked for it before.
    New(RedriveView),
    /// A redrive of this id is on record.
    Existing(RedriveView),
    /// The tenant has [`MAX_OPEN_REDRIVES`] that have not ended.
    TooMany,
}

impl TenantStore<'_> {
    pub async fn create_redrive(&self, user: &User, create: &CreateRedrive) -> Result<CreatedRedrive, StoreError> {
        let filter = serde_json::to_string(&create.filter).map_err(|error| StoreError::BadData(error.to_string()))?;
        let rate = create.rate.unwrap_or(CreateRedrive::DEFAULT_RATE);
        let is_new = self
            .store()
            .run(async {
                let mut transaction = self.store().begin().await?;
                let tenant = self.tenant().as_str();
                // One after the other, so that those that have not ended are counted with all of them.
                sqlx::query!("SELECT pg_advisory_xact_lock(hashtextextended('redrives ' || $1, 0))", tenant)
                    .execute(&mut *transaction)
                    .await?;
                sqlx::query_file!("sql/redrive_trim.sql", tenant, KEPT).execute(&mut *transaction).await?;
                let new = sqlx::query_file!(
                    "sql/redrive_create.sql",
                    tenant,
                    create.redrive.0,
                    filter,
                    create.dry_run,
                    int(rate),
                    user.as_str(),
                    i64::from(MAX_OPEN_REDRIVES),
                    create.at_most.map(bigint),
                );
                let new = new.execute(&mut *transaction).await?;
                transaction.commit().await?;
                Ok(new.rows_affected() > 0)
            })
            .await?;
        Ok(match self.redrive(create.redrive).await? {
            Some(redrive) if is_new => CreatedRedrive::New(redrive),
            Some(redrive) => CreatedRedrive::Existing(redrive),
            None => CreatedRedrive::TooMany,
        })
    }

    /// Ends a redrive, and says whether it had not ended before; `None` if the tenant has none of this id. Nothing runs
    /// again because of it once this has returned.
    pub async fn cancel_redrive(&self, redrive: RedriveId) -> Result<Option<(RedriveView, bool)>, StoreError> {
        let changed = on_connection!(self.store(), |db| {
            let cancelled = sqlx::query!(
                "UPDATE redrives SET state = 'cancelled', finished_at = clock_timestamp(), next_at = NULL
                     WHERE tenant = $1 AND id = $2 AND next_at IS NOT NULL",
                self.tenant().as_str(),
                redrive.0,
            );
            let cancelled = cancelled.execute(&mut *db).await?;
            Ok(cancelled.rows_affected() > 0)
        })?;
        Ok(self.redrive(redrive).await?.map(|view| (view, changed)))
    }
}

impl Store {
    /// Deletes up to `limit` redrives that ended before `cutoff`.
    pub async fn delete_old_redrives(&self, cutoff: Time, limit: u32) -> Result<u64, StoreError> {
        once_on_connection!(self, |db| {
            let done =
                sqlx::query_file!("sql/delete_old_redrives.sql", cutoff, i64::from(limit)).execute(&mut *db).await?;
            Ok(done.rows_affected())
        })
    }
}

pub(crate) struct RawRedrive {
    pub(crate) id: Uuid,
    pub(crate) filter: String,
    pub(crate) dry_run: bool,
    pub(crate) rate: i32,
    pub(crate) state: String,
    pub(crate) matched: i64,
    pub(crate) redriven: i64,
    pub(crate) existing: i64,
    pub(crate) refused: i64,
    pub(crate) error: Option<String>,
    pub(crate) created_by: String,
    pub(crate) created_at: Time,
    pub(crate) finished_at: Option<Time>,
    pub(crate) at_most: Option<i64>,
}

/// Shows a redrive. A filter that this version cannot read is shown as an empty one, with the reason.
impl From<RawRedrive> for RedriveView {
    fn from(raw: RawRedrive) -> Self {
        use crate::columns::{uint, unsigned};
        let (filter, unreadable) = match tolerant::from_str(&raw.filter) {
            Ok(filter) => (filter, None),
            Err(error) => {
                (RedriveFilter::default(), Some(format!("this version of Redial cannot read its filter: {error}")))
            }
        };
        Self {
            redrive: RedriveId(raw.id),
            state: RedriveState::shown(&raw.state),
            filter,
            dry_run: raw.dry_run,
            rate: uint(raw.rate),
            at_most: raw.at_most.map(unsigned),
            matched: unsigned(raw.matched),
            redriven: unsigned(raw.redriven),
            existing: unsigned(raw.existing),
            refused: unsigned(raw.refused),
            error: raw.error.or(unreadable),
            created_by: raw.created_by,
            created_at: raw.created_at,
            finished_at: raw.finished_at,
        }
    }
}
