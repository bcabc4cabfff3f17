//! The migrations that this version brings with it, and those that a database has.

use sqlx::{PgConnection, migrate::Migrator};

use crate::StoreError;

pub(crate) static MIGRATIONS: Migrator = sqlx::migrate!("../../migrations");

/// What a database has of the migrations of this program.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    /// How many of them it lacks.
    pub(crate) missing: usize,
    of: usize,
    /// It has some of a newer version.
    pub(crate) is_newer: bool,
    /// The first schema of the connection's search path that exists.
    schema: Option<String>,
}

/// Where the tables are: functions with rights of their own, and `deploy/roles.sql`, name it.
const SCHEMA: &str = "public";

/// Compares a database with this program.
pub(crate) async fn compare(connection: &mut PgConnection) -> Result<Found, sqlx::Error> {
    let found = applied(connection).await?;
    let known: Vec<i64> = MIGRATIONS.iter().filter(|m| m.migration_type.is_up_migration()).map(|m| m.version).collect();
    let missing = known.iter().filter(|version| !found.contains(version)).count();
    let schema = sqlx::query_scalar("SELECT current_schema()::text").fetch_one(connection).await?;
    Ok(Found { missing, of: known.len(), is_newer: found.iter().any(|version| !known.contains(version)), schema })
}

impl Found {
    /// Fails, with the reason, if this program may not use the database.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        self.check_schema()?;
        match self {
            Self { missing: 0, .. } => Ok(()),
            Self { missing, of, .. } => {
                Err(StoreError::NotMigrated(format!("{missing} of {of} migrations are missing")))
            }
        }
    }

    /// Fails unless tables would be made and found where they belong.
    pub(crate) fn check_schema(&self) -> Result<(), StoreError> {
        match self.schema.as_deref() {
            Some(SCHEMA) => Ok(()),
            other => Err(StoreError::OtherSchema(other.unwrap_or("no schema that it may use").to_owned())),
        }
    }
}

/// Reads the versions of the migrations that a database has.
pub(crate) async fn applied(connection: &mut PgConnection) -> Result<Vec<i64>, sqlx::Error> {
    let table: Option<String> =
        sqlx::query_scalar("SELECT to_regclass('_sqlx_migrations')::text").fetch_one(&mut *connection).await?;
    if table.is_none() {
        return Ok(Vec::new());
    }
    sqlx::query_scalar("SELECT version FROM _sqlx_migrations WHERE success").fetch_all(connection).await
}
