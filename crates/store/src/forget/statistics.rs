//! Deletes the redrives of a scope, and the webhooks and the statistics of a tenant. Statistics of a conversation stay: they are
//! sums by tool and hour, and name none.

use chrono::TimeDelta;
use sqlx::PgConnection;

use super::{
    progress::Progress,
    tombstone::{Phase, Tombstone},
    webhooks,
};
use crate::{
    Time,
    stats::{Kind, roll_up},
};

/// Time that one step covers.
const SPAN: TimeDelta = TimeDelta::days(10);

/// Deletes the next ten days of a tenant's statistics, newest first: no index leads with the tenant.
pub(super) async fn erase(
    db: &mut PgConnection,
    tombstone: &Tombstone,
    progress: &mut Progress,
) -> Result<(), sqlx::Error> {
    delete_redrives(db, tombstone).await?;
    webhooks::erase(db, tombstone).await?;
    if tombstone.scope.conversation.is_some() {
        progress.go_on_with(Phase::LastLetters);
        return Ok(());
    }
    // A roll-up that read calls before they were deleted has written its sums when this lock is granted.
    roll_up::lock(&mut *db).await?;
    let before = tombstone.after_text.as_deref().and_then(|text| text.parse::<Time>().ok());
    let kinds = Kind::ALL.map(|kind| kind.as_str().to_owned());
    let newest = sqlx::query_scalar!(
        "SELECT max(newest.hour) FROM UNNEST($1::text[]) AS k (kind)
         CROSS JOIN LATERAL (
             SELECT hour FROM stats WHERE kind = k.kind AND ($2::timestamptz IS NULL OR hour < $2)
             ORDER BY hour DESC LIMIT 1) AS newest",
        &kinds,
        before
    )
    .fetch_one(&mut *db)
    .await?;
    let Some(newest) = newest else {
        progress.go_on_with(Phase::LastLetters);
        return Ok(());
    };
    let from = newest - SPAN;
    let deleted = sqlx::query!(
        "DELETE FROM stats WHERE kind = ANY ($1) AND hour > $2 AND hour <= $3 AND tenant = $4",
        &kinds,
        from,
        newest,
        tombstone.scope.tenant
    )
    .execute(&mut *db)
    .await?;
    progress.erased.statistics = deleted.rows_affected();
    progress.after_text = Some((from + TimeDelta::microseconds(1)).to_rfc3339());
    Ok(())
}

/// A redrive that was asked for later stays: what it may run again is newer, too.
async fn delete_redrives(db: &mut PgConnection, tombstone: &Tombstone) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "DELETE FROM redrives
         WHERE tenant = $1 AND created_at <= $2 AND ($3::text IS NULL OR filter ->> 'conversation' = $3)",
        tombstone.scope.tenant,
        tombstone.until,
        tombstone.scope.conversation.as_deref(),
    )
    .execute(db)
    .await
    .map(|_| ())
}
