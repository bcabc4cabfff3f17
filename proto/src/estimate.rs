//! How many tokens texts take, estimated: rather too many than too few. No tokenizer is like another, so this knows only
//! the scripts of a text.

use crate::{Message, ToolOffer, TurnReply, TurnRequest};

/// What a provider adds to each message: its role and separators. Measured counts are 3 to 7.
const TOKENS_PER_MESSAGE: usize = 8;
/// What a provider adds to each call and to each tool: its form and its id.
const TOKENS_PER_CALL: usize = 24;

/// About 1 for a CJK character, 2 for an emoji or another rare character, and 1 for each 3.5 bytes of anything else.
pub fn tokens(text: &str) -> usize {
    let (mut whole, mut bytes) = (0, 0);
    for c in text.chars() {
        match u32::from(c) {
            0x1_0000.. => whole += 2,
            0x2e80.. => whole += 1,
            _ => bytes += c.len_utf8(),
        }
    }
    whole + of_bytes(bytes)
}

/// The tokens of a text of which only the length in bytes is known.
pub const fn of_bytes(bytes: usize) -> usize {
    bytes.saturating_mul(2).div_ceil(7)
}

/// The tokens of a message.
pub fn of_message(message: &Message) -> usize {
    let texts = [Some(&message.content), message.thought.as_ref(), message.call_id.as_ref(), message.tool.as_ref()];
    let spoken: usize = texts.into_iter().flatten().map(|text| tokens(text)).sum();
    let calls = message.calls.iter().map(|call| TOKENS_PER_CALL + tokens(&call.tool) + tokens(&call.arguments));
    let kept = message.provider.as_ref().map_or(0, |kept| kept.to_string().len() / 3);
    TOKENS_PER_MESSAGE + spoken + calls.sum::<usize>() + kept
}

/// The tokens that a model reads: its messages and its tools.
pub fn of_request(request: &TurnRequest) -> u64 {
    let tool = |tool: &ToolOffer| {
        TOKENS_PER_CALL + tokens(&tool.name) + tokens(&tool.description) + tokens(&tool.parameters.to_string())
    };
    // A request that is read without its messages still says how many tokens they have.
    let messages = match &request.messages[..] {
        [] => request.trimmed.tokens as usize,
        messages => messages.iter().map(of_message).sum(),
    };
    wide(messages + request.tools.iter().map(tool).sum::<usize>())
}

/// The tokens that a model wrote: its text, its thoughts and its calls.
pub fn of_reply(reply: &TurnReply) -> u64 {
    let texts = [reply.text.as_deref(), reply.thought.as_deref()];
    let spoken: usize = texts.into_iter().flatten().map(tokens).sum();
    let calls = reply.calls.iter().map(|call| TOKENS_PER_CALL + tokens(&call.name) + tokens(&call.arguments));
    wide(TOKENS_PER_MESSAGE + spoken + calls.sum::<usize>())
}

fn wide(tokens: usize) -> u64 {
    u64::try_from(tokens).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ReplyCall, Role, TaskId};

    #[test]
    fn tokens_are_estimated_by_script() {
        for (text, estimate) in [("", 0), ("a", 1), ("seven b", 2), ("明天去北京", 5), ("明天 ok", 3), ("👍", 2)]
        {
            assert_eq!(tokens(text), estimate, "{text}");
        }
        assert_eq!(of_bytes(7), 2);
        assert!(of_bytes(usize::MAX) > 0);
    }

    #[test]
    fn everything_that_a_model_reads_and_writes_counts() {
        let request = |messages, tools: serde_json::Value| TurnRequest {
            messages,
            tools: serde_json::from_value(tools).unwrap(),
            ..serde_json::from_value(serde_json::json!({"task": TaskId::generate(), "turn": 1, "messages": []}))
                .unwrap()
        };
        let tool =
            serde_json::json!({"name": "book", "description": "Books a trip.", "parameters": {"type": "object"}});
        let hello = vec![Message::text(Role::User, "Hello, hello")];
        assert_eq!(of_request(&request(hello.clone(), serde_json::json!([]))), 8 + 4);
        assert!(of_request(&request(hello, serde_json::json!([tool]))) > 8 + 4 + 24);
        let call = ReplyCall { name: "book".to_owned(), arguments: "{}".to_owned() };
        let said =
            TurnReply { text: Some("明天".to_owned()), thought: Some("好".to_owned()), ..TurnReply::default() };
        assert_eq!(of_reply(&said), 8 + 2 + 1);
        assert_eq!(of_reply(&TurnReply { calls: vec![call], ..said }), 8 + 2 + 1 + 24 + 2 + 1);
    }
}
