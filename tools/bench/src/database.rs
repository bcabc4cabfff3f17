//! What the benchmark asks Postgres: how much was written, how calls and tasks ended; and the long history that one case
//! runs against.

use std::{collections::HashMap, ops::Range};

use chrono::{DateTime, Utc};
use redial_proto::CallId;
use sqlx::{
    ConnectOptions, Executor, PgPool,
    postgres::{PgConnectOptions, PgPoolOptions, types::Oid},
};
use uuid::Uuid;

/// Calls that one statement of [`Database::fill_history`] writes.
const CHUNK: i64 = 250_000;

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
    /// All calls.
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

    /// Vacuums and writes a checkpoint, so that a measurement does not pay for the one before it.
    pub(crate) async fn vacuum(&self) -> anyhow::Result<()> {
        self.pool.execute("VACUUM").await?;
        self.pool.execute("CHECKPOINT").await?;
        Ok(())
    }

    /// The server's name and version.
    pub(crate) async fn version(&self) -> anyhow::Result<String> {
        Ok(sqlx::query_scalar("SELECT split_part(version(), ' on ', 1)").fetch_one(&self.pool).await?)
    }

    /// A setting of the server, as it shows it.
    pub(crate) async fn setting(&self, name: &str) -> anyhow::Result<String> {
        Ok(sqlx::query_scalar("SELECT current_setting($1)").bind(name).fetch_one(&self.pool).await?)
    }

    /// Bytes of write-ahead log since the server was initialised.
    pub(crate) async fn wal_bytes(&self) -> anyhow::Result<u64> {
        let bytes: i64 = sqlx::query_scalar("SELECT (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::bigint")
            .fetch_one(&self.pool)
            .await?;
        Ok(u64::try_from(bytes)?)
    }

    /// Where the write-ahead log ends, on disk.
    pub(crate) async fn wal_position(&self) -> anyhow::Result<String> {
        Ok(sqlx::query_scalar("SELECT pg_current_wal_flush_lsn()::text").fetch_one(&self.pool).await?)
    }

    /// Bytes of write-ahead log between two positions.
    pub(crate) async fn wal_between(&self, from: &str, until: &str) -> anyhow::Result<u64> {
        let bytes: i64 = sqlx::query_scalar("SELECT ($2::pg_lsn - $1::pg_lsn)::bigint")
            .bind(from)
            .bind(until)
            .fetch_one(&self.pool)
            .await?;
        Ok(u64::try_from(bytes)?)
    }

    /// The names of tables and indexes by the numbers of their database and file. A partition has the name of its whole,
    /// the table of large values that of its table.
    pub(crate) async fn relations(&self) -> anyhow::Result<HashMap<(u32, u32), String>> {
        let relations: Vec<(Oid, Oid, String)> = sqlx::query_as(
            "SELECT d.oid, pg_relation_filenode(c.oid)::oid,
                 COALESCE(o.relname || ' (large values)', w.relname)::text || CASE WHEN n.nspname = 'pg_catalog' THEN ' (catalog)' ELSE '' END
             FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace CROSS JOIN pg_database d
             LEFT JOIN pg_class w ON w.oid = COALESCE(pg_partition_root(c.oid), c.oid)
             LEFT JOIN pg_index i ON i.indexrelid = c.oid
             LEFT JOIN pg_class o ON o.reltoastrelid = COALESCE(i.indrelid, c.oid)
             WHERE d.datname = current_database() AND pg_relation_filenode(c.oid) IS NOT NULL",
        )
        .fetch_all(&self.pool)
        .await?;
        Ok(relations.into_iter().map(|(database, file, name)| ((database.0, file.0), name)).collect())
    }

    /// Bytes of all tables of a schema, their indexes and compressed values included.
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

    /// True while any call has not ended.
    pub(crate) async fn any_live_call(&self) -> anyhow::Result<bool> {
        let live = "SELECT EXISTS (SELECT FROM calls WHERE wake_at IS NOT NULL ORDER BY wake_at LIMIT 1)";
        Ok(sqlx::query_scalar(live).fetch_one(&self.pool).await?)
    }

    /// True while a call of this tool, submitted after this id, has not ended. The last ones are looked at first.
    pub(crate) async fn any_live_call_of(&self, tool: &str, first: CallId) -> anyhow::Result<bool> {
        let live = "SELECT (SELECT id FROM calls WHERE tool = $1 AND id > $2 AND wake_at IS NOT NULL
                            ORDER BY tool DESC, id DESC LIMIT 1) IS NOT NULL";
        Ok(sqlx::query_scalar(live).bind(tool).bind(first.0).fetch_one(&self.pool).await?)
    }

    /// Pieces of large bodies that are kept.
    pub(crate) async fn pieces(&self) -> anyhow::Result<i64> {
        Ok(sqlx::query_scalar("SELECT count(*) FROM payloads").fetch_one(&self.pool).await?)
    }

    /// How many calls of this tool wait for a retry, in the backlog or for their time.
    pub(crate) async fn waiting_retries(&self, tool: &str) -> anyhow::Result<u64> {
        let count = "SELECT count(*) FROM calls
                     WHERE tool = $1 AND attempt > 0 AND wake_at IS NOT NULL AND state IN ('ready', 'retry_wait')";
        let count: i64 = sqlx::query_scalar(count).bind(tool).fetch_one(&self.pool).await?;
        Ok(u64::try_from(count)?)
    }

    /// How many calls with ids in this range (bounds excluded) succeeded.
    pub(crate) async fn succeeded_between(&self, first: CallId, last: CallId) -> anyhow::Result<u64> {
        let count: i64 =
            sqlx::query_scalar("SELECT count(*) FROM calls WHERE id > $1 AND id < $2 AND state = 'succeeded'")
                .bind(first.0)
                .bind(last.0)
                .fetch_one(&self.pool)
                .await?;
        Ok(u64::try_from(count)?)
    }

    /// How often jobs of calls with ids in this range (bounds excluded) were published again.
    pub(crate) async fn republished_between(&self, first: CallId, last: CallId) -> anyhow::Result<u64> {
        let count: i64 =
            sqlx::query_scalar("SELECT COALESCE(sum(publish_no - 1), 0)::bigint FROM calls WHERE id > $1 AND id < $2")
                .bind(first.0)
                .bind(last.0)
                .fetch_one(&self.pool)
                .await?;
        Ok(u64::try_from(count)?)
    }

    /// The longest time from submission to end, in ms, of calls with ids in this range (bounds excluded).
    pub(crate) async fn longest_between(&self, first: CallId, last: CallId) -> anyhow::Result<f64> {
        Ok(sqlx::query_scalar(
            "SELECT COALESCE(max(extract(epoch FROM finished_at - submitted_at)) * 1000, 0)::double precision
             FROM calls WHERE id > $1 AND id < $2",
        )
        .bind(first.0)
        .bind(last.0)
        .fetch_one(&self.pool)
        .await?)
    }

    /// True while any task has not ended.
    pub(crate) async fn any_live_task(&self) -> anyhow::Result<bool> {
        Ok(sqlx::query_scalar("SELECT EXISTS (SELECT FROM tasks WHERE finished_at IS NULL)")
            .fetch_one(&self.pool)
            .await?)
    }

    /// How many tasks succeeded after so many turns.
    pub(crate) async fn tasks_answered(&self, turns: u32) -> anyhow::Result<u64> {
        let count: i64 = sqlx::query_scalar("SELECT count(*) FROM tasks WHERE state = 'succeeded' AND turns = $1")
            .bind(i32::try_from(turns)?)
            .fetch_one(&self.pool)
            .await?;
        Ok(u64::try_from(count)?)
    }

    /// Writes so many ended calls with their attempts, one for each ms from `begin` on, and leaves the tables vacuumed.
    /// `arguments` is also the output. `progress` gets the number of calls so far.
    pub(crate) async fn fill_history(
        &self,
        begin: DateTime<Utc>,
        calls: u32,
        arguments: &str,
        progress: impl Fn(i64),
    ) -> anyhow::Result<()> {
        let calls = i64::from(calls);
        for from in (0..calls).step_by(usize::try_from(CHUNK)?) {
            let until = calls.min(from + CHUNK);
            tokio::try_join!(
                self.fill(include_str!("../sql/fill_calls.sql"), begin, from..until, arguments),
                self.fill(include_str!("../sql/fill_attempts.sql"), begin, from..until, arguments),
            )?;
            progress(until);
        }
        self.pool.execute("VACUUM ANALYZE calls").await?;
        self.pool.execute("VACUUM ANALYZE attempts").await?;
        self.vacuum().await
    }

    /// Writes the steps and messages of the varied history's tasks.
    pub(crate) async fn fill_varied_steps(&self) -> anyhow::Result<()> {
        self.pool.execute(include_str!("../sql/fill_varied_steps.sql")).await?;
        Ok(())
    }

    /// Writes the keys of the varied history's calls, and the places of those of tasks.
    pub(crate) async fn fill_varied_places(&self) -> anyhow::Result<()> {
        self.pool.execute(include_str!("../sql/fill_varied_places.sql")).await?;
        Ok(())
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

    /// Vacuums and analyses every table.
    pub(crate) async fn vacuum_analyze(&self) -> anyhow::Result<()> {
        self.pool.execute("VACUUM ANALYZE").await?;
        self.pool.execute("CHECKPOINT").await?;
        Ok(())
    }

    /// Calls on record.
    pub(crate) async fn calls(&self) -> anyhow::Result<u32> {
        let count: i64 = sqlx::query_scalar("SELECT count(*) FROM calls").fetch_one(&self.pool).await?;
        Ok(u32::try_from(count)?)
    }

    /// When the last call was submitted.
    pub(crate) async fn last_submitted_at(&self) -> anyhow::Result<DateTime<Utc>> {
        Ok(sqlx::query_scalar("SELECT max(submitted_at) FROM calls").fetch_one(&self.pool).await?)
    }

    /// Statements of new connections write no plans any more.
    pub(crate) async fn explain_nothing(&self) -> anyhow::Result<()> {
        self.pool.execute("ALTER DATABASE redial_plans RESET ALL").await?;
        Ok(())
    }

    /// Ids of a call and of a task of the tenant `default` in the middle of the history.
    pub(crate) async fn middle(&self) -> anyhow::Result<(Uuid, Uuid)> {
        let middle = "SELECT id FROM calls
                      WHERE task_id IS NULL AND tenant = 'default' AND finished_at >= clock_timestamp() - interval '15 days'
                      ORDER BY finished_at LIMIT 1";
        let call = sqlx::query_scalar(middle).fetch_one(&self.pool).await?;
        let task = "SELECT id FROM tasks WHERE id > $1 AND tenant = 'default' ORDER BY id LIMIT 1";
        Ok((call, sqlx::query_scalar(task).bind(call).fetch_one(&self.pool).await?))
    }

    /// From now on, every statement of new connections writes its plan to the server's log.
    pub(crate) async fn explain_everything(&self) -> anyhow::Result<()> {
        for setting in [
            "session_preload_libraries = 'auto_explain'",
            "auto_explain.log_min_duration = 0",
            "auto_explain.log_analyze = on",
            "auto_explain.log_buffers = on",
            "auto_explain.log_timing = off",
            "auto_explain.log_format = 'json'",
        ] {
            let statement = format!("ALTER DATABASE redial_plans SET {setting}");
            self.pool.execute(sqlx::raw_sql(sqlx::AssertSqlSafe(statement))).await?;
        }
        Ok(())
    }

    async fn fill(
        &self,
        statement: &'static str,
        begin: DateTime<Utc>,
        numbers: Range<i64>,
        arguments: &str,
    ) -> anyhow::Result<()> {
        let fill = sqlx::query(statement).bind(numbers.start).bind(numbers.end).bind(begin).bind(arguments);
        fill.execute(&self.pool).await?;
        Ok(())
    }
}
