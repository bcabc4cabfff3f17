//! Deletes the redrives of a scope, and the webhooks and the statistics of a tenant. Statistics of a conversation stay: they are
//! sums by tool and hour, and name none.

use chrono::TimeDelta;
use redial_proto::ForgetCounts;
use sqlx::PgConnection;

use super::tombstone::{Phase, Tombstone};
use crate::{
    Time,
    stats::{Kind, roll_up},
};

/// Time that one step covers.
const SPAN: TimeDelta = TimeDelta::days(10);

/// Deletes the next ten days of a tenant's statistics, newest first: no index leads with the tenant.
pub(super) async fn erase(db: &mut PgConnection, tombstone: &mut Tombstone) -> Result<(), sqlx::Error> {
    delete_redrives(db, tombstone).await?;
    if tombstone.scope.conversation.is_some() {
        tombstone.go_on_with(Phase::LastLetters);
        return Ok(());
    }
    // With what waits for them; their deliveries are calls, which are erased as such.
    let webhooks = sqlx::query_file!("sql/webhooks_erase.sql", tombstone.scope.tenant, tombstone.until);
    webhooks.execute(&mut *db).await?;
    // A roll-up that read calls before they were deleted has written its sums when this lock is granted.
    roll_up::lock(&mut *db).await?;
    let before = tombstone.position::<Time>();
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
        tombstone.go_on_with(Phase::LastLetters);
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
    let erased = ForgetCounts { statistics: deleted.rows_affected(), ..ForgetCounts::default() };
    tombstone.add(&erased, None, None);
    tombstone.position = Some((from + TimeDelta::microseconds(1)).to_rfc3339());
    Ok(())
}

/// Deletes redrives. One that was asked for later stays: what it may run again is newer, too.
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
