//! The contents of the database, read without the store.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use redial_proto::{CallId, CallState, RetryOverride, RetryPolicy, TaskId, ToolEffect, ToolSpec};
use sqlx::{PgConnection, PgPool, Row, postgres::PgRow};
use uuid::Uuid;

use super::{tasks::TaskFacts, walls::Stray};

/// A call as it stands.
#[derive(Clone, Debug)]
pub struct CallFacts {
    pub id: CallId,
    /// Whose it is.
    pub tenant: String,
    pub tool: String,
    pub state: CallState,
    /// Attempts started.
    pub attempt: u32,
    /// Attempts allowed.
    pub max_attempts: u32,
    /// What its tool does to the world.
    pub effect: ToolEffect,
    pub key: Option<String>,
    /// When it was accepted.
    pub submitted_at: DateTime<Utc>,
    /// When it ended.
    pub finished_at: Option<DateTime<Utc>>,
    /// Why it ended without success.
    pub class: Option<String>,
    /// Which task asked for it.
    pub asked_by: Option<Asked>,
    /// Its ended attempts, in order.
    pub attempts: Vec<AttemptFacts>,
}

/// A tool call that a model asked for.
#[derive(Clone, Debug)]
pub struct Asked {
    pub task: TaskId,
    pub turn: u32,
    /// With these arguments: JSON.
    pub arguments: String,
    /// The tool may be called again and again.
    pub polling: bool,
}

#[derive(Clone, Debug)]
pub struct AttemptFacts {
    /// From 1.
    pub attempt: u32,
    pub worker: String,
    /// When its lease began.
    pub started_at: DateTime<Utc>,
    /// When its end was committed.
    pub ended_at: DateTime<Utc>,
    /// Why it failed; `None` is a success.
    pub class: Option<String>,
    /// When the next one was due.
    pub retry_at: Option<DateTime<Utc>>,
    pub has_output: bool,
}

/// Everything that the tables say of calls.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    pub calls: HashMap<CallId, CallFacts>,
    /// Tasks with their steps and messages.
    pub tasks: Vec<TaskFacts>,
    pub late_reports: u64,
    /// Rows with something of another tenant.
    pub strays: Vec<Stray>,
}

impl Evidence {
    /// Reads the tables as they are at one moment: calls may still run.
    pub async fn at_once(db: &PgPool) -> Self {
        let mut transaction = db.begin().await.unwrap();
        let snapshot = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY";
        sqlx::raw_sql(snapshot).execute(&mut *transaction).await.unwrap();
        Self::read(&mut transaction).await
    }

    /// Reads the tables, within one transaction if the caller has one open.
    pub async fn read(db: &mut PgConnection) -> Self {
        let mut calls: HashMap<CallId, CallFacts> = sqlx::query(
            "SELECT c.id, c.tenant, c.tool, c.state, c.attempt, c.effect, c.key, c.submitted_at, c.finished_at, c.class,
                    c.retry::text AS retry, t.spec::text AS spec, c.task_id, c.turn,
                    CASE WHEN c.call_index > 0 THEN c.arguments::text END AS arguments
             FROM calls c LEFT JOIN tools t ON t.name = c.tool",
        )
        .fetch_all(&mut *db)
        .await
        .unwrap()
        .iter()
        .map(call)
        .map(|call| (call.id, call))
        .collect();
        let attempts = sqlx::query(
            "SELECT call_id, attempt, worker, started_at, ended_at, class, retry_at, output IS NOT NULL AS has_output
             FROM attempts ORDER BY call_id, attempt",
        );
        for row in attempts.fetch_all(&mut *db).await.unwrap() {
            let id = CallId(row.get("call_id"));
            let call = calls.get_mut(&id).unwrap_or_else(|| panic!("attempts of call {id}, which is not there"));
            call.attempts.push(attempt(&row));
        }
        let late: i64 = sqlx::query_scalar("SELECT count(*) FROM late_reports").fetch_one(&mut *db).await.unwrap();
        let tasks = TaskFacts::read(&mut *db).await;
        let strays = Stray::read(db).await;
        Self { calls, tasks, late_reports: late.try_into().unwrap(), strays }
    }

    /// Counts the calls in this state.
    pub fn count(&self, state: CallState) -> usize {
        self.calls.values().filter(|call| call.state == state).count()
    }

    /// Returns all ended attempts.
    pub fn attempts(&self) -> impl Iterator<Item = &AttemptFacts> {
        self.calls.values().flat_map(|call| &call.attempts)
    }

    /// Counts the attempts that were taken for lost.
    pub fn lost(&self) -> usize {
        self.attempts().filter(|attempt| attempt.class.as_deref() == Some("lost")).count()
    }
}

fn call(row: &PgRow) -> CallFacts {
    let over: Option<String> = row.get("retry");
    let over: RetryOverride = over.map_or_else(Default::default, |text| serde_json::from_str(&text).unwrap());
    let spec: Option<String> = row.get("spec");
    let spec: Option<ToolSpec> = spec.map(|text| serde_json::from_str(&text).unwrap());
    let policy = spec.as_ref().map_or_else(RetryPolicy::default, |spec| spec.retry);
    CallFacts {
        id: CallId(row.get::<Uuid, _>("id")),
        tenant: row.get("tenant"),
        tool: row.get("tool"),
        state: row.get::<String, _>("state").parse().unwrap(),
        attempt: row.get::<i32, _>("attempt").try_into().unwrap(),
        max_attempts: policy.with(&over).max_attempts,
        effect: row.get::<String, _>("effect").parse().unwrap(),
        key: row.get("key"),
        submitted_at: row.get("submitted_at"),
        finished_at: row.get("finished_at"),
        class: row.get("class"),
        asked_by: row.get::<Option<String>, _>("arguments").map(|arguments| Asked {
            task: TaskId(row.get("task_id")),
            turn: row.get::<i32, _>("turn").try_into().unwrap(),
            arguments,
            polling: spec.is_some_and(|spec| spec.polling),
        }),
        attempts: Vec::new(),
    }
}

fn attempt(row: &PgRow) -> AttemptFacts {
    AttemptFacts {
        attempt: row.get::<i32, _>("attempt").try_into().unwrap(),
        worker: row.get("worker"),
        started_at: row.get("started_at"),
        ended_at: row.get("ended_at"),
        class: row.get("class"),
        retry_at: row.get("retry_at"),
        has_output: row.get("has_output"),
    }
}
