//! Reads the tables while roles change them. It does not go through the proxies, and survives an outage.

use std::time::Duration;

use chrono::{DateTime, Utc};
use redial_proto::{CallId, TaskId};
use sqlx::{PgConnection, PgPool, postgres::PgPoolOptions};
use uuid::Uuid;

use crate::Evidence;

/// A database that does not answer within this time counts as down.
const ANSWER: Duration = Duration::from_secs(2);

/// An attempt that was running.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Running {
    pub tool: String,
    pub call: CallId,
    pub attempt: i32,
}

/// How far some calls have come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// So many were never started.
    pub waiting: u64,
    /// So many have not ended.
    pub open: u64,
    /// When the last of those that were started was.
    pub last_start: Option<DateTime<Utc>>,
}

/// The longest time in which nothing succeeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pause {
    pub time: Duration,
    /// When it was over.
    pub until: DateTime<Utc>,
}

/// A transaction that stays open until this is dropped.
#[derive(Debug)]
pub struct OpenTransaction {
    _connection: PgConnection,
}

/// Connections to a database. Every method returns `None` while the database is down.
#[derive(Clone, Debug)]
pub struct Observer(PgPool);

impl Observer {
    /// Connects with the first statement.
    pub fn new(url: &str) -> Self {
        let options = PgPoolOptions::new().max_connections(4).acquire_timeout(ANSWER);
        Self(options.connect_lazy(url).unwrap())
    }

    /// Turns to another address, where the database is from now on.
    pub fn turn_to(&self, url: &str) {
        self.0.set_connect_options(url.parse().unwrap());
    }

    /// Counts the calls and tasks that have not ended, without the calls of some tools.
    pub async fn live_besides(&self, tools: &[&str]) -> Option<u64> {
        let live = "SELECT (SELECT count(*) FROM calls WHERE wake_at IS NOT NULL AND tool <> ALL($1))
                         + (SELECT count(*) FROM tasks WHERE state IN ('waiting', 'running'))";
        let live: i64 = self.ask(async |db| sqlx::query_scalar(live).bind(tools).fetch_one(db).await).await?;
        u64::try_from(live).ok()
    }

