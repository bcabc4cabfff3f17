//! Walks over the calls of a scope: those of a conversation by its index, those of a tenant along the primary key.

use sqlx::PgConnection;
use uuid::Uuid;

use super::tombstone::Tombstone;

/// The next calls behind the position of an erasure.
#[derive(Debug, Default)]
pub(super) struct Looked {
    /// Those of the scope.
    pub(super) calls: Vec<Uuid>,
    pub(super) open: Vec<Uuid>,
    /// The last one that was looked at; `None` at the end.
    pub(super) last: Option<Uuid>,
}

pub(super) async fn calls(db: &mut PgConnection, of: &Tombstone, limit: u32) -> Result<Looked, sqlx::Error> {
    let rows = sqlx::query_file!(
        "sql/forget_look_at_calls.sql",
        of.scope.tenant,
        of.scope.conversation.as_deref(),
        of.position::<Uuid>().unwrap_or_default(),
        of.until,
        i64::from(limit)
    );
    let rows = rows.fetch_all(db).await?;
    let mut looked = Looked { last: rows.last().map(|row| row.id), ..Looked::default() };
    for row in rows.into_iter().filter(|row| row.is_of_scope) {
        looked.calls.push(row.id);
        if row.open {
            looked.open.push(row.id);
        }
    }
    Ok(looked)
}
