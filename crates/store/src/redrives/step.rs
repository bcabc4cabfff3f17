//! The steps of a redrive.

use std::{collections::HashSet, time::Duration};

use redial_proto::{CallId, RedriveFilter, RedriveId, RedriveState, Tenant};
use redial_records::NewCall;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::{
    StoreError, Time,
    calls::insert,
    columns::{bigint, clean, int, uint, unsigned},
    connect::Store,
};

/// A redrive that a dispatcher took, to carry out the next step.
#[derive(Clone, Debug)]
pub struct RedriveWork {
    pub tenant: Tenant,
    pub redrive: RedriveId,
    /// Which calls; an error says why this version cannot read it.
    pub filter: Result<RedriveFilter, String>,
    /// It only counts.
    pub dry_run: bool,
    /// Calls per second.
    pub rate: u32,
    /// It fails if more calls match.
    pub at_most: Option<u64>,
    /// Calls that match, as far as they are counted.
    pub matched: u64,
    /// Calls that run again because of it.
    pub redriven: u64,
    /// Counting or running.
    pub state: RedriveState,
    /// Which of the states of the filter is walked through.
    pub pass: u32,
    /// The step looks at calls before this one.
    pub position: Option<CallId>,
    pub created_by: String,
    /// When. Only calls that were submitted before count.
    pub created_at: Time,
    taken_by: Uuid,
}

/// How far a redrive is after a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedriveStep {
    pub state: RedriveState,
    /// See [`RedriveWork::pass`].
    pub pass: u32,
    /// See [`RedriveWork::position`].
    pub position: Option<CallId>,
    /// Calls that would run again.
    pub matched: u64,
    /// Calls that may not.
    pub refused: u64,
    /// Why it failed.
    pub error: Option<String>,
    /// When the next step begins.
    pub pause: Duration,
}

/// What became of the calls of a step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// The new calls that are on record.
    pub written: HashSet<CallId>,
    /// Calls that somebody else redrove before.
    pub existing: u64,
    /// Calls that are gone, or are being erased.
    pub gone: u64,
}

impl Store {
    /// Takes the redrive that waits longest for its next step, if one is due, for this long: then another dispatcher may take
    /// it.
    pub async fn take_redrive(&self, lease: Duration) -> Result<Option<RedriveWork>, StoreError> {
        let taken_by = Uuid::new_v4();
        let lease_ms = bigint(u64::try_from(lease.as_millis()).unwrap_or(u64::MAX));
        let row = once_on_connection!(self, |db| sqlx::query_file!("sql/redrive_take.sql", taken_by, lease_ms)
            .fetch_optional(db)
            .await)?;
        row.map(|row| {
            Ok(RedriveWork {
                tenant: Tenant::on_record(&row.tenant),
                redrive: RedriveId(row.id),
                filter: serde_json::from_str(&row.filter).map_err(|error| error.to_string()),
                dry_run: row.dry_run,
                rate: uint(row.rate),
                at_most: row.at_most.map(unsigned),
                matched: unsigned(row.matched),
                redriven: unsigned(row.redriven),
                state: row.state.parse().map_err(StoreError::BadData)?,
                pass: uint(row.pass),
                position: row.position.map(CallId),
                created_by: row.created_by,
                created_at: row.created_at,
                taken_by,
            })
        })
        .transpose()
    }

    /// Writes the new calls of a step, and how far the redrive is then. `None`, and nothing is written, if the redrive ended or
    /// was taken by another step.
    ///
    /// `check_after_ms`: as for [`Store::submit`].
    pub async fn redrive_step(
        &self,
        work: &RedriveWork,
        calls: &[NewCall],
        step: &RedriveStep,
        check_after_ms: u64,
    ) -> Result<Option<Counted>, StoreError> {
        self.clock.check()?;
        self.run(async {
            let mut db = self.begin().await?;
            if !lock(&mut db, work).await? {
                return Ok(None);
            }
            let counted = write(&mut db, calls, check_after_ms).await?;
            let refused = bigint(step.refused + counted.gone);
            sqlx::query_file!(
                "sql/redrive_advance.sql",
                work.tenant.as_str(),
                work.redrive.0,
                work.taken_by,
                int(step.pass),
                step.position.map(|call| call.0),
                step.state.as_str(),
                bigint(step.matched),
                bigint(counted.written.len() as u64),
                bigint(counted.existing),
                refused,
                step.error.as_deref().map(clean),
                bigint(u64::try_from(step.pause.as_millis()).unwrap_or(u64::MAX)),
            )
            .execute(&mut *db)
            .await?;
            db.commit().await?;
            Ok(Some(counted))
        })
        .await
    }
}

/// True if the redrive still waits for this step. Its row is locked until the end of the transaction.
async fn lock(db: &mut PgConnection, work: &RedriveWork) -> Result<bool, sqlx::Error> {
    let row = sqlx::query_scalar!(
        "SELECT id FROM redrives WHERE tenant = $1 AND id = $2 AND taken_by = $3 AND next_at IS NOT NULL FOR UPDATE",
        work.tenant.as_str(),
        work.redrive.0,
        work.taken_by,
    );
    Ok(row.fetch_optional(db).await?.is_some())
}

async fn write(db: &mut PgConnection, calls: &[NewCall], check_after_ms: u64) -> Result<Counted, sqlx::Error> {
    if calls.is_empty() {
        return Ok(Counted::default());
    }
    let rows: Vec<&NewCall> = calls.iter().collect();
    let written = insert(&mut *db, &rows, check_after_ms).await?;
    let met: Vec<Uuid> = calls
        .iter()
        .filter(|call| !written.contains(&call.id.0))
        .filter_map(|call| call.redrive_of.map(|redrive| redrive.call.0))
        .collect();
    let existing = if met.is_empty() {
        0
    } else {
        let existing =
            sqlx::query_scalar!(r#"SELECT count(*) AS "count!" FROM redriven_calls WHERE call_id = ANY ($1)"#, &met);
        existing.fetch_one(&mut *db).await?
    };
    let existing = u64::try_from(existing).unwrap_or(0);
    let gone = (met.len() as u64).saturating_sub(existing);
    Ok(Counted { written: written.into_iter().map(CallId).collect(), existing, gone })
}
