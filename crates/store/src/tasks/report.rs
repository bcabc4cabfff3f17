//! What happened in a task, in pieces that fit a message.

use std::collections::{BTreeMap, BTreeSet};

use redial_proto::{StoredMessage, TaskDecision, TaskId, TaskInput, TaskReport, TaskStep, TaskView, Tenant, limits};
use serde_json::Value;
use uuid::Uuid;

use super::{messages::RawMessage, view::RawView};
use crate::{Store, StoreError, Time, int, uint};

/// Steps read at once. A watcher gets a notice of each step, so it seldom asks for more than one.
const STEPS: i64 = 100;
/// So few messages are read whatever their lengths.
const FEW: usize = 4;
/// Bytes of JSON that one byte of text can take, as `\u0000` does.
const WORST: usize = 6;

impl Store {
    /// See [`crate::TenantStore::task_report`].
    pub(crate) async fn task_report(
        &self,
        tenant: &Tenant,
        task: TaskId,
        after: u32,
        max_bytes: usize,
    ) -> Result<Option<TaskReport>, StoreError> {
        let Some(mut report) = self.task_page(tenant, task, after, max_bytes).await? else { return Ok(None) };
        let room = room(&report.task, max_bytes);
        if report.steps.len() == 1 && size(&report.steps) + size(&report.messages) > room {
            cut(&mut report, room);
        }
        Ok(Some(report))
    }

    /// See [`crate::TenantStore::task_page`].
    pub(crate) async fn task_page(
        &self,
        tenant: &Tenant,
        task: TaskId,
        after: u32,
        about: usize,
    ) -> Result<Option<TaskReport>, StoreError> {
        // The task is read first: steps written in between are then newer than its state, never older.
        let Some(view) = self.task_view(tenant, task).await? else { return Ok(None) };
        let mut steps = self.steps(task, after).await?;
        let mut more = i64::try_from(steps.len()).is_ok_and(|read| read > STEPS);
        if more {
            steps.pop();
        }
        let room = room(&view, about);
        let likely = self.likely_to_fit(tenant, &view.conversation, &steps, room).await?;
        more |= likely < steps.len();
        steps.truncate(likely);
        let messages = self.messages_of(tenant, &view.conversation, &steps).await?;
        let fitting = fitting(&steps, &messages, room);
        more |= fitting < steps.len();
        steps.truncate(fitting);
        let written = written_by(&steps);
        let messages = messages.into_iter().filter(|message| written.contains(&message.seq)).collect();
        Ok(Some(TaskReport { task: view, steps, messages, more }))
    }

    /// See [`crate::TenantStore::task`].
    pub(crate) async fn task_view(&self, tenant: &Tenant, task: TaskId) -> Result<Option<TaskView>, StoreError> {
        let found = self.task_views(&[task]).await?.pop();
        Ok(found.filter(|(of, _)| of == tenant.as_str()).map(|(_, view)| view))
    }

    /// Returns these tasks as far as they are on record, each with its tenant.
    pub async fn task_views(&self, tasks: &[TaskId]) -> Result<Vec<(String, TaskView)>, StoreError> {
        let ids: Vec<Uuid> = tasks.iter().map(|task| task.0).collect();
        let rows =
            on_connection!(self, |db| sqlx::query_file_as!(RawView, "sql/task_view.sql", &ids).fetch_all(db).await)?;
        Ok(rows.into_iter().map(|row| (row.tenant.clone(), TaskView::from(row))).collect())
    }

    async fn steps(&self, task: TaskId, after: u32) -> Result<Vec<TaskStep>, StoreError> {
        let rows = on_connection!(self, |db| {
            sqlx::query!(
                r#"SELECT n AS step, at, input::text AS "input!", decisions::text AS "decisions!"
                       FROM task_steps WHERE task_id = $1 AND n > $2 ORDER BY n LIMIT $3"#,
                task.0,
                int(after),
                STEPS + 1,
            )
            .fetch_all(db)
            .await
        })?;
        Ok(rows.into_iter().map(|row| step(row.step, row.at, &row.input, &row.decisions)).collect())
    }

