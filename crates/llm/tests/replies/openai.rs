//! Replies of the chat completions interface.

use redial_llm::Api;
use redial_proto::TurnUsage;
use serde_json::{Value, json};

use crate::{check, whole};

fn body(message: &Value, reason: &str) -> Value {
    json!({"model": "m", "choices": [{"index": 0, "message": message, "finish_reason": reason}],
        "usage": {"prompt_tokens": 7, "completion_tokens": 3}})
}

/// Reads a message in both forms.
pub(crate) fn message(name: &str, message: &Value, reason: &str, wanted: &str) {
    check(Api::OpenAi, name, &body(message, reason), wanted);
}

#[test]
fn contents_of_every_form() {
    let long = "It is 21 degrees in Paris: très agréable, 晴 😀.";
    for (name, content, wanted) in [
        ("a text", json!("hi"), "\"hi\" stop"),
        ("a long text", json!(long), &*format!("{long:?} stop")),
        ("parts", json!([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]), "\"ab\" stop"),
        ("plain parts", json!(["a", "b"]), "\"ab\" stop"),
        ("one part", json!({"type": "text", "text": "ab"}), "\"ab\" stop"),
        ("output text", json!([{"type": "output_text", "text": "ab"}]), "\"ab\" stop"),
        ("text as an object", json!([{"type": "text", "text": {"value": "ab", "annotations": []}}]), "\"ab\" stop"),
        (
            "thinking",
            json!([{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "yes"}]),
            "[hm] \"yes\" stop",
        ),
        (
            "Mistral's thinking",
            json!([{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"type": "text", "text": "yes"}]),
            "[hm] \"yes\" stop",
        ),
        (
            "reasoning",
            json!([{"type": "reasoning", "reasoning": "hm"}, {"type": "text", "text": "yes"}]),
            "[hm] \"yes\" stop",
        ),
        (
            "a summary",
            json!([{"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]}, "yes"]),
            "[hm] \"yes\" stop",
        ),
        ("a marked thought", json!([{"text": "hm", "thought": true}, {"text": "yes"}]), "[hm] \"yes\" stop"),
        ("a thought only", json!([{"type": "thinking", "thinking": "hm"}]), "[hm] stop"),
        ("a refusal", json!([{"type": "refusal", "refusal": "No."}]), "\"No.\" refused"),
        ("no text", json!([{"type": "image_url", "image_url": {"url": "x"}}]), "stop"),
        (
            "a part that is a call",
            json!([{"type": "text", "text": "I look."},
                {"type": "tool_use", "id": "a", "name": "add", "input": {"a": 1}}]),
            "add({\"a\":1}) \"I look.\" tool_calls",
        ),
        (
            "thoughts in parts",
            json!([{"type": "text", "text": "<think>h"}, {"type": "text", "text": "m</think>yes"}]),
            "[hm] \"yes\" stop",
        ),
    ] {
        message(name, &json!({"role": "assistant", "content": content}), "stop", wanted);
    }
}

#[test]
fn fields_with_thoughts() {
    for (name, said, wanted) in [
        ("reasoning_content", json!({"reasoning_content": "hm", "content": "yes"}), "[hm] \"yes\" stop"),
        ("reasoning", json!({"reasoning": "hm", "content": "yes"}), "[hm] \"yes\" stop"),
        ("thinking", json!({"thinking": "hm", "content": "yes"}), "[hm] \"yes\" stop"),
        ("both", json!({"reasoning_content": "hm", "reasoning": "hm", "content": "yes"}), "[hm] \"yes\" stop"),
        (
            "a field and a tag",
            json!({"reasoning_content": "hm", "content": "<think>so</think>yes"}),
            "[hm\n\nso] \"yes\" stop",
        ),
        (
            "a field and the same part",
            json!({"reasoning": "hm", "content": [{"type": "reasoning", "text": "hm"}, {"type": "text", "text": "yes"}]}),
            "[hm] \"yes\" stop",
        ),
        ("a list", json!({"reasoning": [{"type": "text", "text": "hm"}], "content": "yes"}), "[hm] \"yes\" stop"),
        (
            "a call in a field",
            json!({"reasoning_content": "<tool_call>{\"name\":\"add\",\"arguments\":{}}</tool_call>",
            "content": "yes"}),
            "[<tool_call>{\"name\":\"add\",\"arguments\":{}}</tool_call>] \"yes\" stop",
        ),
    ] {
        message(name, &said, "stop", wanted);
    }
}

#[test]
fn calls_of_every_form() {
    let add =
        |arguments: Value| json!({"id": "a", "type": "function", "function": {"name": "add", "arguments": arguments}});
    let weather = json!({"id": "b", "type": "function",
        "function": {"name": "get_weather", "arguments": "{\"city\":\"Paris\"}"}});
    let damaged = "{\"city\": \"Par";
    for (name, calls, wanted) in [
        ("one", json!([add(json!("{\"a\":1}"))]), "add({\"a\":1}) tool_calls"),
        ("two", json!([add(json!("{}")), weather]), "add({}) get_weather({\"city\":\"Paris\"}) tool_calls"),
        (
            "arguments as an object",
            json!([add(json!({"a": 1})), weather]),
            "add({\"a\":1}) get_weather({\"city\":\"Paris\"}) tool_calls",
        ),
        ("an object instead of a list", add(json!("{\"a\":1}")), "add({\"a\":1}) tool_calls"),
        ("flat", json!([{"id": "a", "name": "add", "arguments": "{\"a\":1}"}]), "add({\"a\":1}) tool_calls"),
        (
            "flat, with an object",
            json!([{"id": "a", "name": "add", "arguments": {"a": 1}}]),
            "add({\"a\":1}) tool_calls",
        ),
        (
            "flat, with parameters",
            json!([{"id": "a", "name": "add", "parameters": {"a": 1}}]),
            "add({\"a\":1}) tool_calls",
        ),
        (
            "a function that is a name",
            json!([{"id": "a", "function": "add", "arguments": {"a": 1}}]),
            "add({\"a\":1}) tool_calls",
        ),
        ("no arguments", json!([{"id": "a", "function": {"name": "add"}}]), "add() tool_calls"),
        (
            "damaged arguments",
            json!([{"id": "a", "function": {"name": "get_weather", "arguments": damaged}}]),
            "get_weather({\"city\": \"Par) tool_calls",
        ),
        (
            "an unknown tool",
            json!([{"id": "a", "function": {"name": "fly_away", "arguments": "{}"}}]),
            "fly_away({}) tool_calls",
        ),
        (
            "two without ids",
            json!([{"function": {"name": "add", "arguments": "{\"a\":1}"}},
            {"function": {"name": "add", "arguments": "{\"a\":2}"}}]),
            "add({\"a\":1}) add({\"a\":2}) tool_calls",
        ),
    ] {
        message(name, &json!({"content": null, "tool_calls": calls}), "stop", wanted);
        message(
            name,
            &json!({"content": "I look.", "tool_calls": calls}),
            "tool_calls",
            &wanted.replace(" tool_calls", " \"I look.\" tool_calls"),
        );
    }
}

#[test]
fn the_older_field_of_a_call() {
    let add = json!([{"id": "a", "function": {"name": "add", "arguments": "{\"a\":1}"}}]);
    let older = json!({"name": "add", "arguments": "{\"a\":1}"});
    message(
        "function_call",
        &json!({"content": null, "function_call": older}),
        "function_call",
        "add({\"a\":1}) tool_calls",
    );
    message("both fields", &json!({"tool_calls": add, "function_call": older}), "stop", "add({\"a\":1}) tool_calls");
}

#[test]
fn reasons_and_usage() {
    for (reason, wanted) in [
        ("stop", "stop"),
        ("end_turn", "stop"),
        ("eos", "stop"),
        ("length", "length"),
        ("max_tokens", "length"),
        ("MAX_TOKENS", "length"),
        ("model_length", "length"),
        ("content_filter", "refused"),
        ("SAFETY", "refused"),
        ("tool_calls", "other"),
        ("abort", "other"),
    ] {
        message(reason, &json!({"content": "hi"}), reason, &format!("\"hi\" {wanted}"));
    }
    let call = json!([{"id": "a", "function": {"name": "add", "arguments": "{\"a\":"}}]);
    message("a cut call", &json!({"content": null, "tool_calls": call}), "length", "add({\"a\":) length");
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
fn pieces_of_a_name_and_repeated_names() {
    let stream = |names: &[&str]| {
        let piece =
            |name: &&str| json!({"choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"name": name}}]}}]});
        let mut events: Vec<Value> = names.iter().map(piece).collect();
        events.push(json!({"choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"arguments": "{}"}}]},
            "finish_reason": "tool_calls"}]}));
        crate::streamed(Api::OpenAi, &events).calls[0].name.clone()
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
fn a_whole_message_in_a_chunk_counts_once() {
    let delta = json!({"choices": [{"delta": {"content": "hi"}}]});
    let message = json!({"choices": [{"message": {"content": "hi"}, "finish_reason": "stop"}]});
    for events in [vec![delta, message.clone()], vec![message]] {
        assert_eq!(crate::short(&crate::streamed(Api::OpenAi, &events)), "\"hi\" stop");
    }
}

#[test]
fn a_whole_message_in_a_chunk_is_read_as_a_whole_one() {
    for (first, wanted) in [("", "add() add({}) tool_calls"), ("{\"a\": ", "add({\"a\": ) add({}) tool_calls")] {
        let call = |arguments: &str| json!({"function": {"name": "add", "arguments": arguments}});
        let said = json!({"content": null, "tool_calls": [call(first), call("{}")]});
        let reply = whole(Api::OpenAi, &body(&said, "tool_calls"));
        assert_eq!(crate::short(&reply), wanted);
        let message = json!({"model": "m", "choices": [{"message": said, "finish_reason": "tool_calls"}]});
        for delta in [json!({"role": "assistant"}), json!({"reasoning": "hm"}), json!({"tool_calls": [call(first)]})] {
            let thought = if delta["reasoning"].is_null() { "" } else { "[hm] " };
            let events = [json!({"choices": [{"delta": delta}]}), message.clone()];
            assert_eq!(crate::short(&crate::streamed(Api::OpenAi, &events)), format!("{thought}{wanted}"));
        }
    }
}

#[test]
fn a_whole_message_adds_what_was_not_received() {
    let message = json!({"content": "hello", "reasoning": "hm"});
    for (delta, wanted) in [
        (json!({"reasoning": "hm"}), "[hm] \"hello\" stop"),
        (json!({"content": "he"}), "[hm] \"hello\" stop"),
        (json!({"content": " hello"}), "[hm] \" hello\" stop"),
        (json!({"content": "hello", "reasoning": "hm"}), "[hm] \"hello\" stop"),
    ] {
        for together in [false, true] {
            let mut last = json!({"message": message, "finish_reason": "stop"});
            let mut events = vec![json!({"choices": [{"delta": delta}]})];
            if together {
                last["delta"] = delta.clone();
                events.clear();
            }
            events.push(json!({"choices": [last]}));
            assert_eq!(crate::short(&crate::streamed(Api::OpenAi, &events)), wanted, "{events:?}");
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
        assert_eq!(crate::short(&crate::streamed(Api::OpenAi, &events)), "add({\"a\":1}) add({\"b\":2}) tool_calls");
    }
}
