//! Connections: how they are set up, bounded in time, and checked.

/// Runs statements on a connection of the pool, which goes back after them, and tries again what passes by itself. (Of a function
/// with such a closure the compiler cannot tell that its future is `Send`.)
macro_rules! on_connection {
    ($store:expr, |$db:ident| $work:expr) => {
        $store.run_again(|| work_on_connection!($store, $db, $work)).await
    };
}

/// Runs statements without another try, for what must not happen twice.
macro_rules! once_on_connection {
    ($store:expr, |$db:ident| $work:expr) => {
        $store.run(work_on_connection!($store, $db, $work)).await
    };
}

macro_rules! work_on_connection {
    ($store:expr, $db:ident, $work:expr) => {
        async {
            let mut connection = $store.checkout().await?;
            let $db: &mut sqlx::PgConnection = &mut connection;
            let done: Result<_, sqlx::Error> = $work;
            Ok(connection.done(done?))
        }
    };
}

mod address;
mod checkout;
mod primary;
mod report;

use std::{
    future::poll_fn,
    pin::pin,
    sync::Arc,
    task::Poll,
    time::{Duration, Instant, SystemTime},
};

use redial_backoff::Backoff;
use redial_records::Time;
use sqlx::{
    ConnectOptions, Connection as _, PgConnection, PgPool,
    postgres::{PgConnectOptions, PgPoolOptions},
};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, oneshot},
    time::timeout,
};

pub(crate) use self::checkout::{Connection, Transaction};
use self::{address::Address, primary::Hosts};
use crate::{clock::Clock, error::StoreError, lock_watch::LockWatch, low_water::LowWater, migrations};

/// A connection that was idle for longer is tried before it is used: the server may have been restarted meanwhile.
const FRESH: Duration = Duration::from_secs(1);

/// How long that may take: over a network that went silent, the answer never comes.
const PING: Duration = Duration::from_secs(1);

/// How long a caller waits for a connection; once Postgres is back, none waits for longer.
const CHECKOUT: Duration = Duration::from_secs(3);

/// Connections that are checked out at the same time. After a restart of Postgres each caller needs a new one. Opened all
/// at once, on a busy machine none would be ready in time, and the next round would begin from nothing, without end.
const CHECKOUTS: usize = 4;

/// How long one of these may take. The pool pauses for up to a fifth of this between two tries to open a connection.
const OPEN: Duration = Duration::from_secs(5);

/// Between tries to reach a server at the start.
const RECONNECT: Backoff = Backoff::new(Duration::from_millis(50), Duration::from_secs(2));

/// The oldest version of Postgres, as its `server_version_num`.
const OLDEST: u32 = 150_000;

/// What a set of connections is for; it decides what the planner may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A dispatcher's: short statements by key.
    Dispatch,
    /// Questions over the whole history.
    Audit,
}

#[derive(Clone, Debug)]
pub struct StoreConfig {
    /// `postgres://user:password@host:port/name`. Of several `host:port`, separated by commas, the primary is used.
    pub url: String,
    /// At most.
    pub connections: u32,
    pub purpose: Purpose,
}

/// The tables. Cheap to clone; all clones share the connections.
#[derive(Clone, Debug)]
pub struct Store {
    pool: PgPool,
    hosts: Hosts,
    checkouts: Arc<Semaphore>,
    limit: Duration,
    pub(crate) low_water: Arc<LowWater>,
    pub(crate) locks: Arc<LockWatch>,
    pub(crate) clock: Arc<Clock>,
}

impl Store {
    /// Opens the database and checks its durability settings and that it has this version's tables. Waits for a server
    /// that does not answer yet, for as long as the caller lets it.
    ///
    /// Connections ask for their settings when they begin. A pooler that takes none is used without: then the role has them
    /// (`deploy/roles.sql`), which is checked.
    pub async fn connect(config: &StoreConfig) -> Result<Self, StoreError> {
        match Self::connect_with(config, &settings(config.purpose)).await {
            Err(error) if error.is_about_parameters() => Self::connect_with(config, &[]).await,
            done => done,
        }
    }

    async fn connect_with(config: &StoreConfig, parameters: &[Setting]) -> Result<Self, StoreError> {
        let store = Self::open(config, parameters)?;
        let report = |error: StoreError, wait: Duration| {
            tracing::warn!(%error, wait_ms = wait.as_millis(), "Failed to connect to Postgres; trying again");
        };
        // Boxed, because it would make the futures of all callers large.
        let check = || async {
            let checked = store.check(config).await;
            checked.map_err(|error| store.told(error))
        };
        Box::pin(RECONNECT.retry(check, StoreError::is_transient, report)).await?;
        Ok(store)
    }

