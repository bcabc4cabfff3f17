//! Counts and deletes dead letters of a scope. No index leads to them: there are few, and they are kept for a month at most,
//! so all of them are looked at, 8 MiB at a time.

use std::collections::{BTreeMap, HashSet};

use sqlx::PgConnection;
use uuid::Uuid;

use super::{
    progress::Progress,
    scope::Scope,
    tokens,
    tombstone::{Phase, Tombstone},
};
use crate::{
    StoreError, Time,
    connect::Store,
    dead_letters::{INTAKE, calls_named, is_of},
};

/// Some dead letters, counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CountedLetters {
    /// Those of the scope.
    pub dead_letters: u64,
    /// All up to this number were looked at; `None`: all. It is a multiple of 256, and not the number of any letter that was seen.
    pub up_to: Option<i64>,
}

/// Dead letters are counted in blocks of so many numbers, so that a position tells nobody how many others sent.
const BLOCK: i64 = 256;

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

impl Store {
    /// Counts the dead letters of a scope in the block of numbers behind this one.
    pub async fn count_letters(&self, scope: &Scope, after: i64) -> Result<CountedLetters, StoreError> {
        let mut after = after.clamp(0, i64::MAX - BLOCK);
        let end = end_of_block(after);
        let mut dead_letters = 0;
        loop {
            let (found, last) = on_connection!(self, |db| {
                let letters = read(&mut *db, scope, Some(after), end, None).await?;
                let found = of_scope(&mut *db, scope, &letters).await?;
                Ok((found.len(), letters.last))
            })?;
            dead_letters += u64::try_from(found).unwrap_or(0);
            match last {
                Some(last) => after = last,
                None => break,
            }
        }
        let next = self.next_letter(end).await?;
        // The block of the next one, which begins here or later.
        Ok(CountedLetters { dead_letters, up_to: next.map(|next| end_of_block(next - 1) - BLOCK) })
    }

    async fn next_letter(&self, after: i64) -> Result<Option<i64>, StoreError> {
        on_connection!(self, |db| {
            let next = sqlx::query_scalar!("SELECT id FROM dead_letters WHERE id > $1 ORDER BY id LIMIT 1", after);
            next.fetch_optional(db).await
        })
    }
}

/// The last number of the block that the number behind this one is in.
const fn end_of_block(after: i64) -> i64 {
    (after / BLOCK + 1) * BLOCK
}

/// Deletes the dead letters of a scope among the next ones. In the last phase, those that came while calls were deleted and
/// name one that is not on record any more.
pub(super) async fn erase(
    db: &mut PgConnection,
    tombstone: &Tombstone,
    progress: &mut Progress,
) -> Result<(), sqlx::Error> {
    let is_last = tombstone.phase == Phase::LastLetters;
    let since = is_last.then_some(tombstone.begun_at - chrono::TimeDelta::minutes(1));
    let letters = read(&mut *db, &tombstone.scope, tombstone.after_letter, i64::MAX, since).await?;
    if letters.last.is_none() {
        if is_last {
            // At the very end: whoever asked with one of them could not ask how far it is.
            progress.erased.tokens = tokens::erase(db, tombstone).await?;
        }
        progress.go_on_with(if is_last { Phase::Done } else { Phase::Tasks });
        return Ok(());
    }
    let ids = if is_last {
        of_no_call(&mut *db, &letters).await?
    } else {
        of_scope(&mut *db, &tombstone.scope, &letters).await?
    };
    let ids: Vec<i64> = ids.into_iter().collect();
    let deleted = sqlx::query!("DELETE FROM dead_letters WHERE id = ANY ($1)", &ids).execute(&mut *db).await?;
    progress.erased.dead_letters = deleted.rows_affected();
    progress.after_letter = letters.last;
    Ok(())
}

async fn read(
    db: &mut PgConnection,
    scope: &Scope,
    after: Option<i64>,
    up_to: i64,
    since: Option<Time>,
) -> Result<Letters, sqlx::Error> {
    let rows = sqlx::query_file_as!(RawLetter, "sql/forget_letters.sql", after.unwrap_or(0), since, up_to)
        .fetch_all(db)
        .await?;
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

/// What is known to be of the scope, and the reports of its calls.
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

/// The reports of calls that are not on record.
async fn of_no_call(db: &mut PgConnection, letters: &Letters) -> Result<HashSet<i64>, sqlx::Error> {
    let named: Vec<Uuid> = letters.reports.keys().copied().collect();
    let known = sqlx::query_scalar!("SELECT id FROM calls WHERE id = ANY ($1)", &named).fetch_all(db).await?;
    let known: HashSet<Uuid> = known.into_iter().collect();
    let gone = letters.reports.iter().filter(|(call, _)| !known.contains(call));
    Ok(gone.flat_map(|(_, letters)| letters).copied().collect())
}
