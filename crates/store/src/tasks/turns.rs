//! What models were asked, put together from what is on record.

use std::collections::HashMap;

use redial_proto::{StoredMessage, TaskId};
use redial_records::{
    Cut, ReadMessage, Time, TurnOnRecord, TurnTools,
    turn::{Expanded, Missing, Part},
};
use sqlx::PgConnection;
use uuid::Uuid;

use super::messages::RawMessage;
use crate::{
    StoreError,
    columns::{bigint, column, int, sparse, uint},
    connect::Store,
};

/// Arguments of a call of the pool of models, with where its conversation is.
#[derive(Clone, Debug)]
pub struct AskedTurn {
    pub tenant: String,
    pub conversation: String,
    pub task: TaskId,
    /// The arguments on record.
    pub arguments: String,
}

/// How much of conversations may be read to put turns together. A content counts as a whole if its end is read.
#[derive(Clone, Copy, Debug)]
pub struct TurnRoom {
    /// Bytes, for one turn.
    pub each: u64,
    /// Bytes, for all turns together.
    pub together: u64,
}

impl TurnRoom {
    /// Everything is read.
    pub const ALL: Self = Self { each: u64::MAX, together: u64::MAX };
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unexpanded {
    NoRoom,
    /// Something is not on record any more, or cannot be read.
    Missing(Missing),
}

/// A turn on record, or why it cannot be read.
type ReadTurn = Result<Box<TurnOnRecord>, Missing>;

/// Messages by part and sequence number; `None`: there was no room for them.
type Seen = Option<HashMap<(u32, u32), ReadMessage>>;

impl Store {
    /// Puts together what models are asked, in order, as far as there is room.
    pub async fn expand_turns(
        &self,
        turns: &[AskedTurn],
        room: TurnRoom,
    ) -> Result<Vec<Result<Expanded, Unexpanded>>, StoreError> {
        let read: Vec<ReadTurn> = turns.iter().map(|turn| TurnOnRecord::read(&turn.arguments)).collect();
        let mut messages = self.seen(turns, &read, room).await?;
        let tools = self.offered(turns, &read).await?;
        let expand = |(n, (turn, read)): (usize, (&AskedTurn, ReadTurn))| {
            let on_record = read.map_err(Unexpanded::Missing)?;
            let offered = on_record.tools().and_then(|hash| tools.get(&(turn.task.0, hash.to_owned())));
            let messages = messages.remove(&n).unwrap_or(Some(HashMap::new())).ok_or(Unexpanded::NoRoom)?;
            on_record.expand(messages, offered.map(String::as_str)).map_err(Unexpanded::Missing)
        };
        Ok(turns.iter().zip(read).enumerate().map(expand).collect())
    }

    /// Reads the messages that turns refer to, by the position of the turn.
    async fn seen(
        &self,
        turns: &[AskedTurn],
        read: &[ReadTurn],
        room: TurnRoom,
    ) -> Result<HashMap<usize, Seen>, StoreError> {
        let of = |(n, (turn, read)): (usize, (&AskedTurn, &ReadTurn))| -> Vec<Range> {
            let Ok(on_record) = read else { return Vec::new() };
            let (tenant, conversation) = (turn.tenant.clone(), turn.conversation.clone());
            let range = |part| Range { n, tenant: tenant.clone(), conversation: conversation.clone(), part };
            on_record.parts().map(range).collect()
        };
        let ranges: Vec<Range> = turns.iter().zip(read).enumerate().flat_map(of).collect();
        if ranges.is_empty() {
            return Ok(HashMap::new());
        }
        let rows = on_connection!(self, |db| of_ranges(db, &ranges, room).await)?;
        let mut messages = HashMap::<usize, Seen>::new();
        for row in rows {
            let seen = messages.entry(uint(row.n) as usize).or_insert_with(|| Some(HashMap::new()));
            if !row.is_read {
                *seen = None;
            } else if let Some(seen) = seen {
                let part = uint(row.part);
                let read = row.message().map_err(StoreError::BadData)?;
                seen.insert((part, read.stored.seq), read);
            }
        }
        Ok(messages)
    }

