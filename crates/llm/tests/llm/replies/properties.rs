//! Properties of every reply.

use proptest::prelude::*;
use redial_llm::{Api, react, read_response};
use serde_json::{Value, json};

use super::{asked, cut, events, lines, short, streamed, whole};

/// A call in every form in which a text may have one.
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

fn piece() -> impl Strategy<Value = String> {
    let marks =
        vec!["<think>", "</think>", "[THINK]", "[/THINK]", "\n", "`", "```\n", "\"", "{", "}", "{\"a\": \"", "\"}"];
    prop_oneof![
        call().prop_map(str::to_owned),
        proptest::sample::select(marks).prop_map(str::to_owned),
        "[a-z 北😀]{0,5}",
    ]
}

fn text() -> impl Strategy<Value = String> {
    proptest::collection::vec(piece(), 0..8).prop_map(|pieces| pieces.concat())
}

/// Words without a marker, for thoughts that certainly end.
fn inside() -> impl Strategy<Value = String> {
    proptest::collection::vec(prop_oneof![call().prop_map(str::to_owned), "[a-z \n]{0,6}"], 1..4)
        .prop_map(|pieces| pieces.concat())
}

fn body(text: &str, parts: bool) -> Value {
    let half = text.floor_char_boundary(text.len() / 2);
    let content = if parts {
        json!([{"type": "text", "text": &text[..half]}, {"type": "text", "text": &text[half..]}])
    } else {
        json!(text)
    };
    json!({"choices": [{"message": {"content": content}, "finish_reason": "stop"}]})
}

proptest! {
    /// A whole reply and a stream of it mean the same, wherever the stream is cut.
    #[test]
    fn both_forms_mean_the_same(text in text(), parts: bool) {
        let body = body(&text, parts);
        let reply = whole(Api::OpenAi, &body);
        for cut in cut::ALL {
            let events = events::of(Api::OpenAi, &body, cut);
            prop_assume!(!text.is_empty());
            prop_assert_eq!(&streamed(Api::OpenAi, &events), &reply, "{:?}", cut);
        }
        let blocks = json!({"stop_reason": "end_turn", "content": [{"type": "text", "text": text}]});
        let reply = whole(Api::Anthropic, &blocks);
        for cut in cut::ALL {
            prop_assert_eq!(&streamed(Api::Anthropic, &events::of(Api::Anthropic, &blocks, cut)), &reply, "{:?}", cut);
        }
    }

    /// A stream that is cut off anywhere is a failure or a reply, never a panic, and never a call that was not written.
    #[test]
    fn a_stream_may_end_anywhere(text in text(), at in 0_usize..2000) {
        let events = lines(&events::of(Api::OpenAi, &body(&text, false), cut::Cut::Half));
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
            let reply = whole(Api::OpenAi, &body(text, false));
            prop_assert!(reply.calls.is_empty() && reply.text.is_none(), "{}", short(&reply));
            let reply = react::read(text, &asked(), false);
            prop_assert!(reply.calls.is_empty() && reply.text.is_none() && reply.problem.is_some(), "{}", short(&reply));
        }
        // What follows is read as if nothing had been before it.
        let real = "Action: get_weather\nAction Input: {\"city\": \"Rome\"}";
        let reply = react::read(&format!("{closed}{real}"), &asked(), false);
        prop_assert_eq!(&reply.calls, &react::read(real, &asked(), false).calls);
        let real = r#"<tool_call>{"name": "get_weather", "arguments": {"city": "Rome"}}</tool_call>"#;
        let reply = whole(Api::OpenAi, &body(&format!("{closed}{real}"), false));
        prop_assert_eq!(&reply.calls, &whole(Api::OpenAi, &body(real, false)).calls);
    }

    /// Nothing after a result that the model invented is a call or an answer.
    #[test]
    fn nothing_after_an_invented_result_runs(words in "[a-z ]{0,6}", after in inside()) {
        let text = format!("{words}<tool_response>{after}");
        let reply = whole(Api::OpenAi, &body(&text, false));
        prop_assert!(reply.calls.is_empty() && reply.problem.is_some(), "{}", short(&reply));
        let real = r#"<tool_call>{"name": "get_weather", "arguments": {"city": "Rome"}}</tool_call>"#;
        let reply = whole(Api::OpenAi, &body(&format!("{real}{text}"), false));
        prop_assert_eq!(&reply.calls, &whole(Api::OpenAi, &body(real, false)).calls);
        prop_assert_eq!(reply.text.unwrap_or_default(), words.trim());
    }
}
