//! Bodies that do not fit into one message: sent and fetched in pieces, beside the message that they belong to.

use bytes::Bytes;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use redial_proto::{Payload, PieceReply, PieceRequest, limits, payload::pieces, subjects};
use tokio::time::{Duration, Instant};

use crate::{Queue, QueueError, publish::encode, request::decode_reply};

/// Pieces of one body that are on their way at once.
const AT_ONCE: usize = 4;
/// A piece takes no longer than this, however long the rest may take.
const PIECE_TIMEOUT: Duration = Duration::from_secs(10);
/// Nor does it take longer until a dispatcher has the memory for large arguments, and has put them into pieces.
const OPEN_TIMEOUT: Duration = Duration::from_secs(30);

impl Queue {
    /// Sends a body in pieces, to where a request on this subject would go.
    pub(crate) async fn put_pieces(
        &self,
        subject: &str,
        body: &Bytes,
        deadline: Instant,
    ) -> Result<Payload, QueueError> {
        let too_large =
            || QueueError::TooLarge { subject: subject.to_owned(), bytes: body.len(), max: limits::MAX_BODY };
        let text = str::from_utf8(body).ok().filter(|text| text.len() <= limits::MAX_BODY).ok_or_else(too_large)?;
        let pieces = pieces(text);
        let payload = Payload::of(pieces.len());
        let puts = (0..).zip(pieces).map(|(piece, text)| {
            Ok(async move {
                self.piece(subject, &PieceRequest::Put { payload, piece, text: text.to_owned() }, deadline)
                    .await
                    .map(drop)
            })
        });
        stream::iter(puts).try_for_each_concurrent(AT_ONCE, |put| put).await?;
        Ok(payload)
    }

    /// Fetches a body that came in pieces beside a request on this subject, and drops it there.
    pub async fn fetch_payload(&self, subject: &str, payload: Payload, timeout: Duration) -> Result<Bytes, QueueError> {
        let deadline = Instant::now() + timeout;
        let gets = (0..payload.pieces).map(|piece| async move {
            let reply = self.piece(subject, &PieceRequest::Get { payload: payload.payload, piece }, deadline).await?;
            let missing = || QueueError::Decode {
                subject: format!("reply to {subject}"),
                reason: format!("piece {piece} of it is missing"),
            };
            reply.text.ok_or_else(missing)
        });
        let mut gets = stream::iter(gets).buffered(AT_ONCE);
        let mut body = String::new();
        while let Some(piece) = gets.try_next().await? {
            body.push_str(&piece);
            if body.len() > limits::MAX_BODY {
                return Err(QueueError::TooLarge {
                    subject: format!("reply to {subject}"),
                    bytes: body.len(),
                    max: limits::MAX_BODY,
                });
            }
        }
        // What is not dropped expires.
        let dropped = self.piece(subject, &PieceRequest::Drop { payload: payload.payload }, deadline).await;
        if let Err(error) = dropped {
            tracing::debug!(%error, "Failed to drop a body in pieces");
        }
        Ok(body.into())
    }

    /// Asks for something about a body in pieces, beside a request on this subject.
    pub async fn piece(
        &self,
        subject: &str,
        request: &PieceRequest,
        deadline: Instant,
    ) -> Result<PieceReply, QueueError> {
        let beside = subjects::pieces_beside(subject).ok_or_else(|| QueueError::Name(subject.to_owned()))?;
        let outgoing = encode(&beside, request)?.into();
        let longest = if matches!(request, PieceRequest::Open { .. }) { OPEN_TIMEOUT } else { PIECE_TIMEOUT };
        let timeout = deadline.saturating_duration_since(Instant::now()).min(longest);
        // Boxed: the future would contain itself.
        let reply = Box::pin(self.send_request(&beside, outgoing, timeout)).await?;
        decode_reply(&beside, &reply)
    }
}
