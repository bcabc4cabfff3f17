//! Deletes the redrives of a scope, and the webhooks and the statistics of a tenant. Statistics of a conversation stay: they are
//! sums by tool and hour, and name none.

use chrono::TimeDelta;
use sqlx::PgConnection;

use super::{
    progress::Progress,
    tombstone::{Phase, Tombstone},
    webhooks,
};
use crate::{Time, stats::roll_up};

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
    let newest = sqlx::query_scalar!(
        "SELECT GREATEST(
            (SELECT hour FROM call_stats WHERE $1::timestamptz IS NULL OR hour < $1 ORDER BY hour DESC LIMIT 1),
            (SELECT hour FROM attempt_stats WHERE $1::timestamptz IS NULL OR hour < $1 ORDER BY hour DESC LIMIT 1),
            (SELECT hour FROM model_stats WHERE $1::timestamptz IS NULL OR hour < $1 ORDER BY hour DESC LIMIT 1),
            (SELECT day FROM model_day_stats WHERE $1::timestamptz IS NULL OR day < $1 ORDER BY day DESC LIMIT 1),
            (SELECT hour FROM pointer_stats WHERE $1::timestamptz IS NULL OR hour < $1 ORDER BY hour DESC LIMIT 1))",
        before
    )
    .fetch_one(&mut *db)
    .await?;
    let Some(newest) = newest else {
        progress.go_on_with(Phase::LastLetters);
        return Ok(());
    };
    let (from, tenant) = (newest - SPAN, tombstone.scope.tenant.as_str());
    let calls =
        sqlx::query!("DELETE FROM call_stats WHERE hour > $1 AND hour <= $2 AND tenant = $3", from, newest, tenant)
            .execute(&mut *db)
            .await?;
    let attempts =
        sqlx::query!("DELETE FROM attempt_stats WHERE hour > $1 AND hour <= $2 AND tenant = $3", from, newest, tenant)
            .execute(&mut *db)
            .await?;
    let models =
        sqlx::query!("DELETE FROM model_stats WHERE hour > $1 AND hour <= $2 AND tenant = $3", from, newest, tenant)
            .execute(&mut *db)
            .await?;
    let days =
        sqlx::query!("DELETE FROM model_day_stats WHERE day > $1 AND day <= $2 AND tenant = $3", from, newest, tenant)
            .execute(&mut *db)
            .await?;
    let places =
        sqlx::query!("DELETE FROM pointer_stats WHERE hour > $1 AND hour <= $2 AND tenant = $3", from, newest, tenant)
            .execute(&mut *db)
            .await?;
    let rows = [&calls, &attempts, &models, &days, &places];
    progress.erased.statistics = rows.iter().map(|done| done.rows_affected()).sum();
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
