//! Connections: how they are set up, bounded in time, and checked.

use std::{
    ops::{Deref, DerefMut},
    sync::Arc,
    time::{Duration, Instant},
};

use redial_backoff::Backoff;
use redial_records::Time;
use sqlx::{
    ConnectOptions, Connection as _, PgConnection, PgPool, Postgres,
    pool::PoolConnection,
    postgres::{PgConnectOptions, PgPoolOptions},
};
use tokio::{sync::Semaphore, time::timeout};

use crate::{error::StoreError, low_water::LowWater, migrations};

/// A connection that was idle for longer is tried before it is used: the server may have been restarted meanwhile.
const FRESH: Duration = Duration::from_secs(1);

/// How long that may take: over a network that went silent, the answer never comes.
const PING: Duration = Duration::from_secs(1);

/// How long a connection may take. The pool pauses for up to a fifth of this between two tries to open one; once
/// Postgres is back, no caller waits for longer.
const CHECKOUT: Duration = Duration::from_secs(3);

/// Connections that are checked out at the same time. After a restart of Postgres each caller needs a new one. Opened all
/// at once, on a busy machine none would be ready in time, and the next round would begin from nothing, without end.
const CHECKOUTS: usize = 4;

/// A connection that takes longer to return to the pool is closed.
const RETURN: Duration = Duration::from_secs(2);

/// Between tries to reach a server at the start.
const RECONNECT: Backoff = Backoff::new(Duration::from_millis(50), Duration::from_secs(2));

/// What a set of connections is for; it decides what the planner may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A dispatcher's: short statements by key.
    Dispatch,
    /// Questions over the whole history.
    Audit,
}

/// Where the database is.
#[derive(Clone, Debug)]
pub struct StoreConfig {
    /// `postgres://user:password@host:port/name`.
    pub url: String,
    /// Connections at most.
    pub connections: u32,
    /// What they are for.
    pub purpose: Purpose,
}

/// The tables. Cheap to clone; all clones share the connections.
#[derive(Clone, Debug)]
pub struct Store {
    pool: PgPool,
    checkouts: Arc<Semaphore>,
    limit: Duration,
    pub(crate) low_water: Arc<LowWater>,
}

impl Store {
    /// Opens the database and checks its durability settings and that it has this version's tables. Waits for a server
    /// that does not answer yet, for as long as the caller lets it.
    pub async fn connect(config: &StoreConfig) -> Result<Self, StoreError> {
        let store = Self::open(config)?;
        let report = |error: StoreError, wait: Duration| {
            tracing::warn!(%error, wait_ms = wait.as_millis(), "Failed to connect to Postgres; trying again");
        };
        // Boxed, because it would make the futures of all callers large.
        let checked = Box::pin(RECONNECT.retry(|| store.check(), StoreError::is_transient, report)).await;
        match checked {
            Ok(()) => Ok(store),
            Err(error) => Err(error.of_connection(&options(&config.url)?)),
        }
    }

    /// Opens the database without checking anything; connections are made when they are needed.
    pub(crate) fn open(config: &StoreConfig) -> Result<Self, StoreError> {
        let options = options(&config.url)?;
        // The library would ask the log filter for each statement.
        let options = options.application_name("redial").options(settings(config.purpose)).disable_statement_logging();
        let pool = PgPoolOptions::new()
            .max_connections(config.connections)
            .acquire_timeout(CHECKOUT)
            // A question to the server before each statement would cost a round trip.
            .test_before_acquire(false)
            .before_acquire(|connection, meta| {
                Box::pin(async move {
                    if meta.idle_for <= FRESH {
                        return Ok(true);
                    }
                    timeout(PING, connection.ping()).await.map_err(|_| sqlx::Error::PoolTimedOut)??;
                    Ok(true)
                })
            })
            .connect_lazy_with(options);
        let checkouts = Arc::new(Semaphore::new(CHECKOUTS));
        Ok(Self { pool, checkouts, limit: config.purpose.limit(), low_water: Arc::default() })
    }

