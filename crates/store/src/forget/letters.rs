//! Counts and deletes dead letters of a scope. No index leads to them: there are few, and they are kept for a month at most,
//! so all of them are looked at, 8 MiB at a time.

use std::collections::{BTreeMap, HashSet};

use redial_proto::ForgetCounts;
use sqlx::PgConnection;
use uuid::Uuid;

use super::tombstone::{Phase, Scope, Tombstone};
use crate::{
    Time,
    dead_letters::{INTAKE, calls_named, is_of},
};

struct RawLetter {
    id: i64,
    source: String,
    tenant: Option<String>,
    payload: Vec<u8>,
}

/// The next dead letters.
struct Letters {
    /// Rejected submissions of the scope; of a tenant also the reports that are known to be of its calls.
    known: Vec<i64>,
    /// The calls that rejected reports name, with their letters.
    reports: BTreeMap<Uuid, Vec<i64>>,
    last: Option<i64>,
}

/// Counts the dead letters of a scope among the next ones; also returns the last that was looked at, `None` at the end.
pub(super) async fn count(db: &mut PgConnection, scope: &Scope, after: i64) -> Result<(u64, Option<i64>), sqlx::Error> {
    let letters = read(&mut *db, scope, after, None).await?;
    let found = of_scope(db, scope, &letters).await?;
    Ok((u64::try_from(found.len()).unwrap_or(u64::MAX), letters.last))
}

/// Deletes the dead letters of a scope among the next ones. In the last phase, those that came while calls were deleted and
/// name one that is not on record any more.
pub(super) async fn erase(db: &mut PgConnection, tombstone: &mut Tombstone) -> Result<(), sqlx::Error> {
    let is_last = tombstone.phase == Phase::LastLetters;
    let since = is_last.then_some(tombstone.begun_at - chrono::TimeDelta::minutes(1));
    let letters = read(&mut *db, &tombstone.scope, tombstone.position().unwrap_or(0), since).await?;
    let Some(last) = letters.last else {
        if is_last {
            // At the very end: whoever asked with one of them could not ask how far it is.
            let tokens = delete_tokens(db, tombstone).await?;
            tombstone.add(&ForgetCounts { tokens, ..ForgetCounts::default() }, None, None);
        }
        tombstone.go_on_with(if is_last { Phase::Done } else { Phase::Tasks });
        return Ok(());
    };
    let ids = if is_last {
        of_no_call(&mut *db, &letters).await?
    } else {
        of_scope(&mut *db, &tombstone.scope, &letters).await?
    };
    let ids: Vec<i64> = ids.into_iter().collect();
    let deleted = sqlx::query!("DELETE FROM dead_letters WHERE id = ANY ($1)", &ids).execute(&mut *db).await?;
    let erased = ForgetCounts { dead_letters: deleted.rows_affected(), ..ForgetCounts::default() };
    tombstone.add(&erased, None, None);
    tombstone.position = Some(last.to_string());
    Ok(())
}

/// Deletes the tokens that a tenant had when its erasure was asked for; none belongs to a conversation. Returns how many.
async fn delete_tokens(db: &mut PgConnection, of: &Tombstone) -> Result<u64, sqlx::Error> {
    let deleted = sqlx::query!(
        "DELETE FROM tokens WHERE tenant = $1 AND created_at <= $2 AND $3",
        of.scope.tenant,
        of.until,
        of.scope.conversation.is_none()
    );
    Ok(deleted.execute(db).await?.rows_affected())
}

async fn read(db: &mut PgConnection, scope: &Scope, after: i64, since: Option<Time>) -> Result<Letters, sqlx::Error> {
    let rows = sqlx::query_file_as!(RawLetter, "sql/forget_letters.sql", after, since).fetch_all(db).await?;
    let last = rows.last().map(|row| row.id);
    let mut letters = Letters { known: Vec::new(), reports: BTreeMap::new(), last };
    for row in rows {
        if row.source != INTAKE {
            if scope.conversation.is_none() && row.tenant.as_ref() == Some(&scope.tenant) {
                letters.known.push(row.id);
            }
            for call in calls_named(&row.payload) {
                letters.reports.entry(call).or_default().push(row.id);
            }
        } else if is_of(&scope.tenant, scope.conversation.as_deref(), row.tenant.as_deref(), &row.payload) {
            letters.known.push(row.id);
        }
    }
    Ok(letters)
}

/// Returns what is known to be of the scope, and the reports of its calls.
async fn of_scope(db: &mut PgConnection, scope: &Scope, letters: &Letters) -> Result<HashSet<i64>, sqlx::Error> {
    let named: Vec<Uuid> = letters.reports.keys().copied().collect();
    let calls = sqlx::query_scalar!(
        "SELECT id FROM calls WHERE id = ANY ($1) AND tenant = $2 AND ($3::text IS NULL OR conversation = $3)",
        &named,
        scope.tenant,
        scope.conversation
    )
    .fetch_all(db)
    .await?;
    let reports = calls.iter().filter_map(|call| letters.reports.get(call)).flatten();
    Ok(letters.known.iter().chain(reports).copied().collect())
}

/// Returns the reports of calls that are not on record.
async fn of_no_call(db: &mut PgConnection, letters: &Letters) -> Result<HashSet<i64>, sqlx::Error> {
    let named: Vec<Uuid> = letters.reports.keys().copied().collect();
    let known = sqlx::query_scalar!("SELECT id FROM calls WHERE id = ANY ($1)", &named).fetch_all(db).await?;
    let known: HashSet<Uuid> = known.into_iter().collect();
    let gone = letters.reports.iter().filter(|(call, _)| !known.contains(call));
    Ok(gone.flat_map(|(_, letters)| letters).copied().collect())
}
