//! Counts and deletes the tokens of a tenant.

use sqlx::PgConnection;

use super::{scope::Scope, tombstone::Tombstone};
use crate::{StoreError, columns::unsigned, connect::Store};

impl Store {
    /// Counts the tokens of a scope: none belongs to a conversation.
    pub async fn count_tokens(&self, scope: &Scope) -> Result<u64, StoreError> {
        if scope.conversation.is_some() {
            return Ok(0);
        }
        on_connection!(self, |db| {
            let count =
                sqlx::query_scalar!(r#"SELECT count(*) AS "count!" FROM tokens WHERE tenant = $1"#, scope.tenant);
            let count = count.fetch_one(&mut *db).await?;
            Ok(unsigned(count))
        })
    }
}

/// Deletes the tokens that a tenant had when its erasure was asked for; returns how many.
pub(super) async fn erase(db: &mut PgConnection, tombstone: &Tombstone) -> Result<u64, sqlx::Error> {
    if tombstone.scope.conversation.is_some() {
        return Ok(0);
    }
    let tenant = tombstone.scope.tenant.as_str();
    let gone =
        sqlx::query!("DELETE FROM tokens WHERE tenant = $1 AND created_at <= $2", tenant, tombstone.until).execute(db);
    Ok(gone.await?.rows_affected())
}