    async fn check(&self) -> Result<(), StoreError> {
        let setting = |name: &'static str| async move {
            self.run(async {
                let mut db = self.checkout().await?;
                let done = sqlx::query_scalar::<_, String>("SELECT current_setting($1)")
                    .bind(name)
                    .fetch_one(&mut *db)
                    .await?;
                Ok(db.done(done))
            })
            .await
        };
        let value = setting("synchronous_commit").await?;
        if value == "off" {
            return Err(StoreError::UnsafeSetting {
                name: "synchronous_commit",
                value,
                why: "an accepted call could be lost in a crash; set it to on",
            });
        }
        if setting("fsync").await? == "off" {
            tracing::warn!("Found fsync = off in Postgres: a power cut can lose accepted calls");
        }
        self.check_version().await
    }

    async fn check_version(&self) -> Result<(), StoreError> {
        let missing = self
            .run_again(|| async {
                let mut db = self.checkout().await?;
                let missing = migrations::missing(&mut db).await?;
                Ok(db.done(missing))
            })
            .await?;
        match missing {
            None => Ok(()),
            Some((missing, all)) => Err(StoreError::NotMigrated(format!("{missing} of {all} migrations are missing"))),
        }
    }

    /// Runs statements within the time limit of the purpose.
    pub(crate) async fn run<T>(&self, work: impl Future<Output = Result<T, sqlx::Error>>) -> Result<T, StoreError> {
        self.run_since(Instant::now(), work).await
    }

    /// Runs statements within the time limit of the purpose, counted from an earlier moment.
    pub(crate) async fn run_since<T>(
        &self,
        began: Instant,
        work: impl Future<Output = Result<T, sqlx::Error>>,
    ) -> Result<T, StoreError> {
        match timeout(self.limit.saturating_sub(began.elapsed()), work).await {
            Ok(done) => Ok(done?),
            Err(_) => Err(StoreError::Timeout(self.limit)),
        }
    }

    /// Like [`Store::run`], but tries again what passes by itself, a few times.
    pub(crate) async fn run_again<T, F>(&self, work: impl Fn() -> F) -> Result<T, StoreError>
    where
        F: Future<Output = Result<T, sqlx::Error>>,
    {
        let mut tries = 0;
        loop {
            match self.run(work()).await {
                Err(error) if error.is_transient() && tries < 3 => {
                    tries += 1;
                    tracing::debug!(%error, tries, "A statement failed; trying again");
                }
                done => return done,
            }
        }
    }

    /// A connection of the pool. It goes back only by [`Connection::done`].
    pub(crate) async fn checkout(&self) -> Result<Connection, sqlx::Error> {
        let checkout = async {
            // The semaphore is never closed.
            let _turn = self.checkouts.acquire().await;
            self.pool.acquire().await
        };
        let connection = timeout(CHECKOUT, checkout).await.map_err(|_| sqlx::Error::PoolTimedOut)?;
        Ok(Connection(Some(connection?)))
    }

    /// Opens a transaction on a connection of the pool.
    pub(crate) async fn begin(&self) -> Result<Transaction, sqlx::Error> {
        let began = Instant::now();
        let mut db = self.checkout().await?;
        sqlx::raw_sql("BEGIN").execute(&mut *db).await?;
        Ok(Transaction { connection: db, began })
    }

    /// The database's clock.
    pub async fn now(&self) -> Result<Time, StoreError> {
        self.run(async {
            let mut db = self.checkout().await?;
            let done = sqlx::query_scalar("SELECT clock_timestamp()").fetch_one(&mut *db).await?;
            Ok(db.done(done))
        })
        .await
    }

    /// Closes all connections.
    pub async fn close(&self) {
        self.pool.close().await;
    }
}

