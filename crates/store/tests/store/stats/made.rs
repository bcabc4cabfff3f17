//! Ended calls with their attempts, as values and as rows.

use chrono::TimeDelta;
use redial_proto::{CallId, ErrorClass};
use redial_store::Time;
use uuid::Uuid;

#[derive(Clone, Debug)]
pub(super) struct Made {
    pub(super) id: Uuid,
    pub(super) finished_at: Time,
    pub(super) total_ms: i64,
    pub(super) tool: String,
    pub(super) tenant: String,
    pub(super) state: &'static str,
    pub(super) class: Option<ErrorClass>,
    pub(super) attempts: Vec<Attempt>,
    /// The answer of a model turn that succeeded.
    pub(super) reply: Option<String>,
    /// Task, turn and call index.
    pub(super) task: Option<(Uuid, i32, i32)>,
    /// The broken rules and the repairs, as JSON.
    pub(super) details: Option<String>,
    pub(super) repairs: Option<String>,
}

#[derive(Clone, Debug)]
pub(super) struct Attempt {
    pub(super) worker: String,
    pub(super) class: Option<ErrorClass>,
    pub(super) duration_ms: Option<i64>,
}

impl Made {
    /// Makes a call of a tool that succeeded at once.
    pub(super) fn new(tool: &str, finished_at: Time) -> Self {
        let attempts = vec![Attempt { worker: "w-1".to_owned(), class: None, duration_ms: Some(7) }];
        Self {
            id: CallId::generate().0,
            // Postgres keeps microseconds.
            finished_at: Time::from_timestamp_micros(finished_at.timestamp_micros()).unwrap(),
            total_ms: 12,
            tool: tool.to_owned(),
            tenant: "default".to_owned(),
            state: "succeeded",
            class: None,
            attempts,
            reply: None,
            task: None,
            details: None,
            repairs: None,
        }
    }

    /// Ends it without success.
    pub(super) fn failed(self, state: &'static str, class: ErrorClass) -> Self {
        let mut attempts = self.attempts;
        for attempt in &mut attempts {
            attempt.class = Some(class);
        }
        if state == "refused" {
            attempts.clear();
        }
        Self { state, class: Some(class), attempts, ..self }
    }

    pub(super) fn in_task(self, task: Uuid, turn: i32, call_index: i32) -> Self {
        Self { task: Some((task, turn, call_index)), ..self }
    }

    /// Breaks a rule at each of these places.
    pub(super) fn broken_at(self, pointers: &[&str], rule: &str) -> Self {
        let error = |path: &&str| format!(r#"{{"path": "{path}", "rule": "{rule}", "allowed": ""}}"#);
        let errors: Vec<String> = pointers.iter().map(error).collect();
        Self { details: Some(format!("[{}]", errors.join(","))), ..self }
    }

    /// Repairs it at this place.
    pub(super) fn repaired_at(self, pointer: &str, kind: &str) -> Self {
        let repair = format!(r#"[{{"kind": "{kind}", "path": "{pointer}", "before": "", "after": ""}}]"#);
        Self { repairs: Some(repair), ..self }
    }

    /// Gives it to another tenant.
    pub(super) fn of_acme(self) -> Self {
        Self { tenant: "acme".to_owned(), ..self }
    }

    pub(super) async fn write(&self, db: &mut sqlx::PgConnection) {
        sqlx::query(
            "INSERT INTO calls (id, submitted_at, deadline_at, timeout_ms, notify, tool, pool, effect, tenant, arguments,
                                attempt, state, class, finished_at, task_id, turn, call_index, details, repairs)
             VALUES ($1, $2, $2, 1, false, $3, 'default', 'read', $4, '{}', $5, $6, $7, $8, $9, $10, $11,
                     $12::json, $13::json)",
        )
        .bind(self.id)
        .bind(self.finished_at - TimeDelta::milliseconds(self.total_ms))
        .bind(&self.tool)
        .bind(&self.tenant)
        .bind(i32::try_from(self.attempts.len()).unwrap())
        .bind(self.state)
        .bind(self.class.map(ErrorClass::as_str))
        .bind(self.finished_at)
        .bind(self.task.map(|(task, ..)| task))
        .bind(self.task.map(|(_, turn, _)| turn))
        .bind(self.task.map(|(.., call_index)| call_index))
        .bind(&self.details)
        .bind(&self.repairs)
        .execute(&mut *db)
        .await
        .unwrap();
        let queued = sqlx::query("INSERT INTO uncounted_calls (call_id, ended_at) VALUES ($1, $2)");
        queued.bind(self.id).bind(self.finished_at).execute(&mut *db).await.unwrap();
        if let Some((task, turn, call_index)) = self.task {
            let place =
                sqlx::query("INSERT INTO task_calls (task_id, turn, call_index, call_id) VALUES ($1, $2, $3, $4)");
            place.bind(task).bind(turn).bind(call_index).bind(self.id).execute(&mut *db).await.unwrap();
        }
        for (attempt, number) in self.attempts.iter().zip(1..) {
            sqlx::query(
                "INSERT INTO attempts (call_id, attempt, worker, started_at, ended_at, duration_ms, class, output)
                 VALUES ($1, $2, $3, $4, $4, $5, $6, $7::json)",
            )
            .bind(self.id)
            .bind(number)
            .bind(&attempt.worker)
            .bind(self.finished_at)
            .bind(attempt.duration_ms)
            .bind(attempt.class.map(ErrorClass::as_str))
            .bind(attempt.class.is_none().then(|| self.reply.clone().unwrap_or_else(|| "1".to_owned())))
            .execute(&mut *db)
            .await
            .unwrap();
        }
    }
}