    /// Reads the tools that turns offered, by task and hash.
    async fn offered(
        &self,
        turns: &[AskedTurn],
        read: &[ReadTurn],
    ) -> Result<HashMap<(Uuid, String), String>, StoreError> {
        let of = |(turn, read): (&AskedTurn, &ReadTurn)| Some((turn.task.0, read.as_ref().ok()?.tools()?.to_owned()));
        let wanted: Vec<(Uuid, String)> = turns.iter().zip(read).filter_map(of).collect();
        if wanted.is_empty() {
            return Ok(HashMap::new());
        }
        on_connection!(self, |db| tools(db, &wanted).await)
    }
}

struct Range {
    /// The position of the turn.
    n: usize,
    tenant: String,
    conversation: String,
    part: Part,
}

/// A message of a range. Without its texts unless `is_read`.
struct RawSeen {
    n: i32,
    part: i32,
    is_read: bool,
    seq: i32,
    task: Uuid,
    at: Time,
    role: String,
    content: String,
    /// The end of the content; then `content` is its beginning.
    end: Option<Vec<u8>>,
    /// Of the whole content.
    bytes: i32,
    thought: Option<String>,
    calls: Option<String>,
    call_id: Option<String>,
    tool: Option<String>,
    class: Option<String>,
    by_redial: bool,
    provider: Option<String>,
}

impl RawSeen {
    fn message(self) -> Result<ReadMessage, String> {
        let bytes = uint(self.bytes) as usize;
        let raw = RawMessage {
            seq: self.seq,
            task: self.task,
            at: self.at,
            role: self.role,
            content: self.content,
            thought: self.thought,
            calls: self.calls,
            call_id: self.call_id,
            tool: self.tool,
            class: self.class,
            by_redial: self.by_redial,
            provider: self.provider,
        };
        // Bytes that are no text are not the end that was shown, and missing then.
        let cut = self.end.map(|end| Cut { bytes, tail: String::from_utf8(end).unwrap_or_default() });
        Ok(ReadMessage { stored: StoredMessage::try_from(raw)?, cut })
    }
}

async fn of_ranges(db: &mut PgConnection, ranges: &[Range], room: TurnRoom) -> Result<Vec<RawSeen>, sqlx::Error> {
    sqlx::query_file_as!(
        RawSeen,
        "sql/messages_of_ranges.sql",
        &column(ranges, |range| range.tenant.as_str()) as &[&str],
        &column(ranges, |range| range.conversation.as_str()) as &[&str],
        &column(ranges, |range| int(range.part.first)),
        &column(ranges, |range| int(range.part.last)),
        &column(ranges, |range| i32::try_from(range.n).unwrap_or(i32::MAX)),
        &column(ranges, |range| int(range.part.part)),
        &sparse(ranges, |range| range.part.ends.map(|ends| int(ends.head))) as &[Option<i32>],
        &sparse(ranges, |range| range.part.ends.map(|ends| int(ends.tail))) as &[Option<i32>],
        bigint(room.each),
        bigint(room.together),
    )
    .fetch_all(db)
    .await
}

async fn tools(
    db: &mut PgConnection,
    wanted: &[(Uuid, String)],
) -> Result<HashMap<(Uuid, String), String>, sqlx::Error> {
    let rows = sqlx::query!(
        r#"SELECT DISTINCT t.task_id, t.hash, t.tools::text AS "tools!"
           FROM UNNEST($1::uuid[], $2::text[]) AS w (task_id, hash)
           JOIN turn_tools t ON t.task_id = w.task_id AND t.hash = w.hash"#,
        &column(wanted, |(task, _)| *task),
        &column(wanted, |(_, hash)| hash.as_str()) as &[&str],
    );
    let rows = rows.fetch_all(db).await?;
    Ok(rows.into_iter().map(|row| ((row.task_id, row.hash), row.tools)).collect())
}

/// Leaves out the messages that turns refer to: decisions about their ends need all the rest. The arguments of each are
/// replaced; those of a turn whose tools are not on record stay.
pub(crate) async fn leave_out_messages(
    db: &mut PgConnection,
    turns: Vec<(TaskId, &mut String)>,
) -> Result<(), sqlx::Error> {
    let read =
        turns.into_iter().filter_map(|(task, arguments)| Some((task, TurnOnRecord::read(arguments).ok()?, arguments)));
    let read: Vec<_> = read.collect();
    if read.is_empty() {
        return Ok(());
    }
    let wanted: Vec<(Uuid, String)> =
        read.iter().filter_map(|(task, turn, _)| Some((task.0, turn.tools()?.to_owned()))).collect();
    let known = if wanted.is_empty() { HashMap::new() } else { tools(db, &wanted).await? };
    for (task, turn, arguments) in read {
        let tools = turn.tools().and_then(|hash| known.get(&(task.0, hash.to_owned())));
        if let Ok(request) = turn.without_messages(tools.map(String::as_str)) {
            *arguments = request;
        }
    }
    Ok(())
}

/// Keeps the tools that tasks offer in new turns.
pub(super) async fn write_tools(db: &mut PgConnection, offers: &[(TaskId, &TurnTools)]) -> Result<(), sqlx::Error> {
    if offers.is_empty() {
        return Ok(());
    }
    let insert = sqlx::query!(
        "INSERT INTO turn_tools (task_id, hash, tools)
         SELECT i.task_id, i.hash, i.tools::json FROM UNNEST($1::uuid[], $2::text[], $3::text[]) AS i (task_id, hash, tools)
         ON CONFLICT DO NOTHING",
        &column(offers, |(task, _)| task.0),
        &column(offers, |(_, offer)| offer.hash.as_str()) as &[&str],
        &column(offers, |(_, offer)| offer.tools.as_str()) as &[&str],
    );
    insert.execute(db).await.map(|_| ())
}