    /// Lists calls and tasks that have not ended, a line each, at most twenty.
    pub async fn living(&self) -> Option<Vec<String>> {
        let lines = "SELECT format('call %s of %s is %s, attempt %s, job published %s times, due in %s, worker %s', id,
                                   tool, state, attempt, publish_no, wake_at - clock_timestamp(), worker)
                     FROM calls WHERE wake_at IS NOT NULL
                     UNION ALL
                     SELECT format('task %s is %s', id, state) FROM tasks WHERE state IN ('waiting', 'running')
                     LIMIT 20";
        self.ask(async |db| sqlx::query_scalar(lines).fetch_all(db).await).await
    }

    /// Counts the calls that have ended, and those that are in the statistics or in the queue for them.
    pub async fn ended_and_counted(&self) -> Option<(i64, i64)> {
        let sums = "SELECT (SELECT count(*) FROM calls WHERE finished_at IS NOT NULL),
                           (SELECT COALESCE(sum(counts[1]), 0)::bigint FROM stats WHERE kind = 'call')
                               + (SELECT count(*) FROM uncounted_calls)";
        self.ask(async |db| sqlx::query_as(sums).fetch_one(db).await).await
    }

    /// Returns the attempts that a worker runs.
    pub async fn running_on(&self, worker: &str) -> Option<Vec<Running>> {
        let running =
            "SELECT id, attempt, tool FROM calls WHERE state = 'running' AND wake_at IS NOT NULL AND worker = $1";
        let rows: Vec<(Uuid, i32, String)> =
            self.ask(async |db| sqlx::query_as(running).bind(worker).fetch_all(db).await).await?;
        Some(rows.into_iter().map(|(call, attempt, tool)| Running { tool, call: CallId(call), attempt }).collect())
    }

    /// Counts those of these attempts that are neither over nor followed by another one that was started.
    pub async fn stuck(&self, attempts: &[Running]) -> Option<usize> {
        let calls: Vec<Uuid> = attempts.iter().map(|running| running.call.0).collect();
        let numbers: Vec<i32> = attempts.iter().map(|running| running.attempt).collect();
        let stuck = "SELECT count(*) FROM calls c JOIN unnest($1::uuid[], $2::int[]) AS r (id, attempt) ON r.id = c.id
                     WHERE c.wake_at IS NOT NULL AND c.attempt = r.attempt";
        let stuck: i64 =
            self.ask(async |db| sqlx::query_scalar(stuck).bind(calls).bind(numbers).fetch_one(db).await).await?;
        usize::try_from(stuck).ok()
    }

    /// Counts the calls that were submitted after this.
    pub async fn submitted_since(&self, since: DateTime<Utc>) -> Option<i64> {
        let submitted = "SELECT count(*) FROM calls WHERE submitted_at > $1";
        self.ask(async |db| sqlx::query_scalar(submitted).bind(since).fetch_one(db).await).await
    }

    /// True if a worker's heartbeat came after this.
    pub async fn heard_since(&self, worker: &str, since: DateTime<Utc>) -> Option<bool> {
        let heard = "SELECT EXISTS (SELECT FROM workers WHERE id = $1 AND last_seen_at > $2)";
        self.ask(async |db| sqlx::query_scalar(heard).bind(worker).bind(since).fetch_one(db).await).await
    }

    /// True if a call has ended.
    pub async fn ended(&self, call: CallId) -> Option<bool> {
        let ended = "SELECT wake_at IS NULL FROM calls WHERE id = $1";
        self.ask(async |db| sqlx::query_scalar(ended).bind(call.0).fetch_one(db).await).await
    }

    /// Counts those of these tools that were registered.
    pub async fn registered(&self, tools: &[String]) -> Option<usize> {
        let known = "SELECT count(*) FROM tools WHERE name = ANY($1)";
        let known: i64 = self.ask(async |db| sqlx::query_scalar(known).bind(tools).fetch_one(db).await).await?;
        usize::try_from(known).ok()
    }

    pub async fn progress(&self, calls: &[CallId]) -> Option<Progress> {
        let progress = "SELECT count(*) FILTER (WHERE started_at IS NULL), count(*) FILTER (WHERE wake_at IS NOT NULL),
                               max(started_at)
                        FROM calls WHERE id = ANY($1)";
        let ids: Vec<Uuid> = calls.iter().map(|call| call.0).collect();
        let (waiting, open, last_start): (i64, i64, _) =
            self.ask(async |db| sqlx::query_as(progress).bind(ids).fetch_one(db).await).await?;
        Some(Progress { waiting: waiting.try_into().ok()?, open: open.try_into().ok()?, last_start })
    }

    /// Returns the call under a key of the usual tenant; `Some(None)` if there is none.
    pub async fn call_of_key(&self, key: &str) -> Option<Option<CallId>> {
        let call = "SELECT id FROM calls WHERE tenant = 'default' AND key = $1";
        let call: Option<Uuid> =
            self.ask(async |db| sqlx::query_scalar(call).bind(key).fetch_optional(db).await).await?;
        Some(call.map(CallId))
    }

    /// True if an attempt has succeeded whose end was committed after this.
    pub async fn completed_since(&self, since: DateTime<Utc>) -> Option<bool> {
        let completed = "SELECT EXISTS (SELECT FROM attempts WHERE ended_at > $1 AND class IS NULL)";
        self.ask(async |db| sqlx::query_scalar(completed).bind(since).fetch_one(db).await).await
    }

    /// Returns when a worker was last heard of; `Some(None)` if it has not registered yet.
    pub async fn last_seen(&self, worker: &str) -> Option<Option<DateTime<Utc>>> {
        let seen = "SELECT last_seen_at FROM workers WHERE id = $1";
        self.ask(async |db| sqlx::query_scalar(seen).bind(worker).fetch_optional(db).await).await
    }

    /// Returns some calls and tasks of a tenant, at most so many of each.
    pub async fn ids_of(&self, tenant: &str, limit: i64) -> Option<(Vec<CallId>, Vec<TaskId>)> {
        let calls = "SELECT id FROM calls WHERE tenant = $1 ORDER BY id DESC LIMIT $2";
        let tasks = "SELECT id FROM tasks WHERE tenant = $1 ORDER BY id DESC LIMIT $2";
        let calls: Vec<Uuid> =
            self.ask(async |db| sqlx::query_scalar(calls).bind(tenant).bind(limit).fetch_all(db).await).await?;
        let tasks: Vec<Uuid> =
            self.ask(async |db| sqlx::query_scalar(tasks).bind(tenant).bind(limit).fetch_all(db).await).await?;
        Some((calls.into_iter().map(CallId).collect(), tasks.into_iter().map(TaskId).collect()))
    }

    /// Returns the longest time between two successes of a tool in this span.
    pub async fn longest_pause(&self, tool: &str, from: DateTime<Utc>, until: DateTime<Utc>) -> Option<Pause> {
        let pause = "WITH ends AS (
                         SELECT $2 AS at UNION ALL SELECT $3 UNION ALL
                         SELECT a.ended_at FROM attempts a JOIN calls c ON c.id = a.call_id
                         WHERE a.ended_at BETWEEN $2 AND $3 AND a.class IS NULL AND c.tool = $1),
                     pauses AS (SELECT at, at - lag(at) OVER (ORDER BY at) AS pause FROM ends)
                     SELECT extract(epoch FROM pause)::float8, at FROM pauses WHERE pause IS NOT NULL
                     ORDER BY pause DESC LIMIT 1";
        let asked = async |db: &mut _| sqlx::query_as(pause).bind(tool).bind(from).bind(until).fetch_one(db).await;
        let (seconds, until): (f64, _) = self.ask(asked).await?;
        Some(Pause { time: Duration::try_from_secs_f64(seconds).ok()?, until })
    }

    /// Counts the calls of a tool that were submitted before this and have not ended.
    pub async fn open_of(&self, tool: &str, before: DateTime<Utc>) -> Option<u64> {
        let open = "SELECT count(*) FROM calls WHERE tool = $1 AND wake_at IS NOT NULL AND submitted_at < $2";
        let open: i64 =
            self.ask(async |db| sqlx::query_scalar(open).bind(tool).bind(before).fetch_one(db).await).await?;
        u64::try_from(open).ok()
    }

    /// True if the statistics have every call that ended before this.
    pub async fn counted_until(&self, until: DateTime<Utc>) -> Option<bool> {
        let counted = "SELECT NOT EXISTS (SELECT FROM uncounted_calls WHERE ended_at < $1)";
        self.ask(async |db| sqlx::query_scalar(counted).bind(until).fetch_one(db).await).await
    }

    pub async fn lock(&self, calls: &[CallId]) -> Option<OpenTransaction> {
        let ids: Vec<Uuid> = calls.iter().map(|call| call.0).collect();
        self.open(async |db| {
            sqlx::raw_sql("BEGIN").execute(&mut *db).await?;
            sqlx::query("SELECT FROM calls WHERE id = ANY($1) FOR UPDATE").bind(ids).execute(db).await
        })
        .await
    }

    /// Opens a transaction that has a number, as if it had written, and a snapshot.
    pub async fn write_for_long(&self) -> Option<OpenTransaction> {
        let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT pg_current_xact_id()";
        self.open(async |db| sqlx::raw_sql(begin).execute(db).await).await
    }

    async fn open<T>(
        &self,
        begin: impl AsyncFnOnce(&mut PgConnection) -> Result<T, sqlx::Error>,
    ) -> Option<OpenTransaction> {
        let opened = async {
            let mut connection = self.0.acquire().await.ok()?.detach();
            begin(&mut connection).await.ok()?;
            Some(OpenTransaction { _connection: connection })
        };
        tokio::time::timeout(ANSWER, opened).await.ok()?
    }

    /// Reads the tables. Panics if the database is down.
    pub async fn evidence(&self) -> Evidence {
        Evidence::at_once(&self.0).await
    }

    /// Returns the answer to a statement, if it arrives in time. A connection that did not answer is closed, because it
    /// may never work again.
    async fn ask<T>(&self, question: impl AsyncFnOnce(&mut PgConnection) -> Result<T, sqlx::Error>) -> Option<T> {
        let mut db = tokio::time::timeout(ANSWER, self.0.acquire()).await.ok()?.ok()?;
        if let Ok(Ok(answer)) = tokio::time::timeout(ANSWER, question(&mut db)).await {
            return Some(answer);
        }
        drop(db.detach());
        None
    }
}
