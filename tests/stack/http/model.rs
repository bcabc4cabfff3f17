//! Models that play a script.

use redial_proto::{Finish, ReplyCall, TurnReply, TurnRequest};
use redial_tools::Tool;
use serde_json::Value;

/// A model with a reply for each turn; the last one is repeated.
pub(crate) fn model(name: &str, replies: impl Into<Vec<TurnReply>>) -> Tool {
    let replies = replies.into();
    Tool::new(name, move |request: TurnRequest| {
        let turn = usize::try_from(request.turn).unwrap().min(replies.len());
        std::future::ready(replies[turn - 1].clone())
    })
}

pub(crate) fn says(text: &str) -> TurnReply {
    TurnReply { text: Some(text.to_owned()), ..TurnReply::default() }
}

pub(crate) fn asks<const N: usize>(calls: [(&str, Value); N]) -> TurnReply {
    let calls = calls.map(|(name, arguments)| ReplyCall { name: name.to_owned(), arguments: arguments.to_string() });
    TurnReply { calls: calls.to_vec(), finish: Finish::ToolCalls, ..TurnReply::default() }
}
