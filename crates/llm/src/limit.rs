//! Keeps a reply within the limits of a call's output.

use redial_proto::{
    Finish, TurnReply, estimate,
    limits::{self, MAX_DEPTH, MAX_REPLY},
};

use crate::thoughts;

/// Bytes of an answer over the limit that are kept.
const SHOWN: usize = 2000;
const TOO_LONG: &str = "The answer was too long and was cut off. Answer again, much shorter.";

/// Shortens the reply if it is over the limits.
pub(crate) fn reply(mut reply: TurnReply) -> TurnReply {
    let fits = |reply: &TurnReply| {
        serde_json::to_string(reply).is_ok_and(|text| text.len() <= MAX_REPLY && limits::json_depth(&text) <= MAX_DEPTH)
    };
    if !fits(&reply) {
        // The provider's own data is usually the largest part, and an answer is still usable without it.
        reply.provider = None;
    }
    if fits(&reply) {
        return reply;
    }
    let (text, thought) = (reply.text.unwrap_or_default(), reply.thought.unwrap_or_default());
    TurnReply { usage: reply.usage, model: reply.model, ..shortened(&text, &thought) }
}

/// Makes the reply for an answer over the limit that starts with this text, perhaps with thoughts. `size`: bytes of
/// everything that was received of it, to estimate its tokens.
pub(crate) fn too_long(text: &str, size: usize) -> TurnReply {
    let split = thoughts::split(text);
    let mut reply = shortened(&split.rest, &split.thought.unwrap_or_default());
    reply.usage.estimated_output_tokens = u64::try_from(estimate::of_bytes(size)).ok();
    reply
}

fn shortened(text: &str, thought: &str) -> TurnReply {
    let start = |text: &str| Some(limits::shorten(text, SHOWN)).filter(|text| !text.trim().is_empty());
    TurnReply {
        text: start(text),
        thought: start(thought),
        finish: Finish::Length,
        problem: Some(TOO_LONG.to_owned()),
        ..TurnReply::default()
    }
}
