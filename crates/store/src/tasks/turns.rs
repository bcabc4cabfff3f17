//! What models were asked, put together from what is on record.

use std::collections::HashMap;

use redial_proto::{Message, StoredMessage, TaskId};
use redial_records::{
    TurnArguments, TurnTools,
    turn::{Expanded, Missing},
};
use sqlx::PgConnection;
use uuid::Uuid;

use super::messages::RawMessage;
use crate::{
    StoreError,
    columns::{column, int, uint},
    connect::Store,
};

/// Arguments of a call of the pool of models, with where its conversation is.
#[derive(Clone, Debug)]
pub struct AskedTurn {
    /// Whose conversation.
    pub tenant: String,
    /// The conversation.
    pub conversation: String,
    /// The task.
    pub task: TaskId,
    /// The arguments on record.
    pub arguments: String,
}

impl Store {
    /// What models are asked, in order, put together; an error says what of one is not on record any more.
    pub async fn expand_turns(&self, turns: &[AskedTurn]) -> Result<Vec<Result<Expanded, Missing>>, StoreError> {
        let read: Vec<TurnArguments> = turns.iter().map(|turn| TurnArguments::read(turn.arguments.clone())).collect();
        let mut messages = self.seen(turns, &read).await?;
        let tools = self.offered(turns, &read).await?;
        let expand = |(n, (turn, read)): (usize, (&AskedTurn, TurnArguments))| match read {
            TurnArguments::Whole(request) => Ok(Expanded { request, is_exact: true }),
            TurnArguments::Referring(on_record) => {
                let offered = on_record.tools().and_then(|hash| tools.get(&(turn.task.0, hash.to_owned())));
                on_record.expand(&messages.remove(&n).unwrap_or_default(), offered.map(String::as_str))
            }
        };
        Ok(turns.iter().zip(read).enumerate().map(expand).collect())
    }

    /// The messages that turns refer to, by the position of the turn.
    async fn seen(
        &self,
        turns: &[AskedTurn],
        read: &[TurnArguments],
    ) -> Result<HashMap<usize, HashMap<u32, Message>>, StoreError> {
        let of = |(n, (turn, read)): (usize, (&AskedTurn, &TurnArguments))| -> Vec<Range> {
            let TurnArguments::Referring(on_record) = read else { return Vec::new() };
            let (tenant, conversation) = (turn.tenant.clone(), turn.conversation.clone());
            let range =
                |(first, last)| Range { n, tenant: tenant.clone(), conversation: conversation.clone(), first, last };
            on_record.ranges().map(range).collect()
        };
        let ranges: Vec<Range> = turns.iter().zip(read).enumerate().flat_map(of).collect();
        if ranges.is_empty() {
            return Ok(HashMap::new());
        }
        let rows = self
            .run_again(|| async {
                let mut db = self.checkout().await?;
                let rows = sqlx::query_file!(
                    "sql/messages_of_ranges.sql",
                    &column(&ranges, |range| range.tenant.as_str()) as &[&str],
                    &column(&ranges, |range| range.conversation.as_str()) as &[&str],
                    &column(&ranges, |range| int(range.first)),
                    &column(&ranges, |range| int(range.last)),
                    &column(&ranges, |range| i32::try_from(range.n).unwrap_or(i32::MAX)),
                );
                let rows = rows.fetch_all(&mut *db).await?;
                Ok(db.done(rows))
            })
            .await?;
        let mut messages = HashMap::<usize, HashMap<u32, Message>>::new();
        for row in rows {
            let raw = RawMessage {
                seq: row.seq,
                task: row.task,
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
            let StoredMessage { seq, message, .. } = raw.try_into().map_err(StoreError::BadData)?;
            messages.entry(uint(row.n) as usize).or_default().insert(seq, message);
        }
        Ok(messages)
    }

    /// The tools that turns offered, by task and hash.
    async fn offered(
        &self,
        turns: &[AskedTurn],
        read: &[TurnArguments],
    ) -> Result<HashMap<(Uuid, String), String>, StoreError> {
        let of = |(turn, read): (&AskedTurn, &TurnArguments)| {
            let TurnArguments::Referring(on_record) = read else { return None };
            Some((turn.task.0, on_record.tools()?.to_owned()))
        };
        let wanted: Vec<(Uuid, String)> = turns.iter().zip(read).filter_map(of).collect();
        if wanted.is_empty() {
            return Ok(HashMap::new());
        }
        self.run_again(|| async {
            let mut db = self.checkout().await?;
            let tools = tools(&mut db, &wanted).await?;
            Ok(db.done(tools))
        })
        .await
    }
}

struct Range {
    /// The position of the turn.
    n: usize,
    tenant: String,
    conversation: String,
    first: u32,
    last: u32,
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

/// Turns without the messages that they refer to: all that decisions about their ends need. The arguments of each are replaced; those
/// of a turn whose tools are not on record stay.
pub(crate) async fn leave_out_messages(
    db: &mut PgConnection,
    turns: Vec<(TaskId, &mut String)>,
) -> Result<(), sqlx::Error> {
    let read = turns.into_iter().filter_map(|(task, arguments)| match TurnArguments::read(arguments.clone()) {
        TurnArguments::Referring(turn) => Some((task, turn, arguments)),
        TurnArguments::Whole(_) => None,
    });
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
