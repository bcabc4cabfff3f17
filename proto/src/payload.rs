//! Bodies that do not fit into one message travel in pieces, which dispatchers keep in Postgres for a while.
//!
//! Who sends one puts the pieces, then sends the message itself without a body, and with the header
//! [`subjects::PAYLOAD`](crate::subjects::PAYLOAD). Who is answered with that header gets the pieces, and drops them.

use std::{fmt, str::FromStr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{GrantRef, WorkerId, limits};

/// A body in pieces. Whoever puts it makes the id; nobody else can read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Payload {
    /// Its id.
    pub payload: Uuid,
    /// How many pieces it has.
    pub pieces: u32,
}

impl Payload {
    /// A new payload of this many pieces, which are about to be put.
    pub fn of(pieces: usize) -> Self {
        Self { payload: Uuid::now_v7(), pieces: u32::try_from(pieces).unwrap_or(u32::MAX) }
    }
}

/// As the value of the header: `<id>.<pieces>`.
impl fmt::Display for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.payload, self.pieces)
    }
}

impl FromStr for Payload {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let read = || {
            let (payload, pieces) = text.split_once('.')?;
            Some(Self { payload: payload.parse().ok()?, pieces: pieces.parse().ok()? })
        };
        read().ok_or_else(|| format!("{text:?} is no payload; <id>.<pieces> is needed"))
    }
}

/// What can be done with a body in pieces. Sent as `payloads.piece`, by users and by workers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PieceRequest {
    /// Keeps a piece for ten minutes. The answer is empty. Putting it again changes nothing.
    Put {
        /// The body, and all its pieces.
        #[serde(flatten)]
        payload: Payload,
        /// Which piece, from 0.
        piece: u32,
        /// A part of the body, at most [`limits::MAX_PIECE`] bytes.
        text: String,
    },
    /// Asks for a piece.
    Get {
        /// The body.
        payload: Uuid,
        /// Which piece, from 0.
        piece: u32,
    },
    /// The body is not needed any more. The answer is empty.
    Drop {
        /// The body.
        payload: Uuid,
    },
    /// Only workers: puts the arguments of a grant that says [`Grant::apart`](crate::Grant::apart) into pieces. The answer names them.
    Open {
        /// The worker.
        worker: WorkerId,
        /// The grant.
        #[serde(flatten)]
        grant: GrantRef,
    },
}

/// The answer to a [`PieceRequest`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PieceReply {
    /// The piece that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The body that was opened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opened: Option<Payload>,
}

/// A body as pieces, each of at most [`limits::MAX_PIECE`] bytes and cut between characters.
pub fn pieces(mut body: &str) -> Vec<&str> {
    let mut pieces = Vec::with_capacity(body.len() / limits::MAX_PIECE + 1);
    while !body.is_empty() {
        let (piece, rest) = body.split_at(body.floor_char_boundary(limits::MAX_PIECE));
        pieces.push(piece);
        body = rest;
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_cut_between_characters() {
        let body = "好".repeat(limits::MAX_PIECE);
        let cut = pieces(&body);
        assert!(cut.len() == 4 && cut.iter().all(|piece| piece.len() <= limits::MAX_PIECE));
        assert_eq!(cut.concat(), body);
        assert!(pieces("").is_empty());
    }

    #[test]
    fn a_header_names_a_payload() {
        let payload = Payload::of(3);
        assert_eq!(payload.to_string().parse(), Ok(payload));
        assert!("3".parse::<Payload>().is_err() && "x.3".parse::<Payload>().is_err());
    }
}
