//! Properties of every reply.

use proptest::prelude::*;
use redial_llm::{Api, react, read_response};
use serde_json::{Value, json};

use super::{asked, events, lines, short, whole};

/// Generates a call in every form in which a text may have one.
fn call() -> impl Strategy<Value = &'static str> {
    proptest::sample::select(vec![
        r#"<tool_call>{"name": "add", "arguments": {"a": 1}}</tool_call>"#,
        r#"<function=add>{"a": 1}</function>"#,
        r#"<|python_tag|>{"name": "add", "parameters": {"a": 1}}"#,
        r#"[TOOL_CALLS][{"name": "add", "arguments": {"a": 1}}]"#,
        r#"{"name": "add", "arguments": {"a": 1}}"#,
        "Thought: hm\nAction: add\nAction Input: {\"a\": 1}\n",
        "Action: add({\"a\": 1})",
        "\n{\"action\": \"add\", \"action_input\": {\"a\": 1}}\n",
        "Answer: 42",
    ])
}

/// Generates words without a marker, for thoughts that certainly end.
fn inside() -> impl Strategy<Value = String> {
    proptest::collection::vec(prop_oneof![call().prop_map(str::to_owned), "[a-z \n]{0,6}"], 1..4)
        .prop_map(|pieces| pieces.concat())
}

fn body(text: &str) -> Value {
    json!({"choices": [{"message": {"content": text}, "finish_reason": "stop"}]})
}

proptest! {
    /// A stream that is cut off anywhere is a failure or a reply, never a panic, and never a call that was not written.
    #[test]
    fn a_stream_may_end_anywhere(text in inside(), at in 0_usize..2000) {
        let events = lines(&events::of(Api::OpenAi, &body(&text), events::Cut::Half));
        let bytes = events.as_bytes();
        if let Ok(reply) = read_response(Api::OpenAi, &asked(), &bytes[..at.min(bytes.len())], true) {
            prop_assert!(reply.calls.iter().all(|call| text.contains(&call.arguments)), "{:?}", reply);
        }
    }

    /// Nothing inside or before thoughts is a call or an answer.
    #[test]
    fn thoughts_never_run(before in inside(), thought in inside(), opened: bool) {
        let open = if opened { "<think>" } else { "" };
        let closed = format!("{before}{open}{thought}\n</think>\n");
        let open = format!("{before}<think>{thought}");
        for text in [&closed, &open] {
            let reply = whole(Api::OpenAi, &body(text));
            prop_assert!(reply.calls.is_empty() && reply.text.is_none(), "{}", short(&reply));
            let reply = react::read(text, &asked(), false);
            prop_assert!(reply.calls.is_empty() && reply.text.is_none() && reply.problem.is_some(), "{}", short(&reply));
        }
        // What follows is read as if nothing had been before it.
        let real = "Action: get_weather\nAction Input: {\"city\": \"Rome\"}";
        let reply = react::read(&format!("{closed}{real}"), &asked(), false);
        prop_assert_eq!(&reply.calls, &react::read(real, &asked(), false).calls);
        let real = r#"<tool_call>{"name": "get_weather", "arguments": {"city": "Rome"}}</tool_call>"#;
        let reply = whole(Api::OpenAi, &body(&format!("{closed}{real}")));
        prop_assert_eq!(&reply.calls, &whole(Api::OpenAi, &body(real)).calls);
    }

    /// Nothing after a result that the model invented is a call or an answer.
    #[test]
    fn nothing_after_an_invented_result_runs(words in "[a-z ]{0,6}", after in inside()) {
        let text = format!("{words}<tool_response>{after}");
        let reply = whole(Api::OpenAi, &body(&text));
        prop_assert!(reply.calls.is_empty() && reply.problem.is_some(), "{}", short(&reply));
        let real = r#"<tool_call>{"name": "get_weather", "arguments": {"city": "Rome"}}</tool_call>"#;
        let reply = whole(Api::OpenAi, &body(&format!("{real}{text}")));
        prop_assert_eq!(&reply.calls, &whole(Api::OpenAi, &body(real)).calls);
        prop_assert_eq!(reply.text.unwrap_or_default(), words.trim());
    }
}
