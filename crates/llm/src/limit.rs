//! How large a reply may be: it travels as a call's output.

use redial_proto::{
    Finish, TurnReply,
    limits::{self, MAX_DEPTH, MAX_OUTPUT},
};

/// Bytes that are shown of an answer that is too long.
const SHOWN: usize = 2000;
const TOO_LONG: &str = "The answer was too long and was cut off. Answer again, much shorter.";

/// The reply, or what is left of it if it is over the limits.
pub(crate) fn reply(mut reply: TurnReply) -> TurnReply {
    let fits = |reply: &TurnReply| {
        serde_json::to_string(reply)
            .is_ok_and(|text| text.len() <= MAX_OUTPUT && limits::json_depth(&text) <= MAX_DEPTH)
    };
    if !fits(&reply) {
        // Mostly it is what the provider wants back; an answer without it is still an answer.
        reply.provider = None;
    }
    if fits(&reply) {
        return reply;
    }
    let start = reply.text.or(reply.thought).unwrap_or_default();
    TurnReply { usage: reply.usage, model: reply.model, ..too_long(&start) }
}

/// An answer over the limit, of which the start is known.
pub(crate) fn too_long(start: &str) -> TurnReply {
    TurnReply {
        text: Some(limits::shorten(start, SHOWN)).filter(|text| !text.trim().is_empty()),
        finish: Finish::Length,
        problem: Some(TOO_LONG.to_owned()),
        ..TurnReply::default()
    }
}