impl Purpose {
    fn limit(self) -> Duration {
        match self {
            Self::Dispatch => Duration::from_secs(10),
            Self::Audit => Duration::from_mins(2),
        }
    }
}

/// The options that an address names. The library would take any scheme for its own.
pub(crate) fn options(url: &str) -> Result<PgConnectOptions, StoreError> {
    let scheme = url.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
    match scheme.as_deref() {
        Some("postgres" | "postgresql") => Ok(url.parse()?),
        // What stands before :// is no secret if it is one word.
        Some(other) if other.chars().all(|c| c.is_ascii_alphanumeric()) => {
            Err(StoreError::BadAddress(format!("it begins with {other}://")))
        }
        _ => Err(StoreError::BadAddress("it does not begin with postgres://".to_owned())),
    }
}

/// Opens a connection of its own.
pub(crate) async fn connect_once(url: &str) -> Result<PgConnection, StoreError> {
    let options = options(url)?;
    let connection = PgConnection::connect_with(&options).await;
    connection.map_err(|error| StoreError::from(error).of_connection(&options))
}

/// An open transaction. Dropped without a commit, it closes its connection, which rolls it back.
#[derive(Debug)]
pub(crate) struct Transaction {
    connection: Connection,
    began: Instant,
}

impl Transaction {
    /// When it began: all its statements together have one time limit.
    pub(crate) const fn began(&self) -> Instant {
        self.began
    }

    /// Commits, and gives the connection back to the pool.
    pub(crate) async fn commit(mut self) -> Result<(), sqlx::Error> {
        sqlx::raw_sql("COMMIT").execute(&mut *self.connection).await?;
        self.connection.done(());
        Ok(())
    }

    /// Undoes everything, and gives the connection back to the pool.
    pub(crate) async fn rollback(mut self) -> Result<(), sqlx::Error> {
        sqlx::raw_sql("ROLLBACK").execute(&mut *self.connection).await?;
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
    /// Gives the connection back, and returns the work's result. The pool asks the server once more then, and would
    /// wait for the answer as long as the network stays silent; so that happens in a task of its own.
    pub(crate) fn done<T>(mut self, result: T) -> T {
        if let Some(mut connection) = self.0.take() {
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

/// Settings of each connection. Postgres has no time limits by default.
///
/// Dispatch: every statement finds its rows by key, whatever the statistics of a table that was empty a minute ago
/// say; a hash join or a scan of all history would be chosen by mistake only. For the same reason the batch statements
/// join with `c.id = ANY (ARRAY[i.id])` instead of `c.id = i.id`: the latter also allows a walk over the whole table with
/// the batch as its inner side, which the planner took for cheap (measured: 3.6 s instead of 0.05 s to renew 10,000
/// leases). Nor are rows collected first that an index holds in order: with the statistics of an hour ago, taking 1,000 calls of
/// a backlog of 200,000 read and sorted all of them (measured: 0.5 s instead of 0.02 s).
///
/// Audit: a filter that is not set must not spoil the plan of those that are, so each question is planned with its
/// values.
fn settings(purpose: Purpose) -> Vec<(&'static str, &'static str)> {
    let mut settings = vec![("idle_in_transaction_session_timeout", "15s"), ("jit", "off")];
    settings.extend(match purpose {
        Purpose::Dispatch => [
            ("statement_timeout", "8s"),
            ("lock_timeout", "4s"),
            ("enable_seqscan", "off"),
            ("enable_hashjoin", "off"),
            ("enable_mergejoin", "off"),
            ("enable_bitmapscan", "off"),
        ]
        .as_slice(),
        Purpose::Audit => [
            ("statement_timeout", "110s"),
            ("lock_timeout", "4s"),
            ("plan_cache_mode", "force_custom_plan"),
            // Whoever asked may be gone; Postgres would go on to the end of the statement.
            ("client_connection_check_interval", "1s"),
        ]
        .as_slice(),
    });
    settings
}
