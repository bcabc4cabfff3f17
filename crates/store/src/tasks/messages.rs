//! Messages of conversations, read and written.

use redial_proto::{ErrorClass, Message, StoredMessage, TaskId};
use sqlx::PgConnection;
use uuid::Uuid;

use super::{TaskRow, batch::Decision};
use crate::{Time, clean, int, uint};

/// A message as its row holds it.
pub(super) struct RawMessage {
    pub(super) seq: i32,
    pub(super) task: Uuid,
    pub(super) at: Time,
    pub(super) role: String,
    pub(super) content: String,
    pub(super) thought: Option<String>,
    pub(super) calls: Option<String>,
    pub(super) call_id: Option<String>,
    pub(super) tool: Option<String>,
    pub(super) class: Option<String>,
    pub(super) by_redial: bool,
    pub(super) provider: Option<String>,
}

impl TryFrom<RawMessage> for StoredMessage {
    type Error = String;

    fn try_from(raw: RawMessage) -> Result<Self, String> {
        let bad = |error: serde_json::Error| format!("message {}: {error}", raw.seq);
        Ok(Self {
            seq: uint(raw.seq),
            task: TaskId(raw.task),
            at: raw.at,
            message: Message {
                role: raw.role.parse()?,
                content: raw.content,
                thought: raw.thought,
                calls: raw.calls.as_deref().map(serde_json::from_str).transpose().map_err(bad)?.unwrap_or_default(),
                call_id: raw.call_id,
                tool: raw.tool,
                class: raw.class.map(|class| class.parse()).transpose()?,
                by_redial: raw.by_redial,
                provider: raw.provider.as_deref().map(serde_json::from_str).transpose().map_err(bad)?,
            },
        })
    }
}

/// Reads the whole conversations of these tasks into their rows.
pub(super) async fn load(db: &mut PgConnection, tasks: &mut [&mut TaskRow]) -> Result<(), sqlx::Error> {
    if tasks.is_empty() {
        return Ok(());
    }
    let tenants: Vec<&str> = tasks.iter().map(|task| task.tenant.as_str()).collect();
    let conversations: Vec<&str> = tasks.iter().map(|task| task.conversation.as_str()).collect();
    let rows = sqlx::query_file!("sql/conversations.sql", &tenants as &[&str], &conversations as &[&str])
        .fetch_all(db)
        .await?;
    for row in rows {
        let Some(task) = usize::try_from(row.n - 1).ok().and_then(|n| tasks.get_mut(n)) else { continue };
        let message = RawMessage {
            seq: row.seq,
            task: row.task_id,
            at: row.at,
            role: row.role,
            content: row.content,
            thought: row.thought,
            calls: row.calls,
            call_id: row.call_id,
            tool: row.tool,
            class: row.class,
            by_redial: row.by_redial,
            provider: row.provider,
        };
        task.messages.push(StoredMessage::try_from(message).map_err(unreadable)?);
    }
    Ok(())
}

/// Writes the new messages of a batch. One that is there already is an error: two tasks would talk at once.
pub(super) async fn write(db: &mut PgConnection, decisions: &[Decision], now: Time) -> Result<(), sqlx::Error> {
    let new: Vec<(&Decision, u32, &Message)> = decisions
        .iter()
        .flat_map(|one| one.change.messages.iter().map(move |(seq, message)| (one, *seq, message)))
        .collect();
    if new.is_empty() {
        return Ok(());
    }
    let calls = |message: &Message| (!message.calls.is_empty()).then(|| serde_json::json!(message.calls).to_string());
    let cleaned = |text: &Option<String>| text.as_deref().map(clean);
    sqlx::query_file!(
        "sql/write_messages.sql",
        &column(&new, |(one, ..)| one.tenant.as_str()) as &[&str],
        &column(&new, |(one, ..)| one.conversation.as_str()) as &[&str],
        &column(&new, |(_, seq, _)| int(*seq)),
        &column(&new, |(one, ..)| one.change.id.0),
        now,
        &column(&new, |(.., message)| message.role.as_str()) as &[&str],
        &column(&new, |(.., message)| clean(&message.content)),
        &column(&new, |(.., message)| cleaned(&message.thought)) as &[Option<String>],
        &column(&new, |(.., message)| calls(message)) as &[Option<String>],
        &column(&new, |(.., message)| cleaned(&message.call_id)) as &[Option<String>],
        &column(&new, |(.., message)| cleaned(&message.tool)) as &[Option<String>],
        &column(&new, |(.., message)| message.class.map(ErrorClass::as_str)) as &[Option<&str>],
        &column(&new, |(.., message)| message.by_redial),
        &column(&new, |(.., message)| message.provider.as_ref().map(ToString::to_string)) as &[Option<String>],
    )
    .execute(db)
    .await
    .map(|_| ())
}

fn column<'a, N, T>(rows: &'a [N], field: impl Fn(&'a N) -> T) -> Vec<T> {
    rows.iter().map(field).collect()
}

/// A row holds what this version cannot read; nothing is decided on a part of a conversation.
fn unreadable(error: String) -> sqlx::Error {
    sqlx::Error::Decode(error.into())
}
