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
    let mut looked = Looked { last, ..Looked::default() };
    for row in rows.into_iter().filter(|row| row.is_of_scope) {
        looked.calls.push(row.id);
        if row.open {
            looked.open.push(row.id);
        }
    }
    Ok(looked)
}

/// Some calls of a scope, counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CountedCalls {
    /// The calls, and what belongs to them.
    pub counts: ForgetCounts,
    /// Those that have not ended.
    pub open: u64,
    /// The last one that was looked at; `None` at the end.
    pub last: Option<CallId>,
}

impl Store {
    /// Counts what would be erased of the next `limit` calls behind an id.
    pub async fn count_calls(
        &self,
        scope: &Scope,
        until: Time,
        after: Option<CallId>,
        limit: u32,
    ) -> Result<CountedCalls, StoreError> {
        self.run_again(|| async {
            let mut db = self.checkout().await?;
            let looked = calls(&mut db, scope, until, after.map(|after| after.0), limit).await?;
            let row = sqlx::query_file!("sql/forget_call_counts.sql", &looked.calls).fetch_one(&mut *db).await?;
            let counts = ForgetCounts {
                calls: unsigned(row.calls),
                model_turns: unsigned(row.model_turns),
                attempts: unsigned(row.attempts),
                late_reports: unsigned(row.late_reports),
                keys: unsigned(row.keys),
                ..ForgetCounts::default()
            };
            Ok(db.done(CountedCalls { counts, open: unsigned(row.open), last: looked.last.map(CallId) }))
        })
        .await
    }
}
