//! Deletes calls with what belongs to them.

use redial_proto::ForgetCounts;
use sqlx::PgConnection;
use uuid::Uuid;

use super::{
    look,
    tombstone::{Phase, Tombstone},
};
use crate::columns::unsigned;

/// Looks at the next `limit` calls, and deletes those of the scope. The calls are locked before anything else is read, so that
/// no late report and no dead letter that names one of them appears meanwhile.
pub(super) async fn erase(db: &mut PgConnection, tombstone: &mut Tombstone, limit: u32) -> Result<(), sqlx::Error> {
    let looked = look::calls(&mut *db, tombstone, limit).await?;
    let Some(last) = looked.last else {
        tombstone.go_on_with(Phase::Statistics);
        return Ok(());
    };
    if !looked.open.is_empty() {
        // It cannot be, and must not be deleted or left out.
        tombstone.go_on_with(Phase::Open);
        return Ok(());
    }
    let ids: Vec<Uuid> = sqlx::query_scalar!(
        "SELECT id FROM calls WHERE id = ANY ($1) AND finished_at IS NOT NULL ORDER BY id FOR UPDATE",
        &looked.calls
    )
    .fetch_all(&mut *db)
    .await?;
    let attempts = sqlx::query!("DELETE FROM attempts WHERE call_id = ANY ($1)", &ids).execute(&mut *db).await?;
    let late = sqlx::query!("DELETE FROM late_reports WHERE call_id = ANY ($1)", &ids).execute(&mut *db).await?;
    let gone = sqlx::query_file!("sql/forget_delete_calls.sql", &ids).fetch_one(&mut *db).await?;
    let erased = ForgetCounts {
        calls: unsigned(gone.calls),
        model_turns: unsigned(gone.model_turns),
        attempts: attempts.rows_affected(),
        late_reports: late.rows_affected(),
        keys: unsigned(gone.keys),
        ..ForgetCounts::default()
    };
    tombstone.add(&erased, gone.first, gone.last);
    tombstone.position = Some(last.to_string());
    Ok(())
}
