//! What the benchmark asks Postgres: how much was written, how calls ended; and the long histories.

use std::ops::Range;

use chrono::{DateTime, Utc};
use redial_proto::CallId;
use sqlx::{
    ConnectOptions, Executor, PgPool,
    postgres::{PgConnectOptions, PgPoolOptions},
};
use uuid::Uuid;

/// A database with Redial's tables, without time limits: its statements may take minutes.
#[derive(Clone, Debug)]
pub(crate) struct Database {
    pub(crate) url: String,
    pool: PgPool,
}

/// A varied history.
#[derive(Debug)]
pub(crate) struct Past {
    pub(crate) end: DateTime<Utc>,
    /// Calls an hour.
    pub(crate) an_hour: i64,
    pub(crate) calls: i64,
}

/// Connects with the planner settings of a dispatcher, whatever the statistics of a new table say.
pub(crate) async fn connect(url: &str, connections: u32) -> anyhow::Result<PgPool> {
    let planner = [
        ("enable_seqscan", "off"),
        ("enable_hashjoin", "off"),
        ("enable_mergejoin", "off"),
        ("enable_bitmapscan", "off"),
        ("jit", "off"),
    ];
    let options: PgConnectOptions = url.parse()?;
    let options = options.application_name("redial-bench").options(planner).disable_statement_logging();
    Ok(PgPoolOptions::new().max_connections(connections).connect_with(options).await?)
}

impl Database {
    /// Creates Redial's tables and connects.
    pub(crate) async fn open(url: &str) -> anyhow::Result<Self> {
        redial_store::admin::migrate(url).await?;
        Self::connect(url).await
    }

    /// Connects to a database whose tables exist, perhaps of an older program.
    pub(crate) async fn connect(url: &str) -> anyhow::Result<Self> {
        Ok(Self { url: url.to_owned(), pool: connect(url, 2).await? })
    }

    /// Closes all connections; otherwise the server would cut them when it stops, and each would log that.
    pub(crate) async fn close(&self) {
        self.pool.close().await;
    }

    pub(crate) async fn execute(&self, statements: &'static str) -> anyhow::Result<()> {
        self.pool.execute(statements).await?;
        Ok(())
    }

    /// Vacuums and writes a checkpoint, so that a measurement does not pay for the one before it.
    pub(crate) async fn vacuum(&self) -> anyhow::Result<()> {
        self.execute("VACUUM").await?;
        self.execute("CHECKPOINT").await
    }

    /// Returns the server's name and version, and the values of `shared_buffers` and `max_wal_size`.
    pub(crate) async fn server(&self) -> anyhow::Result<(String, String, String)> {
        let server = "SELECT split_part(version(), ' on ', 1), current_setting('shared_buffers'), current_setting('max_wal_size')";
        Ok(sqlx::query_as(server).fetch_one(&self.pool).await?)
    }

    /// Counts the bytes of write-ahead log since the server was initialised.
    pub(crate) async fn wal_bytes(&self) -> anyhow::Result<u64> {
        let bytes: i64 = sqlx::query_scalar("SELECT (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::bigint")
            .fetch_one(&self.pool)
            .await?;
        Ok(u64::try_from(bytes)?)
    }

    /// Counts the bytes of all tables of a schema, their indexes and compressed values included.
    pub(crate) async fn table_bytes(&self, schema: &str) -> anyhow::Result<u64> {
        let bytes: i64 = sqlx::query_scalar(
            "SELECT COALESCE(sum(pg_total_relation_size(c.oid)), 0)::bigint
             FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
             WHERE n.nspname = $1 AND c.relkind = 'r'",
        )
        .bind(schema)
        .fetch_one(&self.pool)
        .await?;
        Ok(u64::try_from(bytes)?)
    }

    /// True while a call of this tool, submitted after this id, has not ended. The last ones are looked at first.
    pub(crate) async fn any_live_call_of(&self, tool: &str, first: CallId) -> anyhow::Result<bool> {
        let live = "SELECT (SELECT id FROM calls WHERE tool = $1 AND id > $2 AND wake_at IS NOT NULL
                            ORDER BY tool DESC, id DESC LIMIT 1) IS NOT NULL";
        Ok(sqlx::query_scalar(live).bind(tool).bind(first.0).fetch_one(&self.pool).await?)
    }

    /// Counts the calls with ids in this range (bounds excluded) that succeeded.
    pub(crate) async fn succeeded_between(&self, first: CallId, last: CallId) -> anyhow::Result<u64> {
        let count: i64 =
            sqlx::query_scalar("SELECT count(*) FROM calls WHERE id > $1 AND id < $2 AND state = 'succeeded'")
                .bind(first.0)
                .bind(last.0)
                .fetch_one(&self.pool)
                .await?;
        Ok(u64::try_from(count)?)
    }

    /// Runs a statement that writes entries with these numbers of a varied history.
    pub(crate) async fn fill_varied(
        &self,
        statement: &'static str,
        numbers: Range<i64>,
        past: &Past,
    ) -> anyhow::Result<()> {
        let fill = sqlx::query(statement).bind(numbers.start).bind(numbers.end);
        fill.bind(past.end).bind(past.an_hour).bind(past.calls).execute(&self.pool).await?;
        Ok(())
    }

    /// Writes the attempts of the varied history's calls that were submitted in this time.
    pub(crate) async fn fill_varied_attempts(&self, from: DateTime<Utc>, until: DateTime<Utc>) -> anyhow::Result<()> {
        let fill = sqlx::query(include_str!("../sql/fill_varied_attempts.sql")).bind(from).bind(until);
        fill.execute(&self.pool).await?;
        Ok(())
    }

    /// Returns ids of a call and of a task of the tenant `default` in the middle of the history.
    pub(crate) async fn middle(&self) -> anyhow::Result<(Uuid, Uuid)> {
        let middle = "SELECT id FROM calls
                      WHERE task_id IS NULL AND tenant = 'default' AND finished_at >= clock_timestamp() - interval '15 days'
                      ORDER BY finished_at LIMIT 1";
        let call = sqlx::query_scalar(middle).fetch_one(&self.pool).await?;
        let task = "SELECT id FROM tasks WHERE id > $1 AND tenant = 'default' ORDER BY id LIMIT 1";
        Ok((call, sqlx::query_scalar(task).bind(call).fetch_one(&self.pool).await?))
    }
}
