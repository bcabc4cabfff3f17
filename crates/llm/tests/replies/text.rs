//! Thoughts and calls in the text, for both interfaces.

use redial_llm::Api;
use serde_json::json;

use crate::{check, openai::message};

/// Cases: a name, the text, and the reply without its finish.
const TEXTS: &[(&str, &str, &str)] = &[
    ("thoughts", "<think>\nhm\n</think>\n\nyes", "[hm] \"yes\""),
    ("thoughts without the first tag", "hm\n</think>\n\nyes", "[hm] \"yes\""),
    ("words before thoughts", "Well. <think>hm</think> yes", "[Well.\nhm] \"yes\""),
    ("thoughts without an end", "<think>hm, I would say yes", "[hm, I would say yes]"),
    ("a quoted tag", "Close it with `</think>`.", "\"Close it with `</think>`.\""),
    ("a call", r#"<tool_call>{"name": "add", "arguments": {"a": 1}}</tool_call>"#, r#"add({"a": 1})"#),
    (
        "a call on lines",
        "<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": 1}}\n</tool_call>\n",
        r#"add({"a": 1})"#,
    ),
    (
        "words and two calls",
        "I look.\n<tool_call>{\"name\": \"add\", \"arguments\": {}}</tool_call>\n<tool_call>{\"name\": \"get_weather\", \
         \"arguments\": {\"city\": \"Rome\"}}</tool_call>",
        r#"add({}) get_weather({"city": "Rome"}) "I look.""#,
    ),
    ("a call without the last tag", r#"<tool_call>{"name": "add", "arguments": {"a": 1}}"#, r#"add({"a": 1})"#),
    ("arguments in a string", r#"<tool_call>{"name":"add","arguments":"{\"a\":1}"}</tool_call>"#, r#"add({"a":1})"#),
    ("a call without arguments", r#"<tool_call>{"name": "add"}</tool_call>"#, "add()"),
    ("another case", r#"<tool_call>{"name": "Get-Weather", "arguments": {}}</tool_call>"#, "Get-Weather({})"),
    ("a Chinese tool", r#"<tool_call>{"name": "订机票", "arguments": {}}</tool_call>"#, "订机票({})"),
    (
        "a tag in the arguments",
        r#"<tool_call>{"name": "add", "arguments": {"a": "</tool_call><think>"}}</tool_call>"#,
        r#"add({"a": "</tool_call><think>"})"#,
    ),
    ("an unknown tool", r#"<tool_call>{"name": "fly", "arguments": {}}</tool_call>"#, "fly({})"),
    ("an unknown tool of Mistral", r#"[TOOL_CALLS][{"name": "fly", "arguments": {}}]"#, "fly({})"),
    ("no call of Mistral", "[TOOL_CALLS][]", "\"[TOOL_CALLS][]\""),
    (
        "an unknown tool in words",
        r#"Write <tool_call>{"name": "fly", "arguments": {}}</tool_call> then."#,
        r#""Write <tool_call>{\"name\": \"fly\", \"arguments\": {}}</tool_call> then.""#,
    ),
    (
        "an unknown tool beside an offered one",
        r#"Ok. <tool_call>{"name": "fly", "arguments": {}}</tool_call><tool_call>{"name":"add","arguments":{}}</tool_call>"#,
        r#"fly({}) add({}) "Ok.""#,
    ),
    (
        "a call and an invented result",
        "<tool_call>{\"name\": \"add\", \"arguments\": {\"a\": 1}}</tool_call>\n<tool_response>3</tool_response>\nIt is 3.",
        r#"[<tool_response>3</tool_response>
It is 3.] add({"a": 1})"#,
    ),
    (
        "a call after an invented result",
        r#"<tool_call>{"name":"add","arguments":{}}</tool_call><tool_response>3</tool_response><tool_call>{"name":"get_weather","arguments":{}}</tool_call>"#,
        r#"[<tool_response>3</tool_response><tool_call>{"name":"get_weather","arguments":{}}</tool_call>] add({})"#,
    ),
    ("a quoted result", "It comes in `<tool_response>`.", "\"It comes in `<tool_response>`.\""),
    (
        "a call in thoughts",
        "<think><tool_call>{\"name\":\"add\",\"arguments\":{}}</tool_call></think>yes",
        r#"[<tool_call>{"name":"add","arguments":{}}</tool_call>] "yes""#,
    ),
    (
        "a call before thoughts, and one after them",
        "{\"name\":\"add\",\"arguments\":{\"a\":1}}</think>{\"name\":\"add\",\"arguments\":{\"a\":2}}",
        r#"[{"name":"add","arguments":{"a":1}}] add({"a":2})"#,
    ),
    ("a call in code", "Write `<tool_call>{}</tool_call>`.", "\"Write `<tool_call>{}</tool_call>`.\""),
    (
        "a call in a code block",
        "So:\n```\n<tool_call>{\"name\":\"add\",\"arguments\":{}}</tool_call>\n```\nOk?",
        r#""So:\n```\n<tool_call>{\"name\":\"add\",\"arguments\":{}}</tool_call>\n```\nOk?""#,
    ),
    ("single quotes", "<tool_call>{'name': 'add', 'arguments': {'a': 1}}</tool_call>", "add({'a': 1})"),
    ("a trailing comma", r#"<tool_call>{"name":"add","arguments":{"a":1,}}</tool_call>"#, r#"add({"a":1,})"#),
    (
        "a call that is cut off",
        r#"<tool_call>{"name":"add","arguments":{"a":"#,
        r#"add({"name":"add","arguments":{"a":)"#,
    ),
    ("a call without its last bracket", r#"<tool_call>{"name":"add","arguments":{"a":1}"#, r#"add({"a":1)"#),
    (
        "the arguments twice",
        r#"<tool_call>{"name":"add","arguments":{"a":1},"parameters":{"a":2}}</tool_call>"#,
        r#"add({"a":1},"parameters":{"a":2})"#,
    ),
    (
        "the name twice",
        r#"<tool_call>{"name":"fly","name":"add","arguments":{}}</tool_call>"#,
        r#""<tool_call>{\"name\":\"fly\",\"name\":\"add\",\"arguments\":{}}</tool_call>""#,
    ),
    ("Llama's function", r#"<function=add>{"a": 1}</function>"#, r#"add({"a": 1})"#),
    ("Llama's function, damaged", r#"<function=add>{"a": 1,}</function> ok"#, r#"add({"a": 1,}) "ok""#),
    ("a function in a call", "<tool_call>\n<function=add>{\"a\": 1}</function>\n</tool_call>", r#"add({"a": 1})"#),
    ("Llama's tag", r#"<|python_tag|>{"name": "add", "parameters": {"a": 1}}<|eom_id|>"#, r#"add({"a": 1})"#),
    (
        "Llama's tag, two calls",
        r#"<|python_tag|>{"name": "add", "parameters": {"a": 1}}; {"name": "add", "parameters": {"a": 2}}"#,
        r#"add({"a": 1}) add({"a": 2})"#,
    ),
    (
        "Mistral's list",
        r#"[TOOL_CALLS][{"name": "add", "arguments": {"a": 1}}, {"name": "fly", "arguments": {}}]"#,
        r#"add({"a": 1}) fly({})"#,
    ),
    ("Mistral's name", r#"[TOOL_CALLS]add[ARGS]{"a": 1}"#, r#"add({"a": 1})"#),
    (
        "Mistral's names",
        r#"Ok. [TOOL_CALLS]add[CALL_ID]x1[ARGS]{"a": 1}[TOOL_CALLS]add{"a": 2}"#,
        r#"add({"a": 1}) add({"a": 2}) "Ok.""#,
    ),
    ("a bare call", r#"{"name": "add", "arguments": {"a": 1}}"#, r#"add({"a": 1})"#),
    ("a bare call in a fence", "```json\n{\"name\": \"add\", \"parameters\": {\"a\": 1}}\n```", r#"add({"a": 1})"#),
    (
        "OpenAI's form",
        r#"{"type": "function", "function": {"name": "add", "arguments": {"a": 1}}}"#,
        r#"add({"a": 1})"#,
    ),
    ("a bare call, damaged", r#"{"name": "add", "parameters": {"a": 1,}}"#, r#"add({"a": 1,})"#),
    ("a bare call, cut off", r#"{"name": "add", "parameters": {"a": 1}"#, r#"add({"a": 1)"#),
    ("a bare object", r#"{"name": "Paul", "age": 7}"#, r#""{\"name\": \"Paul\", \"age\": 7}""#),
    (
        "a bare call and more",
        r#"{"name":"add","arguments":{},"x":1}"#,
        r#""{\"name\":\"add\",\"arguments\":{},\"x\":1}""#,
    ),
    (
        "a bare call in words",
        r#"Send {"name":"add","arguments":{}} there."#,
        r#""Send {\"name\":\"add\",\"arguments\":{}} there.""#,
    ),
    ("a bare unknown call", r#"{"name":"fly","arguments":{}}"#, r#""{\"name\":\"fly\",\"arguments\":{}}""#),
];

#[test]
fn texts_of_the_chat_completions_interface() {
    for (name, text, wanted) in TEXTS {
        let finish = if wanted.contains(") ") || wanted.ends_with(')') { "tool_calls" } else { "stop" };
        message(name, &json!({"role": "assistant", "content": text}), "stop", &format!("{wanted} {finish}"));
    }
}

#[test]
fn texts_of_the_messages_interface() {
    for (name, text, wanted) in TEXTS {
        let finish = if wanted.contains(") ") || wanted.ends_with(')') { "tool_calls" } else { "stop" };
        let body = json!({"model": "m", "stop_reason": "end_turn", "content": [{"type": "text", "text": text}],
            "usage": {"input_tokens": 7, "output_tokens": 3}});
        check(Api::Anthropic, name, &body, &format!("{wanted} {finish}"));
    }
}

#[test]
fn an_invented_result_is_no_answer() {
    let problem = "problem: The text has a tool's result that you wrote yourself. Results come only from tools: call the tool, \
                   or answer without a result.";
    for text in [
        "<tool_response>\n{\"sum\": 1.5}\n</tool_response>",
        "I look. [TOOL_RESULTS]3",
        "<tool_response>3</tool_response><tool_call>{\"name\":\"add\",\"arguments\":{}}</tool_call>",
    ] {
        message("invented", &json!({"content": text}), "stop", &format!("{text:?} stop {problem}"));
    }
    let calls = json!([{"id": "a", "function": {"name": "add", "arguments": "{}"}}]);
    let body = json!({"content": "I add.<tool_response>3</tool_response>", "tool_calls": calls});
    message("beside a call", &body, "stop", "[<tool_response>3</tool_response>] add({}) \"I add.\" tool_calls");
}

#[test]
fn calls_in_the_text_count_only_without_others() {
    let text = r#"<tool_call>{"name": "add", "arguments": {}}</tool_call>"#;
    let calls = json!([{"id": "a", "function": {"name": "get_weather", "arguments": "{}"}}]);
    let wanted = format!("get_weather({{}}) {text:?} tool_calls");
    message("both", &json!({"content": text, "tool_calls": calls}), "stop", &wanted);
}
