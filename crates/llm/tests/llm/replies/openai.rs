//! Replies of the chat completions interface.

use redial_llm::Api;
use redial_proto::TurnUsage;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{check, short, streamed, whole};

/// A message of a model, and its reply in short.
#[derive(Deserialize)]
struct Row {
    name: String,
    message: Value,
    finish_reason: String,
    reply: String,
}

pub(super) fn body(message: &Value, reason: &str) -> Value {
    json!({"model": "m", "choices": [{"index": 0, "message": message, "finish_reason": reason}],
        "usage": {"prompt_tokens": 7, "completion_tokens": 3}})
}

#[test]
fn messages_of_every_form() {
    for line in include_str!("openai.jsonl").lines() {
        let Row { name, mut message, finish_reason, reply } = serde_json::from_str(line).unwrap();
        check(Api::OpenAi, &name, &body(&message, &finish_reason), &reply);
        if reply.ends_with(" tool_calls") && message.get("content") == Some(&Value::Null) {
            message["content"] = "I look.".into();
            let reply = reply.replace(" tool_calls", " \"I look.\" tool_calls");
            check(Api::OpenAi, &name, &body(&message, "tool_calls"), &reply);
        }
    }
}

#[test]
fn usage_that_is_not_told_is_unknown() {
    for (usage, input, output) in [
        (json!({"prompt_tokens": 7, "completion_tokens": 0}), Some(7), Some(0)),
        (json!({"input_tokens": 7, "output_tokens": 3}), Some(7), Some(3)),
        (json!({"prompt_tokens": 7}), Some(7), None),
        (json!({}), None, None),
        (json!(null), None, None),
    ] {
        let body = json!({"choices": [{"message": {"content": "hi"}, "finish_reason": "stop"}], "usage": usage});
        let told = TurnUsage { input_tokens: input, output_tokens: output, ..TurnUsage::default() };
        assert_eq!(whole(Api::OpenAi, &body).usage, told);
        check(Api::OpenAi, "usage", &body, "\"hi\" stop");
    }
    assert_eq!(whole(Api::OpenAi, &json!({"choices": [{"message": {"content": "hi"}}]})).usage, TurnUsage::default());
}

#[test]
fn unusual_messages_are_accepted() {
    for (message, reason, wanted) in [
        (json!({"content": null, "refusal": "I will not."}), "stop", "\"I will not.\" refused"),
        (json!({"content": "x", "tool_calls": []}), "content_filter", "\"x\" refused"),
        (json!({"tool_calls": [{"function": {"arguments": "{}"}}, {}, 7]}), "stop", "({}) () () tool_calls"),
        (json!({}), "strange", "other"),
    ] {
        assert_eq!(short(&whole(Api::OpenAi, &body(&message, reason))), wanted);
    }
    assert!(whole(Api::OpenAi, &json!({"choices": []})).problem.is_some());
    let signed = json!({"google": {"thought_signature": "s"}});
    let function = json!({"name": "f", "arguments": "{}"});
    let calls = json!([{"function": function, "extra_content": signed}, {"function": function}]);
    let kept = whole(Api::OpenAi, &body(&json!({"tool_calls": calls}), "stop")).provider;
    assert_eq!(kept, Some(json!({"kind": "openai", "calls": [signed, null]})));
}

#[test]
fn pieces_of_a_name_and_repeated_names() {
    let stream = |names: &[&str]| {
        let piece =
            |name: &&str| json!({"choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"name": name}}]}}]});
        let mut events: Vec<Value> = names.iter().map(piece).collect();
        events.push(json!({"choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"arguments": "{}"}}]},
            "finish_reason": "tool_calls"}]}));
        streamed(Api::OpenAi, &events).calls[0].name.clone()
    };
    for (names, wanted) in [
        (&["get_", "weather"][..], "get_weather"),
        (&["get_weather", "get_weather"], "get_weather"),
        (&["get", "get_wea", "get_weather"], "get_weather"),
        (&["a", "d", "d"], "add"),
        (&["", "add", ""], "add"),
        (&["fly", "_away"], "fly_away"),
        (&["f", "f"], "f"),
    ] {
        assert_eq!(stream(names), wanted, "{names:?}");
    }
}

#[test]
fn a_whole_message_in_a_chunk_adds_what_was_not_received() {
    let call = |arguments: &str| json!({"function": {"name": "add", "arguments": arguments}});
    let said = json!({"content": "hello", "reasoning": "hm"});
    let calls = |first: &str| json!({"content": null, "tool_calls": [call(first), call("{}")]});
    let mut rows = vec![
        (json!({"reasoning": "hm"}), said.clone(), "[hm] \"hello\" stop".to_owned()),
        (json!({"content": "he"}), said.clone(), "[hm] \"hello\" stop".to_owned()),
        (json!({"content": " hello"}), said.clone(), "[hm] \" hello\" stop".to_owned()),
        (json!({"content": "hello", "reasoning": "hm"}), said, "[hm] \"hello\" stop".to_owned()),
    ];
    for (first, read) in [("", "add() add({}) tool_calls"), ("{\"a\": ", "add({\"a\": ) add({}) tool_calls")] {
        rows.push((json!({"role": "assistant"}), calls(first), read.to_owned()));
        rows.push((json!({"reasoning": "hm"}), calls(first), format!("[hm] {read}")));
        rows.push((json!({"tool_calls": [call(first)]}), calls(first), read.to_owned()));
    }
    for (delta, message, wanted) in rows {
        let apart = [json!({"choices": [{"delta": delta}]}), body(&message, "stop")];
        let mut together = body(&message, "stop");
        together["choices"][0]["delta"] = delta;
        for events in [&apart[..], &[together]] {
            assert_eq!(short(&streamed(Api::OpenAi, events)), wanted, "{events:?}");
        }
    }
}

#[test]
fn calls_that_take_turns_stay_apart() {
    let piece = |index: u64, id: &str, arguments: &str| {
        let call = json!({"index": index, "id": id, "function": {"name": "add", "arguments": arguments}});
        json!({"choices": [{"delta": {"tool_calls": [call]}}]})
    };
    let end = json!({"choices": [{"delta": {}, "finish_reason": "tool_calls"}]});
    for second in [0, 1] {
        let events = [
            piece(0, "a", "{\"a\""),
            piece(second, "b", "{\"b\""),
            piece(0, "a", ":1}"),
            piece(second, "b", ":2}"),
            end.clone(),
        ];
        assert_eq!(short(&streamed(Api::OpenAi, &events)), "add({\"a\":1}) add({\"b\":2}) tool_calls");
    }
}
