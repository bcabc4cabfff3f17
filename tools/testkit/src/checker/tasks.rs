//! What the database holds of tasks and conversations.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use redial_proto::{MessageCall, TaskId, TaskState};
use sqlx::{PgConnection, Row};
use uuid::Uuid;

/// A task as it stands.
#[derive(Clone, Debug)]
pub struct TaskFacts {
    pub id: TaskId,
    pub conversation: (String, String),
    pub state: TaskState,
    /// When work on it began and ended.
    pub worked_on: (Option<DateTime<Utc>>, Option<DateTime<Utc>>),
    /// The number of its last step.
    pub last_step: u32,
    /// The numbers of its steps.
    pub steps: Vec<u32>,
    /// Its messages, in order.
    pub messages: Vec<MessageFacts>,
}

/// A message as it stands.
#[derive(Clone, Debug)]
pub struct MessageFacts {
    pub(super) seq: u32,
    /// Ids of the calls that it asks for.
    pub(super) calls: Vec<String>,
    /// The call that it answers.
    pub(super) answers: Option<String>,
}

impl TaskFacts {
    pub(super) async fn read(db: &mut PgConnection) -> Vec<Self> {
        let tasks = sqlx::query(
            "SELECT id, tenant, conversation, state, started_at, finished_at, last_step FROM tasks ORDER BY id",
        );
        let mut found = BTreeMap::new();
        for row in tasks.fetch_all(&mut *db).await.unwrap() {
            let id = TaskId(row.get("id"));
            let conversation = (row.get("tenant"), row.get("conversation"));
            let state = row.get::<String, _>("state").parse().unwrap();
            let worked_on = (row.get("started_at"), row.get("finished_at"));
            let last_step = row.get::<i32, _>("last_step").try_into().unwrap();
            let (steps, messages) = (Vec::new(), Vec::new());
            found.insert(id, Self { id, conversation, state, worked_on, last_step, steps, messages });
        }
        for row in
            sqlx::query("SELECT task_id, n FROM task_steps ORDER BY task_id, n").fetch_all(&mut *db).await.unwrap()
        {
            let id = TaskId(row.get::<Uuid, _>("task_id"));
            found.get_mut(&id).unwrap().steps.push(row.get::<i32, _>("n").try_into().unwrap());
        }
        let messages =
            sqlx::query("SELECT task_id, seq, calls::text AS calls, call_id FROM messages ORDER BY task_id, seq");
        for row in messages.fetch_all(db).await.unwrap() {
            let calls = row.get::<Option<String>, _>("calls");
            let calls: Vec<MessageCall> = calls.map_or_else(Vec::new, |text| serde_json::from_str(&text).unwrap());
            let message = MessageFacts {
                seq: row.get::<i32, _>("seq").try_into().unwrap(),
                calls: calls.into_iter().map(|call| call.id).collect(),
                answers: row.get("call_id"),
            };
            found.get_mut(&TaskId(row.get::<Uuid, _>("task_id"))).unwrap().messages.push(message);
        }
        found.into_values().collect()
    }
}
