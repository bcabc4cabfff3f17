//! The migrations that this version brings with it, and those that a database has.

use redial_records::RECORDS;
use sqlx::{PgConnection, migrate::Migrator};

use crate::StoreError;

pub(crate) static MIGRATIONS: Migrator = sqlx::migrate!("../../migrations");

/// What a database is to this program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// It lacks migrations: how many, and of how many.
    Older { missing: usize, of: usize },
    /// It has all migrations, and perhaps those of a newer version.
    Usable {
        /// It has some of a newer version.
        is_newer: bool,
    },
    /// It has migrations of a newer version, and takes programs of this version of the records at least.
    TooNew { oldest_reader: u32 },
}

/// Compares a database with this program.
pub(crate) async fn compare(connection: &mut PgConnection) -> Result<Found, sqlx::Error> {
    let found = applied(connection).await?;
    let known: Vec<i64> = MIGRATIONS.iter().filter(|m| m.migration_type.is_up_migration()).map(|m| m.version).collect();
    let missing = known.iter().filter(|version| !found.contains(version)).count();
    if missing > 0 {
        return Ok(Found::Older { missing, of: known.len() });
    }
    let oldest: i32 = sqlx::query_scalar("SELECT oldest_reader FROM record_version").fetch_one(connection).await?;
    let oldest_reader = u32::try_from(oldest).unwrap_or(0);
    if oldest_reader > RECORDS {
        return Ok(Found::TooNew { oldest_reader });
    }
    Ok(Found::Usable { is_newer: found.len() > known.len() })
}

impl Found {
    /// Whether this program may use the database; if not, why.
    pub(crate) fn check(self) -> Result<(), StoreError> {
        match self {
            Self::Usable { .. } => Ok(()),
            Self::Older { missing, of } => {
                Err(StoreError::NotMigrated(format!("{missing} of {of} migrations are missing")))
            }
            Self::TooNew { oldest_reader } => Err(StoreError::TooNew { oldest_reader, ours: RECORDS }),
        }
    }
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
