//! What a caller works with: a connection of the pool, or a transaction on one.

use std::{
    ops::{Deref, DerefMut},
    time::{Duration, Instant},
};

use sqlx::{Connection as _, PgConnection, Postgres, pool::PoolConnection};
use tokio::time::timeout;

/// A connection that takes longer to return to the pool is closed.
const RETURN: Duration = Duration::from_secs(2);

/// An open transaction. Dropped without a commit, it closes its connection, which rolls it back.
#[derive(Debug)]
pub(crate) struct Transaction {
    connection: Connection,
    began: Instant,
}

impl Transaction {
    /// Wraps a connection whose transaction has begun.
    pub(super) const fn new(connection: Connection, began: Instant) -> Self {
        Self { connection, began }
    }

    /// Returns when it began: all its statements together have one time limit.
    pub(crate) const fn began(&self) -> Instant {
        self.began
    }

    /// Commits, and gives the connection back to the pool.
    pub(crate) async fn commit(mut self) -> Result<(), sqlx::Error> {
        sqlx::raw_sql("COMMIT").execute(&mut *self.connection).await?;
        self.connection.done(());
        Ok(())
    }
}

impl Deref for Transaction {
    type Target = PgConnection;

    fn deref(&self) -> &PgConnection {
        &self.connection
    }
}

impl DerefMut for Transaction {
    fn deref_mut(&mut self) -> &mut PgConnection {
        &mut self.connection
    }
}

/// A connection that goes back to the pool only after its work is done. After an error, a timeout, or when its future
/// is dropped half-way, it is closed instead: a statement may still be running on it, and once the network is silent
/// the pool would wait for it without end and be one connection short (sqlx issue 4349).
#[derive(Debug)]
pub(crate) struct Connection(Option<PoolConnection<Postgres>>);

impl Connection {
    pub(super) const fn new(connection: PoolConnection<Postgres>) -> Self {
        Self(Some(connection))
    }

    /// Gives the connection back, and returns the work's result. The pool asks the server once more then, and would
    /// wait for the answer as long as the network stays silent; so that happens in a task of its own. The connection
    /// would keep the memory of the largest body that it ever carried.
    pub(crate) fn done<T>(mut self, result: T) -> T {
        if let Some(mut connection) = self.0.take() {
            connection.shrink_buffers();
            tokio::spawn(async move {
                let _silent = timeout(RETURN, connection.return_to_pool()).await;
            });
        }
        result
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if let Some(connection) = self.0.take() {
            drop(connection.detach());
        }
    }
}

impl Deref for Connection {
    type Target = PgConnection;

    #[expect(clippy::expect_used, reason = "only done() and drop() take the connection, and both end this value")]
    fn deref(&self) -> &PgConnection {
        self.0.as_ref().expect("in use")
    }
}

impl DerefMut for Connection {
    #[expect(clippy::expect_used, reason = "only done() and drop() take the connection, and both end this value")]
    fn deref_mut(&mut self) -> &mut PgConnection {
        self.0.as_mut().expect("in use")
    }
}