    /// Says in the error of a connection who was refused, and where.
    pub(crate) fn told(&self, error: StoreError) -> StoreError {
        self.hosts.refused().unwrap_or_else(|| error.of_connection(&self.pool.connect_options()))
    }

    /// Opens the database without checking anything; connections are made when they are needed.
    fn open(config: &StoreConfig, parameters: &[Setting]) -> Result<Self, StoreError> {
        let prepare = |options: PgConnectOptions| {
            let options = options.application_name("redial");
            let options = if parameters.is_empty() { options } else { options.options(parameters.iter().copied()) };
            // The library would ask the log filter for each statement.
            options.disable_statement_logging()
        };
        let hosts = Hosts::new(Address::parse(&config.url)?, prepare);
        let (opened, idle) = (hosts.clone(), hosts.clone());
        let pool = PgPoolOptions::new()
            .max_connections(config.connections)
            .acquire_timeout(OPEN)
            // A question to the server before each statement would cost a round trip.
            .test_before_acquire(false)
            .after_connect(move |connection, _| {
                let hosts = opened.clone();
                Box::pin(async move { hosts.check(connection).await })
            })
            .before_acquire(move |connection, meta| {
                let is_current = idle.is_current(meta.age);
                Box::pin(async move {
                    if is_current && meta.idle_for > FRESH {
                        timeout(PING, connection.ping()).await.map_err(|_| sqlx::Error::PoolTimedOut)??;
                    }
                    Ok(is_current)
                })
            })
            .connect_lazy_with(hosts.first());
        let (hosts, checkouts) = (hosts.watch(&pool), Arc::new(Semaphore::new(CHECKOUTS)));
        Ok(Self {
            pool,
            hosts,
            checkouts,
            limit: config.purpose.limit(),
            low_water: Arc::default(),
            locks: Arc::default(),
            clock: Arc::default(),
        })
    }

