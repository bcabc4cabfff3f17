//! Where a task began: what is needed, beside its steps and calls, to decide it again.

use redial_proto::{AgentSpec, Language, StoredMessage, TaskId, tolerant};

use super::messages::RawMessage;
use crate::{Store, StoreError};

#[derive(Clone, Debug)]
pub struct TaskOrigin {
    /// Scope of its conversation.
    pub tenant: String,
    /// Language of what is said to its model.
    pub language: Language,
    /// The whole agent, as it was when the task was accepted.
    pub spec: AgentSpec,
    /// What its conversation held before its own first message; nothing while it waits.
    pub earlier: Vec<StoredMessage>,
}

impl Store {
    /// Returns where a task began; `None` if there is no such task.
    pub async fn task_origin(&self, task: TaskId) -> Result<Option<TaskOrigin>, StoreError> {
        let found = on_connection!(self, |db| {
            sqlx::query!(
                r#"SELECT tenant, conversation, language, spec::text AS "spec!" FROM tasks WHERE id = $1"#,
                task.0,
            )
            .fetch_optional(db)
            .await
        })?;
        let Some(row) = found else { return Ok(None) };
        let bad = |error: String| StoreError::BadData(format!("task {task}: {error}"));
        Ok(Some(TaskOrigin {
            language: row.language.parse().map_err(bad)?,
            spec: tolerant::from_str(&row.spec).map_err(|error| bad(error.to_string()))?,
            earlier: self.earlier_messages(task, &row.tenant, &row.conversation).await?,
            tenant: row.tenant,
        }))
    }

    async fn earlier_messages(
        &self,
        task: TaskId,
        tenant: &str,
        conversation: &str,
    ) -> Result<Vec<StoredMessage>, StoreError> {
        let rows = on_connection!(self, |db| {
            sqlx::query_file_as!(RawMessage, "sql/earlier_messages.sql", tenant, conversation, task.0)
                .fetch_all(db)
                .await
        })?;
        rows.into_iter().map(|row| StoredMessage::try_from(row).map_err(StoreError::BadData)).collect()
    }
}
