//! Connections: how they are set up, bounded in time, and checked.

use std::time::Duration;

use sqlx::{
    PgConnection, PgPool,
    postgres::{PgConnectOptions, PgPoolOptions},
};

use crate::StoreError;

/// What a set of connections is for; it decides what the planner may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A dispatcher's: short statements by key.
    Dispatch,
    /// People's questions over the whole history.
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
    limit: Duration,
}

impl Store {
    /// Opens the database and checks that it keeps its promises and has this version's tables. Waits for a server
    /// that does not answer yet, for as long as the caller lets it.
    pub async fn connect(config: &StoreConfig) -> Result<Self, StoreError> {
        let store = Self::open(config)?;
        let patience = backoff::ExponentialBackoff {
            initial_interval: Duration::from_millis(50),
            max_interval: Duration::from_secs(2),
            max_elapsed_time: None,
            ..Default::default()
        };
        backoff::future::retry_notify(
            patience,
            || async {
                store.check().await.map_err(|error| match error {
                    error if error.is_transient() => backoff::Error::transient(error),
                    error => backoff::Error::permanent(error),
                })
            },
            |error: StoreError, wait: Duration| {
                tracing::warn!(%error, wait_ms = wait.as_millis(), "waiting for Postgres");
            },
        )
        .await?;
        Ok(store)
    }

    /// Opens the database without checking anything; connections are made when they are needed.
    pub(crate) fn open(config: &StoreConfig) -> Result<Self, StoreError> {
        let options: PgConnectOptions =
            config.url.parse().map_err(|error: sqlx::Error| StoreError::BadAddress(error.to_string()))?;
        let options = options.application_name("redial").options(settings(config.purpose));
        let pool = PgPoolOptions::new()
            .max_connections(config.connections)
            .acquire_timeout(Duration::from_secs(5))
            .connect_lazy_with(options);
        Ok(Self { pool, limit: config.purpose.limit() })
    }

    async fn check(&self) -> Result<(), StoreError> {
        let setting = |name: &'static str| async move {
            self.run(async |db| {
                sqlx::query_scalar::<_, String>("SELECT current_setting($1)").bind(name).fetch_one(db).await
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
            tracing::warn!("Postgres runs with fsync = off: a power cut can lose accepted calls");
        }
        crate::admin::check_version(self).await
    }

    /// Runs statements on one connection, within the time limit of the purpose.
    ///
    /// A connection that did not answer in time is closed, not returned: dropping its future would leave the pool a
    /// slot short for ever once the network is silent (sqlx issue 4349).
    pub(crate) async fn run<T>(
        &self,
        work: impl AsyncFnOnce(&mut PgConnection) -> Result<T, sqlx::Error>,
    ) -> Result<T, StoreError> {
        let mut connection = self.pool.acquire().await?;
        if let Ok(done) = tokio::time::timeout(self.limit, work(&mut connection)).await {
            return Ok(done?);
        }
        drop(connection.detach());
        Err(StoreError::Timeout(self.limit))
    }

    /// Like [`Store::run`], but tries again what passes by itself, a few times.
    pub(crate) async fn run_again<T>(
        &self,
        work: impl AsyncFn(&mut PgConnection) -> Result<T, sqlx::Error>,
    ) -> Result<T, StoreError> {
        let mut tries = 0;
        loop {
            match self.run(&work).await {
                Err(error) if error.is_transient() && tries < 3 => {
                    tries += 1;
                    tracing::debug!(%error, tries, "trying the statement again");
                }
                done => return done,
            }
        }
    }

    /// The database's clock.
    pub async fn now(&self) -> Result<crate::Time, StoreError> {
        self.run(async |db| sqlx::query_scalar("SELECT clock_timestamp()").fetch_one(db).await).await
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
            Self::Audit => Duration::from_secs(120),
        }
    }
}

/// Settings of each connection. Postgres has no time limits by default.
///
/// Dispatch: every statement finds its rows by key, whatever the statistics of a table that was empty a minute ago
/// say; a hash join or a scan of all history would be chosen by mistake only. Audit: a filter that is not set must not
/// spoil the plan of those that are, so each question is planned with its values.
fn settings(purpose: Purpose) -> Vec<(&'static str, &'static str)> {
    let mut settings = vec![("idle_in_transaction_session_timeout", "15s"), ("jit", "off")];
    settings.extend(match purpose {
        Purpose::Dispatch => [
            ("statement_timeout", "8s"),
            ("lock_timeout", "4s"),
            ("enable_seqscan", "off"),
            ("enable_hashjoin", "off"),
            ("enable_mergejoin", "off"),
        ]
        .as_slice(),
        Purpose::Audit => {
            [("statement_timeout", "110s"), ("lock_timeout", "4s"), ("plan_cache_mode", "force_custom_plan")].as_slice()
        }
    });
    settings
}
