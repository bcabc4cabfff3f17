//! Questions about who serves which tool, and about what was rejected.

use std::time::Duration;

use chrono::{DateTime, Utc};
use redial_proto::{CallId, TaskId, TaskState};
use uuid::Uuid;

use super::Observer;

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
    /// How long.
    pub time: Duration,
    /// When it was over.
    pub until: DateTime<Utc>,
}

impl Observer {
    /// When a worker was last heard of; `Some(None)` if it has not registered yet.
    pub async fn last_seen(&self, worker: &str) -> Option<Option<DateTime<Utc>>> {
        let seen = "SELECT last_seen_at FROM workers WHERE id = $1";
        self.ask(async |db| sqlx::query_scalar(seen).bind(worker).fetch_optional(db).await).await
    }

    /// How far these calls have come.
    pub async fn progress(&self, calls: &[CallId]) -> Option<Progress> {
        let progress = "SELECT count(*) FILTER (WHERE started_at IS NULL), count(*) FILTER (WHERE wake_at IS NOT NULL),
                               max(started_at)
                        FROM calls WHERE id = ANY($1)";
        let (waiting, open, last_start): (i64, i64, _) =
            self.ask(async |db| sqlx::query_as(progress).bind(ids(calls)).fetch_one(db).await).await?;
        Some(Progress { waiting: waiting.try_into().ok()?, open: open.try_into().ok()?, last_start })
    }

    /// The workers that have ended attempts of these calls.
    pub async fn workers_of(&self, calls: &[CallId]) -> Option<Vec<String>> {
        let workers = "SELECT DISTINCT worker FROM attempts WHERE call_id = ANY($1)";
        self.ask(async |db| sqlx::query_scalar(workers).bind(ids(calls)).fetch_all(db).await).await
    }

    /// How many dead letters of submissions there are after this one, by tenant.
    pub async fn rejected_submissions(&self, last: i64) -> Option<Vec<(Option<String>, i64)>> {
        let letters =
            "SELECT tenant, count(*) FROM dead_letters WHERE source = 'intake' AND id > $1 GROUP BY 1 ORDER BY 1";
        self.ask(async |db| sqlx::query_as(letters).bind(last).fetch_all(db).await).await
    }

    /// Attempts that workers of this identity have ended.
    pub async fn attempts_of(&self, identity: &str) -> Option<i64> {
        let attempts = "SELECT count(*) FROM attempts WHERE starts_with(worker, $1 || '-')";
        self.ask(async |db| sqlx::query_scalar(attempts).bind(identity).fetch_one(db).await).await
    }

    /// Some calls and tasks of a tenant, at most so many of each.
    pub async fn ids_of(&self, tenant: &str, limit: i64) -> Option<(Vec<CallId>, Vec<TaskId>)> {
        let calls = "SELECT id FROM calls WHERE tenant = $1 ORDER BY id DESC LIMIT $2";
        let tasks = "SELECT id FROM tasks WHERE tenant = $1 ORDER BY id DESC LIMIT $2";
        let calls: Vec<Uuid> =
            self.ask(async |db| sqlx::query_scalar(calls).bind(tenant).bind(limit).fetch_all(db).await).await?;
        let tasks: Vec<Uuid> =
            self.ask(async |db| sqlx::query_scalar(tasks).bind(tenant).bind(limit).fetch_all(db).await).await?;
        Some((calls.into_iter().map(CallId).collect(), tasks.into_iter().map(TaskId).collect()))
    }

    /// An attempt on this worker has succeeded whose end was committed after this.
    pub async fn completed_on(&self, worker: &str, since: DateTime<Utc>) -> Option<bool> {
        let completed = "SELECT EXISTS (SELECT FROM attempts WHERE ended_at > $1 AND worker = $2 AND class IS NULL)";
        self.ask(async |db| sqlx::query_scalar(completed).bind(since).bind(worker).fetch_one(db).await).await
    }

    /// The longest time between two successes of a tool in this span.
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

    /// Calls of a tool that were submitted before this and have not ended.
    pub async fn open_of(&self, tool: &str, before: DateTime<Utc>) -> Option<u64> {
        let open = "SELECT count(*) FROM calls WHERE tool = $1 AND wake_at IS NOT NULL AND submitted_at < $2";
        let open: i64 =
            self.ask(async |db| sqlx::query_scalar(open).bind(tool).bind(before).fetch_one(db).await).await?;
        u64::try_from(open).ok()
    }

    /// The call under a key of the usual tenant; `Some(None)` if there is none.
    pub async fn call_of_key(&self, key: &str) -> Option<Option<CallId>> {
        let call = "SELECT id FROM calls WHERE tenant = 'default' AND key = $1";
        let call: Option<Uuid> =
            self.ask(async |db| sqlx::query_scalar(call).bind(key).fetch_optional(db).await).await?;
        Some(call.map(CallId))
    }

    /// The id of the newest dead letter; 0 if there is none.
    pub async fn last_dead_letter(&self) -> Option<i64> {
        let last = "SELECT coalesce(max(id), 0) FROM dead_letters";
        self.ask(async |db| sqlx::query_scalar(last).fetch_one(db).await).await
    }

    /// How many errors each dead letter after this one has, in order.
    pub async fn dead_letters_after(&self, id: i64) -> Option<Vec<i32>> {
        let errors = "SELECT error_count FROM dead_letters WHERE id > $1 ORDER BY id";
        self.ask(async |db| sqlx::query_scalar(errors).bind(id).fetch_all(db).await).await
    }

    /// The state of a task.
    pub async fn task_state(&self, task: TaskId) -> Option<TaskState> {
        let state = "SELECT state FROM tasks WHERE id = $1";
        let state: String = self.ask(async |db| sqlx::query_scalar(state).bind(task.0).fetch_one(db).await).await?;
        state.parse().ok()
    }
}

fn ids(calls: &[CallId]) -> Vec<Uuid> {
    calls.iter().map(|call| call.0).collect()
}