    /// Counts the steps that may fit, by the lengths of the texts that they wrote, which cost little to ask for: a
    /// hundred of them may be 50 MB long.
    async fn likely_to_fit(
        &self,
        tenant: &Tenant,
        conversation: &str,
        steps: &[TaskStep],
        room: usize,
    ) -> Result<usize, StoreError> {
        let seqs: Vec<i32> = written_by(steps).into_iter().map(int).collect();
        if seqs.len() < FEW {
            return Ok(steps.len());
        }
        let rows = on_connection!(self, |db| {
            sqlx::query!(
                r#"SELECT seq, octet_length(content) AS "bytes!" FROM messages
                       WHERE tenant = $1 AND conversation = $2 AND seq = ANY ($3)"#,
                tenant.as_str(),
                conversation,
                &seqs,
            )
            .fetch_all(db)
            .await
        })?;
        let bytes: BTreeMap<u32, usize> =
            rows.into_iter().map(|row| (uint(row.seq), usize::try_from(row.bytes).unwrap_or(0))).collect();
        let mut taken = 0;
        let fits = |step: &&TaskStep| {
            let written = written_by(std::slice::from_ref(*step));
            taken += written.iter().filter_map(|seq| bytes.get(seq)).sum::<usize>();
            taken <= room
        };
        Ok(steps.iter().take_while(fits).count().max(1).min(steps.len()))
    }

    async fn messages_of(
        &self,
        tenant: &Tenant,
        conversation: &str,
        steps: &[TaskStep],
    ) -> Result<Vec<StoredMessage>, StoreError> {
        let seqs: Vec<i32> = written_by(steps).into_iter().map(int).collect();
        if seqs.is_empty() {
            return Ok(Vec::new());
        }
        let rows = on_connection!(self, |db| {
            sqlx::query_file_as!(RawMessage, "sql/messages.sql", tenant.as_str(), conversation, &seqs)
                .fetch_all(db)
                .await
        })?;
        Ok(rows.into_iter().filter_map(RawMessage::shown).collect())
    }
}

/// Returns the bytes that are left for the steps.
fn room(view: &TaskView, max_bytes: usize) -> usize {
    max_bytes.saturating_sub(size(view) + ENVELOPE)
}

/// The brackets and names around the parts of a report.
const ENVELOPE: usize = 64;

/// Returns a step as it is shown: one that this version cannot read is unknown.
fn step(n: i32, at: Time, input: &str, decisions: &str) -> TaskStep {
    let read = serde_json::from_str(input).and_then(|input| Ok((input, serde_json::from_str(decisions)?)));
    let (input, decisions) = read.unwrap_or((TaskInput::Unknown, Vec::new()));
    TaskStep { step: uint(n), at, input, decisions }
}

fn written_by(steps: &[TaskStep]) -> BTreeSet<u32> {
    let seq = |decision: &TaskDecision| match decision {
        TaskDecision::Message { seq } => Some(*seq),
        _ => None,
    };
    steps.iter().flat_map(|step| step.decisions.iter().filter_map(seq)).collect()
}

/// Counts the steps that fit with their messages; one at least.
fn fitting(steps: &[TaskStep], messages: &[StoredMessage], room: usize) -> usize {
    let mut taken = 0;
    let fits = |step: &&TaskStep| {
        let written = written_by(std::slice::from_ref(*step));
        let texts = messages.iter().filter(|message| written.contains(&message.seq));
        taken += size(step) + 1 + texts.map(|message| size(message) + 1).sum::<usize>();
        taken <= room
    };
    steps.iter().take_while(fits).count().max(1).min(steps.len())
}

/// Shortens everything long in a report of one step. The database has the full text, for `redial show`.
fn cut(report: &mut TaskReport, room: usize) {
    for step in &mut report.steps {
        if let TaskInput::Started { carried, .. } = &mut step.input {
            *carried = Value::Null;
        }
    }
    let left = room.saturating_sub(size(&report.steps));
    let texts: usize = report.messages.iter().map(|stored| 2 + stored.message.calls.len()).sum();
    let share = left / (WORST * texts.max(1));
    let share = share.saturating_sub(200 / WORST);
    for message in report.messages.iter_mut().map(|stored| &mut stored.message) {
        message.provider = None;
        message.content = limits::shorten(&message.content, share);
        message.thought = message.thought.as_deref().map(|thought| limits::shorten(thought, share));
        for call in &mut message.calls {
            call.arguments = limits::shorten(&call.arguments, share);
        }
    }
}

/// Returns the size as JSON, in bytes.
fn size(value: &impl serde::Serialize) -> usize {
    serde_json::to_vec(value).map_or(0, |json| json.len())
}
