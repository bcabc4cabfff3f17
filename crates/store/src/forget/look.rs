//! Walks over the calls of a scope: those of a conversation by its index, those of a tenant along the primary key.

use redial_proto::{CallId, ForgetCounts};
use sqlx::PgConnection;
use uuid::Uuid;

use super::scope::Scope;
use crate::{StoreError, Time, columns::unsigned, connect::Store};

/// The next calls behind a position.
#[derive(Debug, Default)]
pub(super) struct Looked {
    /// Those of the scope.
    pub(super) calls: Vec<Uuid>,
    /// Those among them that have not ended.
    pub(super) open: Vec<Uuid>,
    /// The last one that was looked at; `None` at the end.
    pub(super) last: Option<Uuid>,
    /// There may be more behind it.
    has_more: bool,
}

struct RawLook {
    id: Uuid,
    is_of_scope: bool,
    open: bool,
}

/// Looks at the next `limit` calls behind an id.
pub(super) async fn calls(
    db: &mut PgConnection,
    scope: &Scope,
    until: Time,
    after: Option<Uuid>,
    limit: u32,
) -> Result<Looked, sqlx::Error> {
    let (after, limit) = (after.unwrap_or_default(), i64::from(limit));
    let tenant = scope.tenant.as_str();
    let rows = match scope.conversation.as_deref() {
        Some(conversation) => {
            sqlx::query_file_as!(
                RawLook,
                "sql/forget_look_at_conversation.sql",
                tenant,
                conversation,
                after,
                until,
                limit
            )
            .fetch_all(db)
            .await?
        }
        None => {
            sqlx::query_file_as!(RawLook, "sql/forget_look_at_tenant.sql", tenant, after, until, limit)
                .fetch_all(db)
                .await?
        }
    };
    let last = rows.last().map(|row| row.id);
    let has_more = i64::try_from(rows.len()).is_ok_and(|found| found >= limit);
    let mut looked = Looked { last, has_more, ..Looked::default() };
    for row in rows.into_iter().filter(|row| row.is_of_scope) {
        looked.calls.push(row.id);
        if row.open {
            looked.open.push(row.id);
        }
    }
    Ok(looked)
}

/// Looks at about `limit` calls behind a position, up to the end of a ms; returns that end, `None` if there are no more.
async fn whole_ms(
    db: &mut PgConnection,
    scope: &Scope,
    until: Time,
    after: Option<Uuid>,
    limit: u32,
) -> Result<(Looked, Option<Uuid>), sqlx::Error> {
    let mut limit = limit;
    loop {
        let mut looked = calls(&mut *db, scope, until, after, limit).await?;
        let Some(last) = looked.last.filter(|_| looked.has_more) else { return Ok((looked, None)) };
        let end = start_of_ms(last);
        if end > after.unwrap_or_default() {
            looked.calls.retain(|call| *call < end);
            return Ok((looked, Some(end)));
        }
        // All of them are of one ms.
        limit = limit.saturating_mul(2);
    }
}

/// What precedes all ids of the ms of this one: the first 48 bits of an id say when it was made.
fn start_of_ms(id: Uuid) -> Uuid {
    Uuid::from_u128(id.as_u128() >> 80 << 80)
}

/// Some calls of a scope, counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CountedCalls {
    /// The calls, and what belongs to them.
    pub counts: ForgetCounts,
    /// Those that have not ended.
    pub open: u64,
    /// All calls before this position were looked at; `None`: all. It is no id of a call.
    pub before: Option<CallId>,
}

impl Store {
    /// Counts what would be erased of the next calls behind a position, about `limit` of them. A page ends with a ms, because the last
    /// call may be of another tenant: its id is not told.
    pub async fn count_calls(
        &self,
        scope: &Scope,
        until: Time,
        after: Option<CallId>,
        limit: u32,
    ) -> Result<CountedCalls, StoreError> {
        on_connection!(self, |db| {
            let (looked, before) = whole_ms(&mut *db, scope, until, after.map(|after| after.0), limit).await?;
            let row = sqlx::query_file!("sql/forget_call_counts.sql", &looked.calls).fetch_one(&mut *db).await?;
            let counts = ForgetCounts {
                calls: unsigned(row.calls),
                model_turns: unsigned(row.model_turns),
                attempts: unsigned(row.attempts),
                late_reports: unsigned(row.late_reports),
                keys: unsigned(row.keys),
                ..ForgetCounts::default()
            };
            Ok(CountedCalls { counts, open: unsigned(row.open), before: before.map(CallId) })
        })
    }
}
