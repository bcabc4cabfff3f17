//! The migrations that this version brings with it, and those that a database has.

use sqlx::{PgConnection, migrate::Migrator};

pub(crate) static MIGRATIONS: Migrator = sqlx::migrate!("../../migrations");

/// How many migrations a database lacks, and of how many; `None` if it lacks none.
pub(crate) async fn missing(connection: &mut PgConnection) -> Result<Option<(usize, usize)>, sqlx::Error> {
    let found = applied(connection).await?;
    let known: Vec<i64> = MIGRATIONS.iter().filter(|m| m.migration_type.is_up_migration()).map(|m| m.version).collect();
    let missing = known.iter().filter(|version| !found.contains(version)).count();
    Ok((missing > 0).then_some((missing, known.len())))
}

/// The versions of the migrations that a database has.
pub(crate) async fn applied(connection: &mut PgConnection) -> Result<Vec<i64>, sqlx::Error> {
    let table: Option<String> =
        sqlx::query_scalar("SELECT to_regclass('_sqlx_migrations')::text").fetch_one(&mut *connection).await?;
    if table.is_none() {
        return Ok(Vec::new());
    }
    sqlx::query_scalar("SELECT version FROM _sqlx_migrations WHERE success").fetch_all(connection).await
}
