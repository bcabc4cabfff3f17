//! Setting up databases: migrations and, for private servers, databases.

use sqlx::{AssertSqlSafe, Connection, migrate::MigrateError};

use crate::{
    StoreError,
    connect::connect_once,
    error::message,
    migrations::{MIGRATIONS, applied, compare},
};

/// Brings the tables up to this version. Several processes may do so at once: one works, the others wait.
/// Returns how many migrations were applied; none if the database has those of this version, or of a newer one that this one may use.
pub async fn migrate(url: &str) -> Result<usize, StoreError> {
    let mut connection = connect_once(url).await?;
    let found = compare(&mut connection).await?;
    found.check_schema()?;
    if found.missing == 0 {
        // Of a newer version, perhaps: going back to this one needs no migration.
        connection.close().await?;
        return Ok(0);
    }
    let before = applied(&mut connection).await?.len();
    let result = MIGRATIONS.run_direct(None, &mut connection, false).await;
    // After an error, how far it came; without a connection nobody knows.
    let after = applied(&mut connection).await.map(|versions| versions.len());
    if let Err(MigrateError::ExecuteMigration(error, version)) = result {
        let done = after.map_or_else(|_| "an unknown number".to_owned(), |after| (after - before).to_string());
        return Err(StoreError::Migration { version, reason: message(&error), done });
    }
    result?;
    let after = after?;
    connection.close().await?;
    Ok(after - before)
}

/// Takes back every migration, and with it all data. For tests of the migrations.
pub async fn revert_all(url: &str) -> Result<(), StoreError> {
    let mut connection = connect_once(url).await?;
    MIGRATIONS.undo(&mut connection, 0).await?;
    Ok(connection.close().await?)
}

/// Creates a database on a server, if it is not there yet.
pub async fn create_database(server_url: &str, name: &str) -> Result<(), StoreError> {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.is_empty() || !name.chars().all(fits) {
        return Err(StoreError::BadAddress(format!("database name {name:?}: ASCII letters, digits and '_'")));
    }
    let mut connection = connect_once(server_url).await?;
    let exists: bool = sqlx::query_scalar("SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)")
        .bind(name)
        .fetch_one(&mut connection)
        .await?;
    if !exists {
        let statement = format!("CREATE DATABASE \"{name}\"");
        sqlx::query(AssertSqlSafe(statement)).execute(&mut connection).await?;
    }
    Ok(connection.close().await?)
}

pub async fn ping(url: &str) -> Result<(), StoreError> {
    let mut connection = connect_once(url).await?;
    sqlx::raw_sql("SELECT").execute(&mut connection).await?;
    Ok(connection.close().await?)
}
