//! Deletes the webhooks of a tenant. None belongs to a conversation.

use sqlx::PgConnection;

use super::tombstone::Tombstone;

/// Deletes the webhooks that a tenant had when its erasure was asked for, with what waits for them. Their deliveries are calls,
/// which are erased as such.
pub(super) async fn erase(db: &mut PgConnection, tombstone: &Tombstone) -> Result<(), sqlx::Error> {
    if tombstone.scope.conversation.is_some() {
        return Ok(());
    }
    let tenant = tombstone.scope.tenant.as_str();
    sqlx::query_file!("sql/webhooks_erase.sql", tenant, tombstone.until).execute(db).await.map(|_| ())
}
