//! Messages of conversations, read and written.

use redial_proto::{ErrorClass, Message, StoredMessage, TaskId};
use redial_records::{Cut, Reach, ReadConversation, ReadMessage, Time};
use sqlx::PgConnection;
use uuid::Uuid;

use super::{unreadable, write::TaskWrite};
use crate::columns::{bigint, clean, column, int, uint};

/// A message as its row holds it.
pub(crate) struct RawMessage {
    pub(crate) seq: i32,
    pub(crate) task: Uuid,
    pub(crate) at: Time,
    pub(crate) role: String,
    pub(crate) content: String,
    pub(crate) thought: Option<String>,
    pub(crate) calls: Option<String>,
    pub(crate) call_id: Option<String>,
    pub(crate) tool: Option<String>,
    pub(crate) class: Option<String>,
    pub(crate) by_redial: bool,
    pub(crate) provider: Option<String>,
}

impl RawMessage {
    /// Returns the message as it is shown; `None` if this version cannot read it.
    pub(crate) fn shown(self) -> Option<StoredMessage> {
        let (task, seq) = (TaskId(self.task), self.seq);
        let left_out = |reason: &String| tracing::debug!(%task, seq, reason, "Left out a message that cannot be shown");
        self.try_into().inspect_err(left_out).ok()
    }
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

pub(super) struct Wanted<'a> {
    pub(super) tenant: &'a str,
    pub(super) conversation: &'a str,
    pub(super) reach: &'a Reach,
}

/// How much may be read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    /// Bytes, of all conversations together.
    pub(super) bytes: u64,
    /// The first conversation is read whatever it takes.
    pub(super) for_first: bool,
}

/// Reads the newest parts of conversations, in the order that they are asked for; `None` for those that there is no
/// room for.
pub(super) async fn conversations(
    db: &mut PgConnection,
    wanted: &[Wanted<'_>],
    room: Room,
) -> Result<Vec<Option<ReadConversation>>, sqlx::Error> {
    let rows = sqlx::query_file!(
        "sql/conversations.sql",
        &column(wanted, |one| one.tenant) as &[&str],
        &column(wanted, |one| one.conversation) as &[&str],
        &column(wanted, |one| bigint(one.reach.shown_bytes)),
        &column(wanted, |one| bigint(one.reach.stored_bytes)),
        &column(wanted, |one| int(one.reach.message_bytes)),
        &column(wanted, |one| int(one.reach.result_bytes)),
        &column(wanted, |one| int(one.reach.old_result_bytes)),
        // Redial makes these ids, of letters and numbers.
        &column(wanted, |one| clean(&one.reach.hidden.join(","))),
        bigint(room.bytes),
        room.for_first,
    )
    .fetch_all(db)
    .await?;
    let mut conversations = vec![Some(ReadConversation { messages: Vec::new(), from: 1 }); wanted.len()];
    for row in rows {
        let Some(conversation) = usize::try_from(row.n - 1).ok().and_then(|n| conversations.get_mut(n)) else {
            continue;
        };
        let (Some(seq), Some(task), Some(at), Some(role), Some(content)) =
            (row.seq, row.task_id, row.at, row.role, row.content)
        else {
            *conversation = None;
            continue;
        };
        let message = RawMessage {
            seq,
            task,
            at,
            role,
            content,
            thought: row.thought,
            calls: row.calls,
            call_id: row.call_id,
            tool: row.tool,
            class: row.class,
            by_redial: row.by_redial.unwrap_or_default(),
            provider: row.provider,
        };
        let cut = row.tail.map(|tail| Cut { bytes: uint(row.bytes.unwrap_or_default()) as usize, tail });
        if let Some(read) = conversation {
            read.from = uint(row.first);
            read.messages.push(ReadMessage { stored: StoredMessage::try_from(message).map_err(unreadable)?, cut });
        }
    }
    Ok(conversations)
}

/// A call, by its id in a conversation.
pub(super) struct ConversationCall<'a> {
    pub(super) tenant: &'a str,
    pub(super) conversation: &'a str,
    pub(super) call: &'a str,
    /// Tells tasks apart, in their order.
    pub(super) task: i32,
}

/// What was found of the answer to a call.
#[derive(Clone)]
pub(super) enum Found {
    Nothing,
    Content(String),
    /// There is one, and there was no room for those of its task.
    NoRoom,
}

/// Reads the contents of the messages that answer these calls, in their order; of whole tasks up to `room` bytes, and
/// of one at least.
pub(super) async fn results(
    db: &mut PgConnection,
    calls: &[ConversationCall<'_>],
    room: u64,
) -> Result<Vec<Found>, sqlx::Error> {
    let rows = sqlx::query_file!(
        "sql/results.sql",
        &column(calls, |call| call.tenant) as &[&str],
        &column(calls, |call| call.conversation) as &[&str],
        // A model wrote it: it may hold U+0000, which `text` cannot.
        &column(calls, |call| clean(call.call)),
        &column(calls, |call| call.task),
        bigint(room),
    )
    .fetch_all(db)
    .await?;
    let mut results = vec![Found::Nothing; calls.len()];
    for row in rows {
        if let Some(result) = usize::try_from(row.n - 1).ok().and_then(|n| results.get_mut(n)) {
            *result = row.content.map_or(Found::NoRoom, Found::Content);
        }
    }
    Ok(results)
}

/// Writes the new messages of a batch. One that is there already is an error: two tasks would write to the conversation
/// at once.
pub(super) async fn write(db: &mut PgConnection, writes: &[TaskWrite<'_>], now: Time) -> Result<(), sqlx::Error> {
    let new: Vec<(&TaskWrite<'_>, u32, &Message)> = writes
        .iter()
        .flat_map(|one| one.transition.messages.iter().map(move |(seq, message)| (one, *seq, message)))
        .collect();
    if new.is_empty() {
        return Ok(());
    }
    let calls = |message: &Message| (!message.calls.is_empty()).then(|| serde_json::json!(message.calls).to_string());
    let cleaned = |text: &Option<String>| text.as_deref().map(clean);
    sqlx::query_file!(
        "sql/write_messages.sql",
        now,
        &column(&new, |(one, ..)| one.tenant) as &[&str],
        &column(&new, |(one, ..)| one.conversation) as &[&str],
        &column(&new, |(_, seq, _)| int(*seq)),
        &column(&new, |(one, ..)| one.transition.task.0),
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
