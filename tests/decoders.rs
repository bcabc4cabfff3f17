//! Decoders of what comes from outside, on bytes that nobody would write and on good documents that were damaged: each
//! is read or refused, and nothing worse happens. Damaged answers of providers are in `crates/llm`.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking, too")]

use std::{fs, path::Path, path::PathBuf};

use proptest::{collection::vec, prelude::*, sample::Index};
use redial_llm::load_with;
use redial_proto::{AgentSpec, TaskSubmission, TurnReply, TurnRequest};
use serde::{Serialize, de::DeserializeOwned};

const SUBMISSION: &str = r#"{"input":"订一张机票","agent":{"model":"small","fallback_model":"large","system":"be brief",
    "tools":["get_*","book_flight"],"policy":"fallback","max_corrections":3,"fallback_after":0,"language":"zh",
    "budgets":{"turns":5,"corrections":2,"tool_calls":9,"tokens":1000,"cost_usd":0.5,"seconds":60},
    "context_tokens":2000,"result_bytes":300,"max_tokens":100,"temperature":0.5,"templates":{"a":"b"}},
    "conversation":"c-1","key":"k","tenant":"t"}"#;

const REPLY: &str = r#"{"text":"I look","thought":"hm","calls":[{"name":"get_weather","arguments":"{\"city\":1"}],
    "finish":"tool_calls","problem":"cut off","usage":{"input_tokens":3,"output_tokens":4,"cost_micros":5},
    "model":"m","provider":{"kind":"anthropic","thinking":[]}}"#;

const REQUEST: &str = r#"{"task":"01a1f847-5310-74f8-a385-21cea4297f44","turn":1,"messages":[
    {"role":"system","content":"s"},{"role":"user","content":"u","by_redial":true},
    {"role":"assistant","calls":[{"id":"c2_1","tool":"t","arguments":"{}"}],"thought":"x"},
    {"role":"tool","content":"{}","call_id":"c2_1","tool":"t","class":"timeout"}],
    "tools":[{"name":"t","parameters":{"type":"object"},"polling":true,"repairs":false}],
    "language":"zh","max_tokens":9,"temperature":1.0,"trimmed":{"tokens":1,"shortened":2,"left_out":3}}"#;

/// One damage to a text.
#[derive(Clone, Debug)]
enum Damage {
    Cut(Index, Index),
    Repeat(Index, Index),
    Replace(Index, u8),
    Insert(Index, &'static str),
}

const STRANGE: [&str; 16] = [
    "\"",
    "\\",
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "=",
    "\n",
    "null",
    "-1",
    "1e999",
    "\\ud800",
    "\u{0}",
    "99999999999999999999",
];

fn damage() -> impl Strategy<Value = Damage> {
    prop_oneof![
        any::<(Index, Index)>().prop_map(|(from, to)| Damage::Cut(from, to)),
        any::<(Index, Index)>().prop_map(|(from, to)| Damage::Repeat(from, to)),
        any::<(Index, u8)>().prop_map(|(at, byte)| Damage::Replace(at, byte)),
        (any::<Index>(), prop::sample::select(&STRANGE[..])).prop_map(|(at, text)| Damage::Insert(at, text)),
    ]
}

fn damaged(text: &str, damages: &[Damage]) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    for damage in damages {
        let place = |index: &Index| index.index(bytes.len() + 1);
        // Short pieces, so that something is left.
        let piece = |from: &Index, length: &Index| place(from)..(place(from) + length.index(12)).min(bytes.len());
        match damage {
            Damage::Cut(from, length) => drop(bytes.drain(piece(from, length))),
            Damage::Repeat(from, length) => {
                let copy = bytes[piece(from, length)].to_vec();
                let at = place(from);
                bytes.splice(at..at, copy);
            }
            Damage::Replace(at, byte) => {
                let at = place(at);
                bytes.splice(at..(at + 1).min(bytes.len()), [*byte]);
            }
            Damage::Insert(at, text) => {
                let at = place(at);
                bytes.splice(at..at, text.bytes());
            }
        }
    }
    bytes
}

/// What is read can be written, and read again.
fn read<T: Serialize + DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    let document: T = serde_json::from_slice(bytes).ok()?;
    let written = serde_json::to_string(&document).unwrap();
    serde_json::from_str::<T>(&written).unwrap_or_else(|error| panic!("{error}: {written}"));
    Some(document)
}

fn read_all(bytes: &[u8]) {
    if let Some(TaskSubmission { agent: redial_proto::AgentRef::Inline(agent), .. }) = read(bytes) {
        checks(&agent);
    }
    if let Some(agent) = read::<AgentSpec>(bytes) {
        checks(&agent);
    }
    read::<TurnReply>(bytes);
    read::<TurnRequest>(bytes);
}

/// An error names something; patterns of any form are matched.
fn checks(agent: &AgentSpec) {
    assert!(agent.check().err().is_none_or(|error| !error.is_empty()));
    agent.offers("get_weather");
}

fn demo(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/demo").join(file)
}

/// The demo's scripts.
fn scripts() -> Vec<String> {
    let mut files: Vec<_> = fs::read_dir(demo("scripts")).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files.into_iter().map(|file| fs::read_to_string(file).unwrap()).collect()
}

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
switches = { calls = "one", stream_usage = false }
timeout = "90s"
retry = { initial = "1s", factor = 3, cap = "30s", max_attempts = 4, deadline = "10m" }
temperature = 0.2
input_price = 0.4
extra = { top_p = 0.9, more = { deep = [1, 2] } }
"#;

/// Loads a file of models and the script that it names; the error has to name a file.
fn load(folder: &Path, models: &[u8], script: &[u8]) -> bool {
    fs::write(folder.join("models.toml"), models).unwrap();
    fs::write(folder.join("rules.toml"), script).unwrap();
    match load_with(&folder.join("models.toml"), &|_| Some("value".to_owned())) {
        Ok(_) => true,
        Err(error) => {
            let said = error.to_string();
            assert!(said.contains(".toml"), "the error does not say where: {said}");
            false
        }
    }
}

#[test]
fn what_is_damaged_here_is_good() {
    assert!(read::<TaskSubmission>(SUBMISSION.as_bytes()).is_some());
    assert!(read::<TurnReply>(REPLY.as_bytes()).is_some());
    assert!(read::<TurnRequest>(REQUEST.as_bytes()).is_some());
    let folder = tempfile::tempdir().unwrap();
    for script in scripts() {
        assert!(load(folder.path(), MODELS.as_bytes(), script.as_bytes()), "{script}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn damaged_messages_are_read_or_refused(document in 0..3_usize, damages in vec(damage(), 0..6)) {
        read_all(&damaged([SUBMISSION, REPLY, REQUEST][document], &damages));
    }

    #[test]
    fn bytes_are_read_or_refused(bytes in vec(any::<u8>(), 0..100)) {
        read_all(&bytes);
    }
}

proptest! {
    #[test]
    fn damaged_files_are_loaded_or_refused(
        which in any::<Index>(), in_models in vec(damage(), 0..3), in_script in vec(damage(), 0..5), bytes: Option<[u8; 40]>,
    ) {
        let folder = tempfile::tempdir().unwrap();
        let script = which.get(&scripts()).clone();
        let script = bytes.map_or_else(|| damaged(&script, &in_script), |bytes| bytes.to_vec());
        load(folder.path(), &damaged(MODELS, &in_models), &script);
    }
}
