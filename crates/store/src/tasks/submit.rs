//! Writes new tasks.

use std::collections::{BTreeMap, HashMap, HashSet};

use redial_proto::{TaskId, TaskState};
use redial_records::NewTask;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::{
    StoreError,
    columns::{clean, column},
    connect::Store,
};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SubmittedTask {
    /// It is on record, and waits for its turn.
    Written,
    /// Another one with its key was there before.
    Existing { id: TaskId, conversation: String, state: TaskState, content: Option<Uuid> },
    /// It was not written: its conversation is being erased, or everything of its tenant.
    BeingErased {
        /// Everything of the tenant is.
        whole_tenant: bool,
    },
    /// It was not written, because of a task or an erasure that was there before and is gone now.
    Gone,
}

impl Store {
    /// Writes up to 1,000 tasks in one statement and says for each what became of it, in order. Safe to repeat: a task
    /// whose id is on record already counts as written.
    pub async fn submit_tasks(&self, tasks: &[NewTask]) -> Result<Vec<SubmittedTask>, StoreError> {
        self.clock.check()?;
        let written = on_connection!(self, |db| insert(db, tasks).await)?;
        let met: Vec<(usize, &NewTask)> =
            tasks.iter().enumerate().filter(|(_, task)| !written.contains(&task.id.0)).collect();
        let mut results = vec![SubmittedTask::Written; tasks.len()];
        if met.is_empty() {
            return Ok(results);
        }
        let mut found: HashMap<usize, SubmittedTask> = self.existing_tasks(&met).await?.into_iter().collect();
        let left: Vec<(usize, &NewTask)> = met.iter().filter(|(n, _)| !found.contains_key(n)).copied().collect();
        if !left.is_empty() {
            found.extend(self.erasing_tasks(&left).await?);
        }
        for (n, task) in met {
            let existing = found.remove(&n).unwrap_or(SubmittedTask::Gone);
            let sent_before = matches!(existing, SubmittedTask::Existing { id, .. } if id == task.id);
            if !sent_before {
                results[n] = existing;
            }
        }
        Ok(results)
    }

    async fn erasing_tasks(&self, left: &[(usize, &NewTask)]) -> Result<Vec<(usize, SubmittedTask)>, StoreError> {
        let numbers: Vec<i32> = column(left, |(n, _)| i32::try_from(*n).unwrap_or(i32::MAX));
        let tenants: Vec<&str> = column(left, |(_, task)| task.tenant.as_str());
        let conversations: Vec<&str> = column(left, |(_, task)| task.conversation.as_str());
        let rows = on_connection!(self, |db| {
            sqlx::query_file!("sql/erasing_tasks.sql", &numbers, &tenants as &[&str], &conversations as &[&str])
                .fetch_all(db)
                .await
        })?;
        let found = |n: i32, whole_tenant| {
            (usize::try_from(n).unwrap_or(usize::MAX), SubmittedTask::BeingErased { whole_tenant })
        };
        Ok(rows.into_iter().map(|row| found(row.n, row.whole_tenant)).collect())
    }

    async fn existing_tasks(&self, met: &[(usize, &NewTask)]) -> Result<Vec<(usize, SubmittedTask)>, StoreError> {
        let numbers: Vec<i32> = met.iter().map(|(n, _)| i32::try_from(*n).unwrap_or(i32::MAX)).collect();
        let ids: Vec<Uuid> = met.iter().map(|(_, task)| task.id.0).collect();
        let tenants: Vec<&str> = met.iter().map(|(_, task)| task.tenant.as_str()).collect();
        let keys: Vec<Option<&str>> = met.iter().map(|(_, task)| task.key.as_deref()).collect();
        let rows = on_connection!(self, |db| {
            sqlx::query_file!("sql/existing_tasks.sql", &numbers, &ids, &tenants as &[&str], &keys as &[Option<&str>],)
                .fetch_all(db)
                .await
        })?;
        Ok(rows
            .into_iter()
            .map(|row| {
                let state = TaskState::shown(&row.state);
                let (id, conversation, content) = (TaskId(row.id), row.conversation, row.content);
                let existing = SubmittedTask::Existing { id, conversation, state, content };
                (usize::try_from(row.n).unwrap_or(usize::MAX), existing)
            })
            .collect())
    }
}

/// Inserts tasks, and a start into the inbox of each that was not on record; returns the ids of those.
async fn insert(db: &mut PgConnection, tasks: &[NewTask]) -> Result<HashSet<Uuid>, sqlx::Error> {
    let rows = sqlx::query_file_scalar!(
        "sql/submit_tasks.sql",
        &column(tasks, |t| t.id.0),
        &column(tasks, |t| t.tenant.as_str()) as &[&str],
        &column(tasks, |t| t.conversation.as_str()) as &[&str],
        &column(tasks, |t| t.key.as_deref()) as &[Option<&str>],
        &column(tasks, |t| t.content) as &[Option<Uuid>],
        &column(tasks, |t| t.agent.as_deref()) as &[Option<&str>],
        &column(tasks, |t| clean(&t.model)),
        &column(tasks, |t| t.language.as_str()) as &[&str],
        &column(tasks, |t| t.spec.as_str()) as &[&str],
        &column(tasks, |t| clean(&t.input)),
        &column(tasks, |t| t.traceparent.as_deref()) as &[Option<&str>],
        &column(tasks, |task| task.submitted_by.as_deref()) as &[Option<&str>],
        &column(tasks, |task| metadata(&task.metadata)) as &[Option<String>],
        &column(tasks, |task| task.waits_for_erasure),
    )
    .fetch_all(db)
    .await?;
    Ok(rows.into_iter().collect())
}

fn metadata(notes: &BTreeMap<String, String>) -> Option<String> {
    let notes: BTreeMap<String, String> = notes.iter().map(|(key, value)| (clean(key), clean(value))).collect();
    (!notes.is_empty()).then(|| serde_json::to_string(&notes).ok()).flatten()
}
