//! Damaged answers of models and providers, and damaged files: each is read or refused, without a panic.

#[path = "../../../tests/shared/damaged.rs"]
mod strategy;

use std::{fs, path::Path, sync::LazyLock};

use proptest::prelude::*;
use redial_proto::{Language, TaskId, ToolOffer, Trimmed, TurnReply, TurnRequest};
use serde_json::json;
use tempfile::TempDir;

use self::strategy::{assert_linear, damaged};
use crate::{Api, load_with, react, read_response};

const REACT: [&str; 8] = [
    "Thought: I look.\nAction: get_weather\nAction Input: {\"city\": \"Paris\"}\nObservation: sun\nThought: done\nAnswer: sun",
    "Action: get_weather\nAction Input: {\"city\": \"Paris\"}\nAction: get_weather\nAction Input: {\"city\": \"Rome\"}",
    "**Thought:** hm\n**Action:** get_weather\n**Action Input:**\n```json\n{\"city\": \"Paris\",}\n```",
    "思考：查一下\n行动：订机票\n行动输入：{\"日期\"：\"明天\"}",
    "action：get_weather\naction input：{'city': 'Paris'",
    "Answer: the label \"Action:\" stands before a tool",
    "Thought: no tool is needed.\nFinal Answer: 42",
    "It rains.",
];

const OPENAI: [&str; 6] = [
    r#"{"id":"x","choices":[{"index":0,"finish_reason":"tool_calls","message":{"role":"assistant","content":null,
        "reasoning_content":"hm","tool_calls":[{"id":"a","type":"function","function":{"name":"get_weather","arguments":"{\"city\":\"Paris\"}"}},
        {"id":"b","type":"function","function":{"name":"订机票","arguments":{"x":1}}}]}}],
        "usage":{"prompt_tokens":3,"completion_tokens":4},"model":"m"}"#,
    r#"{"choices":[{"finish_reason":"length","message":{"content":[{"type":"text","text":"<think>a</think>It rai"}],"refusal":null}}]}"#,
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"It \"}}]}\n\n\
     data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"get_weather\",\"arguments\":\"\"}}]}}]}\r\n\r\n\
     : a comment\ndata: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"{\\\"city\\\":\"}}]}}]}\n\n\
     data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"tool_calls\"}],\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":2}}\n\ndata: [DONE]\n\n",
    "data: {\"error\":{\"message\":\"overloaded\",\"code\":529}}\n\n",
    r#"{"error":{"message":"Rate limit","type":"rate_limit_error","code":"429"}}"#,
    "{\"message\":{\"content\":\"ollama\"}}",
];

const ANTHROPIC: [&str; 4] = [
    r#"{"id":"m","type":"message","role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"},
        {"type":"text","text":"I look"},{"type":"tool_use","id":"t1","name":"get_weather","input":{"city":"Paris"}}],
        "stop_reason":"tool_use","usage":{"input_tokens":3,"output_tokens":4},"model":"m"}"#,
    "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"model\":\"m\",\"usage\":{\"input_tokens\":3}}}\n\n\
     event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n\
     event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"It\"}}\n\n\
     data: {\"type\":\"content_block_start\",\"index\":1,\"content_block\":{\"type\":\"tool_use\",\"id\":\"t\",\"name\":\"get_weather\",\"input\":{}}}\n\n\
     data: {\"type\":\"content_block_delta\",\"index\":1,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"{\\\"city\\\"\"}}\n\n\
     data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"tool_use\"},\"usage\":{\"output_tokens\":9}}\n\n\
     data: {\"type\":\"message_stop\"}\n\n",
    r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
    "data: {\"type\":\"error\",\"error\":{\"type\":\"rate_limit_error\",\"message\":\"x\"}}\n\n",
];

const MODELS: &str = r#"
[models.played]
provider = "script"
script = "rules.toml"

[models.asked]
provider = "openai"
model = "m"
base_url = "http://127.0.0.1:1/v1"
headers = { X-Team = "${TEAM}-a" }
profile = "qwen"
overrides = { calls = "one", stream_usage = false }
timeout = "90s"
retry = { initial = "1s", factor = 3, cap = "30s", max_attempts = 4, deadline = "10m" }
temperature = 0.2
input_price = 0.4
extra = { top_p = 0.9, more = { deep = [1, 2] } }
"#;

const SCRIPTS: [&str; 4] = [
    include_str!("../../../examples/demo/scripts/clerk.toml"),
    include_str!("../../../examples/demo/scripts/planner.toml"),
    include_str!("../../../examples/demo/scripts/small-poet.toml"),
    "style = \"react\"\n[[rule]]\nwhen = { class = \"unknown_tool\" }\ntext = \"Thought: t\\nAction: a\\nAction Input: {}\"\n",
];

