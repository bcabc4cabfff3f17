//! The settings of the Postgres of tests.

use std::path::PathBuf;

use redial_servers::PostgresConfig;

/// A small server.
pub(crate) fn tuned(folder: PathBuf) -> PostgresConfig {
    PostgresConfig::new(folder)
        .setting("shared_buffers", "32MB")
        .setting("max_connections", "300")
        .setting("min_wal_size", "32MB")
        .setting("max_wal_size", "256MB")
}
