//! Bodies of messages that travel in pieces.

use std::time::Duration;

use redial_proto::{CallId, GrantRef, Payload, TaskId, WorkerId, payload::pieces, turn};
use uuid::Uuid;

use crate::{
    StoreError,
    columns::{int, unsigned},
    connect::Store,
    tasks::{AskedTurn, TurnRoom, Unexpanded},
};

/// How long a piece is kept at most.
const KEPT: Duration = Duration::from_mins(10);
/// While an owner has fewer pieces than this, about 2 GB, it may begin another body.
const MAX_BEFORE_NEXT: i64 = 5_000;
/// The most pieces of an owner: bodies that were begun may be completed.
const MAX_PIECES: i64 = 10_000;
/// Pieces that one statement writes.
const AT_ONCE: usize = 8;

/// The arguments of an attempt that were too large for its grant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenedArguments {
    pub tool: String,
    /// See [`Granted::tool_version`](crate::Granted::tool_version).
    pub tool_version: Option<Uuid>,
    /// As its worker gets them.
    pub arguments: String,
}

impl Store {
    /// Keeps a piece; `false` if its owner has too many already.
    pub async fn put_piece(&self, owner: &str, payload: Uuid, piece: u32, text: &str) -> Result<bool, StoreError> {
        self.insert_pieces(owner, payload, piece, &[text]).await
    }

    /// Puts a body into pieces; `None` if its owner has too many already.
    pub async fn put_payload(&self, owner: &str, body: &str) -> Result<Option<Payload>, StoreError> {
        let pieces = pieces(body);
        let payload = Payload::of(pieces.len());
        for (first, some) in (0_u32..).step_by(AT_ONCE).zip(pieces.chunks(AT_ONCE)) {
            if !self.insert_pieces(owner, payload.payload, first, some).await? {
                self.drop_payload(owner, payload.payload).await?;
                return Ok(None);
            }
        }
        Ok(Some(payload))
    }