static REQUEST: LazyLock<TurnRequest> = LazyLock::new(request);

fn request() -> TurnRequest {
    let offer = |name: &str| ToolOffer {
        name: name.to_owned(),
        description: String::new(),
        parameters: json!({"type": "object", "properties": {"city": {"type": "string"}}}),
        version: "1".to_owned(),
        polling: false,
        sequential: false,
        repairs: true,
    };
    TurnRequest {
        task: TaskId::generate(),
        turn: 1,
        messages: Vec::new(),
        tools: vec![offer("get_weather"), offer("订机票")],
        language: Language::En,
        max_tokens: None,
        temperature: None,
        trimmed: Trimmed::default(),
    }
}

fn react_text(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    usable(&react::read(&text, &REQUEST, false)) | usable(&react::read(&text, &REQUEST, true))
}

fn answer(api: Api, bytes: &[u8]) -> bool {
    let one = |streamed| match read_response(api, &REQUEST, bytes, streamed) {
        Ok(reply) => usable(&reply),
        Err(failure) => {
            assert!(!failure.message.is_empty(), "an error without a message");
            false
        }
    };
    one(false) | one(true)
}

/// It can be stored and read again; true if it is not malformed.
fn usable(reply: &TurnReply) -> bool {
    let written = serde_json::to_string(reply).unwrap();
    let again = serde_json::from_str::<TurnReply>(&written);
    assert!(again.is_ok_and(|again| again == *reply), "it is not what was written: {written}");
    reply.problem.is_none()
}

/// Reads `models.toml` with its script. Every variable has a value, and an error names its file.
fn files(models: &[u8], script: &[u8]) -> bool {
    static FOLDER: LazyLock<TempDir> = LazyLock::new(|| tempfile::tempdir().unwrap());
    let folder = tempfile::tempdir_in(FOLDER.path()).unwrap();
    let write = |name: &str, bytes: &[u8]| fs::write(folder.path().join(name), bytes).unwrap();
    write("models.toml", models);
    write("rules.toml", script);
    let loaded = load_with(Path::new(&folder.path().join("models.toml")), &|_| Some("value".to_owned()));
    loaded
        .map_err(|error| assert!(error.to_string().contains(".toml"), "the error does not name its file: {error}"))
        .is_ok()
}

const SCRIPTED: &str = "[models.played]\nprovider = \"script\"\nscript = \"rules.toml\"\n";

proptest! {
    #[test]
    fn damaged_react_texts_are_read(bytes in damaged(REACT)) {
        react_text(&bytes);
    }

    #[test]
    fn damaged_answers_of_chat_completions_are_read_or_refused(bytes in damaged(OPENAI)) {
        answer(Api::OpenAi, &bytes);
    }

    #[test]
    fn damaged_answers_of_messages_are_read_or_refused(bytes in damaged(ANTHROPIC)) {
        answer(Api::Anthropic, &bytes);
    }
}

proptest! {
    // They open files and build clients.
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases / 8, ..ProptestConfig::default() })]

    #[test]
    fn damaged_files_of_models_are_read_or_refused(models in damaged([MODELS])) {
        files(&models, SCRIPTS[0].as_bytes());
    }

    #[test]
    fn damaged_scripts_are_read_or_refused(script in damaged(SCRIPTS)) {
        files(SCRIPTED.as_bytes(), &script);
    }
}

#[test]
fn long_texts_take_no_more_than_linear_time() {
    assert_linear(react_text);
    assert_linear(|bytes| answer(Api::OpenAi, bytes));
    assert_linear(|bytes| answer(Api::Anthropic, bytes));
    assert_linear(|bytes| files(bytes, SCRIPTS[0].as_bytes()));
    assert_linear(|bytes| files(SCRIPTED.as_bytes(), bytes));
}

/// Damage to documents that are refused anyway would test only the first line of a decoder.
#[test]
fn the_first_document_of_every_corpus_and_every_script_is_good() {
    assert!(react_text(REACT[0].as_bytes()));
    assert!(answer(Api::OpenAi, OPENAI[0].as_bytes()) && answer(Api::Anthropic, ANTHROPIC[0].as_bytes()));
    assert!(files(MODELS.as_bytes(), SCRIPTS[0].as_bytes()));
    assert!(SCRIPTS.iter().all(|script| files(SCRIPTED.as_bytes(), script.as_bytes())));
}