    async fn check(&self, config: &StoreConfig) -> Result<(), StoreError> {
        once_on_connection!(self, |db| Ok(check_server(db)))??;
        let setting = |name: &'static str| async move {
            once_on_connection!(self, |db| {
                sqlx::query_scalar::<_, String>("SELECT current_setting($1)").bind(name).fetch_one(db).await
            })
        };
        let value = setting("synchronous_commit").await?;
        if value == "off" {
            return Err(StoreError::UnsafeSetting {
                name: "synchronous_commit",
                value,
                why: "an accepted call could be lost in a crash; set it to on",
            });
        }
        let standbys = setting("synchronous_standby_names").await?;
        if value == "local" && !standbys.is_empty() {
            tracing::warn!(
                standbys,
                "Found synchronous_commit = local in Postgres: a failover can lose accepted calls"
            );
        }
        if setting("fsync").await? == "off" {
            tracing::warn!("Found fsync = off in Postgres: a power cut can lose accepted calls");
        }
        self.check_sessions(config).await?;
        self.now().await?;
        self.check_version().await
    }

    /// Checks what a pooler may get wrong: whether sessions have their settings, and whether two clients on one connection
    /// of the server disturb each other's statements.
    async fn check_sessions(&self, config: &StoreConfig) -> Result<(), StoreError> {
        let wanted = settings(config.purpose);
        let names: Vec<&str> = wanted.iter().map(|(name, _)| *name).collect();
        let question = "SELECT current_setting(name), source = 'client' \
            FROM unnest($1::text[]) WITH ORDINALITY wanted (name, n) JOIN pg_settings USING (name) ORDER BY n";
        let found: Vec<(String, bool)> =
            once_on_connection!(self, |db| sqlx::query_as(question).bind(&names).fetch_all(db).await)?;
        let mut is_pooled = false;
        for ((name, wanted), (value, is_ours)) in wanted.into_iter().zip(found) {
            is_pooled |= !is_ours;
            if value != wanted {
                let why = "a pooler before it drops the settings of sessions; run deploy/roles.sql, which gives them to the \
                           roles, and give each process the login of its role";
                return Err(StoreError::UnsafeSetting { name, value, why });
            }
        }
        if is_pooled && config.connections > 1 {
            tracing::info!("Found a pooler before Postgres");
            self.run(self.share_statements()).await?;
        }
        Ok(())
    }

    /// Executes a statement on two connections in turns. A pooler that lends both the same one of the server, or one of them
    /// several, must know what is prepared there.
    async fn share_statements(&self) -> Result<(), sqlx::Error> {
        let (mut one, mut other) = (self.checkout().await?, self.checkout().await?);
        for _ in 0..2 {
            for connection in [&mut one, &mut other] {
                sqlx::query("SELECT pg_backend_pid()").execute(&mut **connection).await?;
            }
        }
        one.done(());
        other.done(());
        Ok(())
    }

    async fn check_version(&self) -> Result<(), StoreError> {
        let found = on_connection!(self, |db| migrations::compare(db).await)?;
        if found.missing == 0 && found.is_newer {
            tracing::warn!(
                "Found a database of a newer version of Redial; what this version cannot read is left to the newer one"
            );
        }
        found.check()
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
        // By reference, because it would make the futures of all callers large.
        let work = pin!(work);
        match timeout(self.limit.saturating_sub(began.elapsed()), self.run_without_limit(work)).await {
            Ok(done) => done,
            Err(_) => Err(StoreError::Timeout(self.limit)),
        }
    }

    /// Runs statements for as long as they take, or until another server is the primary.
    pub(crate) async fn run_without_limit<T>(
        &self,
        work: impl Future<Output = Result<T, sqlx::Error>>,
    ) -> Result<T, StoreError> {
        // Both by reference, because they would make the futures of all callers large.
        let (work, switched) = (pin!(work), Box::pin(self.hosts.switched()));
        tokio::select! {
            done = work => Ok(done?),
            // The old one may never answer. As after a timeout, the connection is closed.
            () = switched => Err(StoreError::NoPrimary("it is another one now; try again".to_owned())),
        }
    }

    /// Runs statements like [`Store::run`], but tries again what passes by itself, a few times.
    pub(crate) async fn run_again<T, F>(&self, work: impl Fn() -> F) -> Result<T, StoreError>
    where
        F: Future<Output = Result<T, sqlx::Error>>,
    {
        self.run_again_if(StoreError::is_transient, work).await
    }

    /// Does the same, but tries again after these errors.
    pub(crate) async fn run_again_if<T, F>(
        &self,
        may_pass: impl Fn(&StoreError) -> bool,
        work: impl Fn() -> F,
    ) -> Result<T, StoreError>
    where
        F: Future<Output = Result<T, sqlx::Error>>,
    {
        let mut tries = 0;
        loop {
            match self.run(work()).await {
                Err(error) if may_pass(&error) && tries < 3 => {
                    tries += 1;
                    tracing::debug!(%error, tries, "A statement failed; trying again");
                }
                done => return done,
            }
        }
    }

    /// Takes a connection of the pool. It goes back only by [`Connection::done`]. Whoever waited in a long queue may be
    /// gone before its connection is open; then it is for the next one. Given up with its caller, on a busy machine
    /// none would ever be ready.
    pub(crate) async fn checkout(&self) -> Result<Connection, sqlx::Error> {
        let checkout = async {
            // The semaphore is never closed.
            let turn = self.checkouts.clone().acquire_owned().await.ok();
            let mut opening = Box::pin(acquire(turn, self.hosts.clone(), self.pool.clone()));
            if let Poll::Ready(idle) = poll_fn(|context| Poll::Ready(opening.as_mut().poll(context))).await {
                return idle;
            }
            let (wanted, opened) = oneshot::channel();
            tokio::spawn(async move {
                if let Err(Ok(unwanted)) = wanted.send(opening.await) {
                    unwanted.done(());
                }
            });
            opened.await.unwrap_or(Err(sqlx::Error::PoolTimedOut))
        };
        // Boxed, because it would make the futures of all callers large.
        match timeout(CHECKOUT, Box::pin(checkout)).await {
            Ok(Err(sqlx::Error::PoolTimedOut)) | Err(_) => Err(self.hosts.timed_out()),
            Ok(acquired) => acquired,
        }
    }

    /// Opens a transaction on a connection of the pool.
    pub(crate) async fn begin(&self) -> Result<Transaction, sqlx::Error> {
        let began = Instant::now();
        let mut db = self.checkout().await?;
        sqlx::raw_sql("BEGIN").execute(&mut *db).await?;
        Ok(Transaction::new(db, began))
    }

    pub async fn now(&self) -> Result<Time, StoreError> {
        let now = once_on_connection!(self, |db| sqlx::query_scalar("SELECT clock_timestamp()").fetch_one(db).await)?;
        self.clock.seen(now, SystemTime::now());
        Ok(now)
    }

    /// Returns once the table of calls takes writes: the server is a primary, this login has its rights, and nobody has
    /// locked the table.
    pub async fn takes_writes(&self) -> Result<(), StoreError> {
        once_on_connection!(self, |db| sqlx::query("DELETE FROM calls WHERE false").execute(db).await.map(drop))
    }

    pub async fn close(&self) {
        self.hosts.close();
        self.pool.close().await;
    }
}