    /// Writes pieces; `false`, and nothing written, if their owner has too many already.
    async fn insert_pieces(&self, owner: &str, payload: Uuid, first: u32, texts: &[&str]) -> Result<bool, StoreError> {
        let kept = KEPT.as_secs_f64();
        on_connection!(self, |db| {
            let insert = sqlx::query_scalar!(
                r#"WITH room AS (
                       SELECT count(*) < CASE WHEN bool_or(payload = $2) THEN $7::bigint ELSE $6::bigint END AS is_left
                       FROM payloads WHERE owner = $1
                   ), written AS (
                       INSERT INTO payloads (owner, payload, piece, text, expires_at)
                       SELECT $1, $2, $3 + i.n::int - 1, i.text, clock_timestamp() + $5::float8 * interval '1 s'
                       FROM room, UNNEST($4::text[]) WITH ORDINALITY AS i (text, n)
                       WHERE room.is_left
                       ON CONFLICT DO NOTHING
                   )
                   SELECT is_left AS "is_left!" FROM room"#,
                owner,
                payload,
                int(first),
                texts as &[&str],
                kept,
                MAX_BEFORE_NEXT,
                MAX_PIECES,
            );
            insert.fetch_one(db).await
        })
    }

    /// Returns one piece; `None` if it is not there, or not any more.
    pub async fn piece(&self, owner: &str, payload: Uuid, piece: u32) -> Result<Option<String>, StoreError> {
        on_connection!(self, |db| {
            let text = sqlx::query_scalar!(
                "SELECT text FROM payloads WHERE owner = $1 AND payload = $2 AND piece = $3",
                owner,
                payload,
                int(piece),
            );
            text.fetch_optional(db).await
        })
    }

    /// Counts the bytes of a body; `None` if some of its pieces are not there. That does not change: a piece that is
    /// there stays as it is.
    pub async fn payload_bytes(&self, owner: &str, payload: Payload) -> Result<Option<usize>, StoreError> {
        let (pieces, bytes) = on_connection!(self, |db| {
            let sizes = sqlx::query!(
                r#"SELECT count(*) AS "pieces!", COALESCE(sum(octet_length(text)), 0)::bigint AS "bytes!"
                       FROM payloads WHERE owner = $1 AND payload = $2 AND piece < $3"#,
                owner,
                payload.payload,
                int(payload.pieces),
            );
            let sizes = sizes.fetch_one(&mut *db).await?;
            Ok((sizes.pieces, sizes.bytes))
        })?;
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        Ok((unsigned(pieces) == u64::from(payload.pieces) && pieces > 0).then_some(bytes))
    }

    /// Puts a body together; `None` if some of its pieces are not there any more.
    pub async fn payload(&self, owner: &str, payload: Payload) -> Result<Option<String>, StoreError> {
        on_connection!(self, |db| {
            let body = sqlx::query_scalar!(
                "SELECT string_agg(text, '' ORDER BY piece) FROM payloads WHERE owner = $1 AND payload = $2 AND piece < $3
                 HAVING count(*) = $3",
                owner,
                payload.payload,
                int(payload.pieces),
            );
            let body = body.fetch_optional(&mut *db).await?;
            Ok(body.flatten())
        })
    }

    /// Deletes a body that is not needed any more.
    pub async fn drop_payload(&self, owner: &str, payload: Uuid) -> Result<(), StoreError> {
        self.run_again(|| async {
            let mut db = self.checkout().await?;
            let dropped = sqlx::query!("DELETE FROM payloads WHERE owner = $1 AND payload = $2", owner, payload);
            dropped.execute(&mut *db).await?;
            db.done(());
            Ok(())
        })
        .await
    }

    /// Deletes pieces that have expired; returns how many.
    pub async fn delete_expired_pieces(&self, limit: u32) -> Result<u64, StoreError> {
        on_connection!(self, |db| {
            let deleted = sqlx::query!(
                "DELETE FROM payloads WHERE (owner, payload, piece) IN (
                     SELECT owner, payload, piece FROM payloads WHERE expires_at < clock_timestamp() ORDER BY expires_at LIMIT $1)",
                i64::from(limit),
            );
            let deleted = deleted.execute(&mut *db).await?;
            Ok(deleted.rows_affected())
        })
    }

    /// Returns how many bytes are read at most for the arguments of an attempt that a worker holds; `None` if it does
    /// not hold it. Of the beginning of a message that a model was shown in part, up to four times as much is read:
    /// characters are counted there.
    pub async fn arguments_bytes(&self, worker: &WorkerId, grant: GrantRef) -> Result<Option<usize>, StoreError> {
        let bytes = on_connection!(self, |db| {
            let bytes = sqlx::query_scalar!(
                r#"SELECT (CASE WHEN pool = 'models' THEN 4 * COALESCE((arguments ->> 'bytes')::bigint, octet_length(arguments::text))
                           ELSE octet_length(arguments::text) END)::bigint AS "bytes!"
                       FROM calls WHERE id = $1 AND state = 'running' AND attempt = $2 AND claim_id = $3 AND worker = $4"#,
                grant.call.0,
                int(grant.attempt),
                grant.claim.0,
                worker.as_str(),
            );
            bytes.fetch_optional(db).await
        })?;
        Ok(bytes.map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX)))
    }

    /// Returns the arguments of an attempt that a worker holds, as it gets them, or why a model's turn cannot be put
    /// together; `None` if it does not hold it.
    pub async fn arguments_of(
        &self,
        worker: &WorkerId,
        grant: GrantRef,
    ) -> Result<Option<Result<OpenedArguments, Unexpanded>>, StoreError> {
        let GrantRef { call: CallId(call), attempt, claim } = grant;
        let found = on_connection!(self, |db| {
            let found = sqlx::query!(
                r#"SELECT tenant, conversation, pool, task_id, tool, tool_version, arguments::text AS "arguments!" FROM calls
                   WHERE id = $1 AND state = 'running' AND attempt = $2 AND claim_id = $3 AND worker = $4"#,
                call,
                int(attempt),
                claim.0,
                worker.as_str(),
            );
            found.fetch_optional(db).await
        })?;
        let Some(found) = found else { return Ok(None) };
        let (tool, tool_version) = (found.tool, found.tool_version);
        let opened = |arguments| OpenedArguments { tool, tool_version, arguments };
        match (found.conversation, found.task_id) {
            (Some(conversation), Some(task)) if found.pool == turn::POOL => {
                let task = TaskId(task);
                let turn = AskedTurn { tenant: found.tenant, conversation, task, arguments: found.arguments };
                let expanded = self.expand_turns(&[turn], TurnRoom::ALL).await?.pop();
                Ok(expanded.map(|expanded| expanded.map(|expanded| opened(expanded.request))))
            }
            _ => Ok(Some(Ok(opened(found.arguments)))),
        }
    }
}
