//! What the benchmark asks the database: how much was written, how it went, and a long history to run against.

use redial_proto::CallId;
use sqlx::{
    ConnectOptions, Executor, PgPool,
    postgres::{PgConnectOptions, PgPoolOptions},
};

use crate::{StoreError, Time};

/// A database under measurement. Not for dispatchers: its statements may take minutes.
#[derive(Clone, Debug)]
pub struct Measure(PgPool);

/// Calls that one statement of [`Measure::fill_history`] writes.
const CHUNK: i64 = 250_000;

impl Measure {
    /// Connects; two connections, no time limits.
    pub async fn connect(url: &str) -> Result<Self, StoreError> {
        let options: PgConnectOptions = url.parse()?;
        let options = options.application_name("redial-bench").disable_statement_logging();
        Ok(Self(PgPoolOptions::new().max_connections(2).connect_with(options).await?))
    }

    /// Closes all connections.
    pub async fn close(&self) {
        self.0.close().await;
    }

    /// Cleans up what is dead and writes out what is dirty, so that a measurement does not pay for the one before it.
    pub async fn settle(&self) -> Result<(), StoreError> {
        self.0.execute("VACUUM").await?;
        self.0.execute("CHECKPOINT").await?;
        Ok(())
    }

    /// The server's version, as it says it.
    pub async fn version(&self) -> Result<String, StoreError> {
        Ok(sqlx::query_scalar("SELECT split_part(version(), ' on ', 1)").fetch_one(&self.0).await?)
    }

    /// Bytes of write-ahead log since the server was made.
    pub async fn wal_bytes(&self) -> Result<u64, StoreError> {
        let bytes: i64 = sqlx::query_scalar("SELECT (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::bigint")
            .fetch_one(&self.0)
            .await?;
        Ok(u64::try_from(bytes).unwrap_or(0))
    }

    /// Bytes of all tables of a schema, their indexes and compressed values included.
    pub async fn table_bytes(&self, schema: &str) -> Result<u64, StoreError> {
        let bytes: i64 = sqlx::query_scalar(
            "SELECT COALESCE(sum(pg_total_relation_size(c.oid)), 0)::bigint
             FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
             WHERE n.nspname = $1 AND c.relkind = 'r'",
        )
        .bind(schema)
        .fetch_one(&self.0)
        .await?;
        Ok(u64::try_from(bytes).unwrap_or(0))
    }

    /// How often jobs of calls with ids in this range (bounds excluded) were published again.
    pub async fn republished_between(&self, first: CallId, last: CallId) -> Result<u64, StoreError> {
        let count: i64 =
            sqlx::query_scalar("SELECT COALESCE(sum(publish_no - 1), 0)::bigint FROM calls WHERE id > $1 AND id < $2")
                .bind(first.0)
                .bind(last.0)
                .fetch_one(&self.0)
                .await?;
        Ok(u64::try_from(count).unwrap_or(0))
    }

    /// The longest time from submission to end, in ms, of calls with ids in this range (bounds excluded).
    pub async fn longest_between(&self, first: CallId, last: CallId) -> Result<f64, StoreError> {
        Ok(sqlx::query_scalar(
            "SELECT COALESCE(max(extract(epoch FROM finished_at - submitted_at)) * 1000, 0)::double precision
             FROM calls WHERE id > $1 AND id < $2",
        )
        .bind(first.0)
        .bind(last.0)
        .fetch_one(&self.0)
        .await?)
    }

    /// True while any task has not ended.
    pub async fn any_live_task(&self) -> Result<bool, StoreError> {
        Ok(sqlx::query_scalar("SELECT EXISTS (SELECT FROM tasks WHERE finished_at IS NULL)").fetch_one(&self.0).await?)
    }

    /// How many tasks succeeded after so many turns.
    pub async fn tasks_answered(&self, turns: u32) -> Result<u64, StoreError> {
        let count: i64 = sqlx::query_scalar("SELECT count(*) FROM tasks WHERE state = 'succeeded' AND turns = $1")
            .bind(crate::int(turns))
            .fetch_one(&self.0)
            .await?;
        Ok(u64::try_from(count).unwrap_or(0))
    }

    /// Writes so many ended calls with their attempts, one for each ms from `begin` on, and leaves the tables vacuumed.
    /// `arguments` is also the output. `tell` gets the number of calls so far.
    pub async fn fill_history(
        &self,
        begin: Time,
        calls: u32,
        arguments: &str,
        tell: impl Fn(i64),
    ) -> Result<(), StoreError> {
        let calls = i64::from(calls);
        for from in (0..calls).step_by(usize::try_from(CHUNK).unwrap_or(usize::MAX)) {
            let until = calls.min(from + CHUNK);
            tokio::try_join!(
                self.fill(include_str!("../sql/fill_calls.sql"), begin, (from, until), arguments),
                self.fill(include_str!("../sql/fill_attempts.sql"), begin, (from, until), arguments),
            )?;
            tell(until);
        }
        self.0.execute("VACUUM ANALYZE calls").await?;
        self.0.execute("VACUUM ANALYZE attempts").await?;
        self.settle().await
    }

    async fn fill(
        &self,
        statement: &'static str,
        begin: Time,
        (from, until): (i64, i64),
        arguments: &str,
    ) -> Result<(), StoreError> {
        sqlx::query(statement).bind(from).bind(until).bind(begin).bind(arguments).execute(&self.0).await?;
        Ok(())
    }
}
