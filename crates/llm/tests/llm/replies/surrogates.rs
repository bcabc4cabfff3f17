//! Halves of surrogate pairs in a provider's JSON.

use redial_llm::{Api, read_response};

use super::{asked, short};

fn read(api: Api, body: &str, streamed: bool) -> String {
    short(&read_response(api, &asked(), body.as_bytes(), streamed).unwrap())
}

fn chunk(delta: &str) -> String {
    format!("data: {{\"choices\":[{{\"delta\":{delta}}}]}}\n\n")
}

const END: &str = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";

#[test]
fn a_lone_half_does_not_cost_the_reply() {
    let call = |content: &str, arguments: &str| {
        format!(r#"{{"content":{content},"tool_calls":[{{"function":{{"name":"add","arguments":{arguments}}}}}]}}"#)
    };
    for (message, wanted) in [
        (call(r#""sun \ud83d!""#, r#""{\"a\":\"\ude00\"}""#), "add({\"a\":\"\u{fffd}\"}) \"sun \u{fffd}!\" tool_calls"),
        (call("null", r#"{"a":"\ud83d"}"#), "add({\"a\":\"\u{fffd}\"}) tool_calls"),
    ] {
        let body = format!(r#"{{"choices":[{{"message":{message},"finish_reason":"stop"}}]}}"#);
        assert_eq!(read(Api::OpenAi, &body, false), wanted);
        assert_eq!(read(Api::OpenAi, &(chunk(&message) + END), true), wanted);
    }
    let block = r#"{"stop_reason":"end_turn","content":[{"type":"text","text":"\ud83d!"}]}"#;
    assert_eq!(read(Api::Anthropic, block, false), "\"\u{fffd}!\" stop");
}

#[test]
fn halves_in_two_events_are_one_character() {
    for (first, second, wanted) in [
        (r#"{"content":"a\ud83d"}"#, r#"{"content":"\ude00b"}"#, "\"a😀b\" stop"),
        (r#"{"content":"a\ud83d"}"#, r#"{"content":"b"}"#, "\"a\u{fffd}b\" stop"),
        (
            r#"{"tool_calls":[{"index":0,"function":{"name":"add","arguments":"{\"a\":\"\ud83d"}}]}"#,
            r#"{"tool_calls":[{"index":0,"function":{"arguments":"\ude00\"}"}}]}"#,
            "add({\"a\":\"😀\"}) tool_calls",
        ),
        (r#"{"reasoning":"\ud83d"}"#, r#"{"reasoning":"\ude00","content":"x"}"#, "[😀] \"x\" stop"),
    ] {
        assert_eq!(read(Api::OpenAi, &(chunk(first) + &chunk(second) + END), true), wanted);
    }
    let delta = |text: &str| {
        format!(
            "data: {{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{{\"type\":\"text_delta\",\"text\":\"{text}\"}}}}\n\n"
        )
    };
    let end = "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n\n";
    assert_eq!(read(Api::Anthropic, &(delta("\\ud83d") + &delta("\\ude00") + end), true), "\"😀\" stop");
}

#[test]
fn an_event_that_is_no_json_still_fails() {
    for (body, streamed) in [("{\"choices\": \"\\ud83d", false), ("data: {\"a\": \"\\ud83d\n\n", true)] {
        assert!(read_response(Api::OpenAi, &asked(), body.as_bytes(), streamed).is_err());
    }
}
