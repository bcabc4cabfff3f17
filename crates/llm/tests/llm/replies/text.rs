//! Thoughts and calls in the text, for both interfaces.

use redial_llm::Api;
use serde_json::json;

use super::{anthropic, check, openai};
use crate::cases;

#[test]
fn texts_of_both_interfaces() {
    for (text, wanted) in cases(include_str!("text.txt")) {
        let finish = if wanted.contains(") ") || wanted.ends_with(')') { "tool_calls" } else { "stop" };
        let wanted = format!("{wanted} {finish}");
        check(Api::OpenAi, &text, &openai::body(&json!({"role": "assistant", "content": text}), "stop"), &wanted);
        let blocks = json!([{"type": "text", "text": text}]);
        check(Api::Anthropic, &text, &anthropic::body(&blocks, "end_turn"), &wanted);
    }
}