/// Takes a connection of the pool in its turn.
async fn acquire(_turn: Option<OwnedSemaphorePermit>, hosts: Hosts, pool: PgPool) -> Result<Connection, sqlx::Error> {
    let acquired = timeout(OPEN, hosts.acquire(&pool)).await;
    acquired.unwrap_or(Err(sqlx::Error::PoolTimedOut)).map(Connection::new)
}

impl Purpose {
    fn limit(self) -> Duration {
        match self {
            Self::Dispatch => Duration::from_secs(10),
            Self::Audit => Duration::from_mins(2),
        }
    }
}

/// Opens a connection of its own to the primary, without limits of time.
pub(crate) async fn connect_once(url: &str) -> Result<PgConnection, StoreError> {
    let connection = connect_to_primary(url).await?;
    check_server(&connection)?;
    Ok(connection)
}

fn check_server(connection: &PgConnection) -> Result<(), StoreError> {
    match connection.server_version_num() {
        Some(version) if version < OLDEST => Err(StoreError::UnsafeSetting {
            name: "server_version",
            value: (version / 10_000).to_string(),
            why: "Redial needs 15 or newer; upgrade Postgres",
        }),
        _ => Ok(()),
    }
}

async fn connect_to_primary(url: &str) -> Result<PgConnection, StoreError> {
    let hosts = Hosts::new(Address::parse(url)?, |options| options);
    let first = hosts.first();
    if hosts.are_several() {
        let pool = PgPoolOptions::new().max_connections(1).acquire_timeout(CHECKOUT).connect_lazy_with(first);
        let hosts = hosts.watch(&pool);
        return match timeout(CHECKOUT, hosts.acquire(&pool)).await {
            Ok(Ok(connection)) => Ok(connection.detach()),
            Ok(Err(error)) => Err(hosts.refused().unwrap_or_else(|| error.into())),
            Err(_) => Err(hosts.refused().unwrap_or_else(|| hosts.timed_out().into())),
        };
    }
    let connection = async {
        let mut connection = PgConnection::connect_with(&first).await?;
        hosts.check(&mut connection).await?;
        Ok::<_, sqlx::Error>(connection)
    };
    connection.await.map_err(|error| StoreError::from(error).of_connection(&first))
}

/// A setting of Postgres, and its value as Postgres writes it.
type Setting = (&'static str, &'static str);

/// Returns the settings of each connection; `deploy/roles.sql` gives the same to its roles. Postgres has no time limits
/// by default.
///
/// Dispatch: every statement finds its rows by key, whatever the statistics of a table that was empty a minute ago say;
/// a hash join or a scan of all history would be chosen by mistake only. For the same reason the batch statements join
/// with `c.id = ANY (ARRAY[i.id])` instead of `c.id = i.id`: the latter also allows a walk over the whole table with
/// the batch as its inner side, which the planner took for cheap (measured: 3.6 s instead of 0.05 s to renew 10,000
/// leases). Nor are rows collected first that an index holds in order: with the statistics of an hour ago, taking 1,000
/// calls of a backlog of 200,000 read and sorted all of them (measured: 0.5 s instead of 0.02 s).
///
/// Postgres plans a statement again for each execution while it takes plans with known values for cheaper, which it
/// does on partitioned tables: planning was 2.1 of the 4.9 ms that a lone call took. So what is executed for each call
/// has its ids within `(SELECT $1)`, where the planner does not see them: a plan with them looks no better than one
/// without, and is made once. Only statements that find their rows by key may do so, because such a plan lives through
/// what the tables become.
///
/// Audit: a filter that is not set must not spoil the plan of those that are, so each question is planned with its
/// values.
fn settings(purpose: Purpose) -> Vec<Setting> {
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
