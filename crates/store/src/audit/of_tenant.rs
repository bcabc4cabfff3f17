//! What else a user may read: calls, tasks, conversations, rejected submissions, statistics, actions, workers.

use redial_api::{ActionItem, ConversationItem, RejectedItem, WorkerItem};
use redial_proto::{CallId, StoredMessage, TaskId, TaskState, TaskView, Tenant};

use super::{CallAudit, TaskFilter};
use crate::{
    ActionFilter, StoreError, TenantStore,
    columns::{int, uint},
    stats::{Stats, StatsQuestion},
    tasks::RawMessage,
};

/// Tasks that one look for conversations reads at most.
const TASKS: i64 = 2_000;

#[derive(Clone, Debug, Default)]
pub struct Conversations {
    /// The conversation whose newest task is newest comes first.
    pub conversations: Vec<ConversationItem>,
    /// The next part begins before this task; `None` at the end.
    pub next: Option<TaskId>,
}

impl TenantStore<'_> {
    /// Returns those of these calls that are of the tenant, with everything on record about them.
    pub async fn records_of(&self, calls: &[CallId]) -> Result<Vec<CallAudit>, StoreError> {
        let mut records = self.store().records_of(&self.own(calls).await?).await?;
        records.retain(|record| record.tenant == self.tenant().as_str());
        Ok(records)
    }

    /// Returns the newest tasks that a filter lets through; its tenant is not looked at.
    pub async fn tasks(&self, filter: &TaskFilter, limit: u32) -> Result<Vec<TaskView>, StoreError> {
        let filter = TaskFilter { tenant: Some(self.tenant().to_string()), ..filter.clone() };
        self.store().tasks(&filter, limit).await
    }

    /// Returns the next conversations, at most `limit`. A part may have fewer, because it reads a bounded number of
    /// tasks.
    pub async fn conversations(&self, before: Option<TaskId>, limit: u32) -> Result<Conversations, StoreError> {
        let rows = on_connection!(self.store(), |db| {
            let before = before.map(|before| before.0);
            let rows = sqlx::query_file!("sql/conversations_of_tenant.sql", self.tenant().as_str(), before, TASKS);
            rows.fetch_all(db).await
        })?;
        let mut next = rows.last().map(|row| TaskId(row.task)).filter(|_| i64::try_from(rows.len()) == Ok(TASKS));
        let mut conversations = Vec::new();
        for row in rows.into_iter().filter(|row| row.is_newest) {
            if conversations.len() >= limit as usize {
                next = conversations.last().map(|last: &ConversationItem| last.task);
                break;
            }
            conversations.push(ConversationItem {
                conversation: row.conversation,
                task: TaskId(row.task),
                state: TaskState::shown(&row.state),
                agent: row.agent,
                submitted_at: row.submitted_at,
                finished_at: row.finished_at,
                messages: uint(row.messages),
            });
        }
        Ok(Conversations { conversations, next })
    }

    /// True if the tenant has a task of this conversation.
    pub async fn has_conversation(&self, conversation: &str) -> Result<bool, StoreError> {
        let filter = TaskFilter { conversation: Some(conversation.to_owned()), ..TaskFilter::default() };
        Ok(!self.tasks(&filter, 1).await?.is_empty())
    }

    /// Returns the messages of a conversation behind this position, in order: at most `limit`, and as many as `bytes`
    /// of text hold, but one at least.
    pub async fn messages(
        &self,
        conversation: &str,
        after: u32,
        limit: u32,
        bytes: u32,
    ) -> Result<Vec<StoredMessage>, StoreError> {
        let rows = on_connection!(self.store(), |db| {
            let rows = sqlx::query_file_as!(
                RawMessage,
                "sql/messages_of_tenant.sql",
                self.tenant().as_str(),
                conversation,
                int(after),
                i64::from(limit),
                i64::from(bytes),
            );
            rows.fetch_all(db).await
        })?;
        Ok(rows.into_iter().filter_map(RawMessage::shown).collect())
    }

    /// Returns submissions that were rejected after they had been put on the intake stream, newest first, each with the
    /// first `bytes` of its message and the number of all of them.
    pub async fn rejected(&self, before: Option<i64>, limit: u32, bytes: u32) -> Result<Vec<RejectedItem>, StoreError> {
        self.dead_letters_of(before, None, limit, bytes).await
    }

    /// Returns one of them, with the whole message.
    pub async fn rejected_one(&self, id: i64) -> Result<Option<RejectedItem>, StoreError> {
        let found = self.dead_letters_of(None, Some(id), 1, i32::MAX.unsigned_abs()).await?;
        Ok(found.into_iter().next())
    }

    async fn dead_letters_of(
        &self,
        before: Option<i64>,
        id: Option<i64>,
        limit: u32,
        bytes: u32,
    ) -> Result<Vec<RejectedItem>, StoreError> {
        let rows = on_connection!(self.store(), |db| {
            let tenant = self.tenant().as_str();
            let rows =
                sqlx::query_file!("sql/rejected_of_tenant.sql", tenant, before, id, i64::from(limit), int(bytes));
            rows.fetch_all(db).await
        })?;
        Ok(rows
            .into_iter()
            .map(|row| RejectedItem {
                id: row.id,
                received_at: row.received_at,
                errors: super::listed(&row.errors),
                code: row.code,
                message: row.message,
                error_count: uint(row.error_count),
                payload: String::from_utf8_lossy(&row.payload).into_owned(),
                payload_bytes: uint(row.bytes),
            })
            .collect())
    }

    /// Returns figures of the tenant's calls; the tenant of the question is not looked at.
    pub async fn stats(&self, question: &StatsQuestion) -> Result<Stats, StoreError> {
        let question = StatsQuestion { tenant: Some(self.tenant().to_string()), ..question.clone() };
        self.store().stats(&question).await
    }

    /// Returns what users of the tenant did, newest first; the tenant of the filter is not looked at.
    pub async fn actions(&self, filter: &ActionFilter, limit: u32) -> Result<Vec<ActionItem>, StoreError> {
        let filter = ActionFilter { tenant: Some(self.tenant().to_string()), ..filter.clone() };
        let actions = self.store().actions(&filter, limit).await?;
        Ok(actions.into_iter().map(|action| ActionItem { tenant: None, ..action }).collect())
    }

    /// Returns workers, the latest first; only live ones unless `all`. `None` unless the tenant is that of the
    /// operators: workers belong to no tenant.
    pub async fn workers(&self, all: bool) -> Result<Option<Vec<WorkerItem>>, StoreError> {
        if *self.tenant() != Tenant::default() {
            return Ok(None);
        }
        self.store().worker_records(all).await.map(Some)
    }
}
