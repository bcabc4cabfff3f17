//! Feedback about refused arguments: what was sent, a valid example, and advice that fits the case.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use redial_arguments::{Refusal, Repairs, Schema};
use redial_engine::feedback::{CallFailure, MAX_FEEDBACK, Words, call_failure};
use redial_proto::{Failure, Language};
use serde_json::{Value, json};

use super::{EN, ZH, pretty};

fn flights() -> Schema {
    let schema = json!({
        "properties": {
            "from": {"type": "string", "minLength": 3}, "date": {"type": "string", "format": "date"},
            "passengers": {"type": "integer", "minimum": 1, "maximum": 5}
        },
        "required": ["from", "date"]
    });
    Schema::compile(&schema).unwrap()
}

fn refusal(raw: &str, language: Language) -> Refusal {
    flights().resolve_in(raw, Repairs::On, language).unwrap_err()
}

/// Returns what a model reads about these arguments.
fn told(words: Words<'_>, raw: &str, left: Option<u32>, most: usize) -> String {
    let refusal = refusal(raw, words.language);
    let failure = Failure::from(refusal.clone());
    let failed = CallFailure {
        sent: raw,
        help: Some(&refusal.help),
        corrections_left: left,
        ..CallFailure::new("book_flight", &failure)
    };
    call_failure(words, failed, most)
}

/// One text for each kind of advice.
const REFUSED: [&str; 9] = [
    "I would like to fly.",
    r#"{"from": "Rome", "date": 2026-05-01}"#,
    r#"{"from": "Rome", "date": "2026-"#,
    r#"{"from": "Rome", "date": "2026-05-01" // tomorrow }"#,
    r#"{"from": "Rome", "date": "tomorrow", "passengers": 6, "class": "first"}"#,
    "{'from': 'Rome', 'date': '明天'}",
    r#"{"from": "LA"}"#,
    "[]",
    "",
];

/// What the page quotes besides.
const MISTAKES: [&str; 2] =
    [r#"{"from": "Rome", "date": "明天", "passengers": 6}"#, r#"{"from": "Rome", "date": "明天"}"#];

/// Returns classes and guidances as they are for refused arguments.
pub(crate) fn guidances() -> BTreeSet<(String, String)> {
    let pair = |content: String| {
        let content: Value = serde_json::from_str(&content).unwrap();
        (content["class"].as_str().unwrap().to_owned(), content["guidance"].as_str().unwrap().to_owned())
    };
    let of = |words| {
        let all = REFUSED.iter().chain(&MISTAKES);
        all.map(move |raw| pair(told(words, raw, None, MAX_FEEDBACK))).collect::<Vec<_>>()
    };
    of(EN).into_iter().chain(of(ZH)).collect()
}

#[test]
fn each_kind_of_mistake_has_its_help() {
    let all =
        |words| REFUSED.map(|raw| format!("{raw}\n{}", pretty(&told(words, raw, Some(2), MAX_FEEDBACK)))).join("\n");
    insta::assert_snapshot!(all(EN));
    insta::assert_snapshot!(all(ZH));
}

#[test]
fn whoever_exceeds_a_limit_reads_by_how_much() {
    let long = format!("{{\"from\": \"{}\"}}", "x".repeat(16 << 20));
    let lines = [EN, ZH].map(|words| pretty(&told(words, &long, None, MAX_FEEDBACK)));
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn own_words_for_a_class_stand_for_all_of_its_cases() {
    let guidance = |templates: &[(&str, &str)], raw: &str| {
        let templates: BTreeMap<String, String> =
            templates.iter().map(|(key, text)| ((*key).to_owned(), (*text).to_owned())).collect();
        let words = Words { language: Language::En, templates: &templates };
        let content: Value = serde_json::from_str(&told(words, raw, None, MAX_FEEDBACK)).unwrap();
        content["guidance"].as_str().unwrap().to_owned()
    };
    let cut_off = REFUSED[2];
    assert_eq!(guidance(&[("malformed_arguments", "Again.")], cut_off), "Again.");
    let both = [("malformed_arguments", "Again."), ("malformed_arguments.cut_off", "Shorter."), ("example", "So.")];
    assert_eq!(guidance(&both, cut_off), "Shorter. So.");
    assert_eq!(
        guidance(&[("invalid_arguments.values", "Mend {wrong}.")], REFUSED[4]).lines().next(),
        Some("Mend /date and /passengers. The field example is a valid call: take its form, with the right values.")
    );
}

#[test]
fn a_secret_of_the_schema_is_not_repeated() {
    let schema = json!({"properties": {"key": {"default": "sk-1234567890abcdef"}, "n": {"type": "integer"}}, "required": ["key"]});
    let schema = Schema::compile(&schema).unwrap();
    let told = |raw: &str| {
        let refusal = schema.resolve(raw, Repairs::On).unwrap_err();
        let failure = Failure::from(refusal.clone());
        let failed = CallFailure { sent: raw, help: Some(&refusal.help), ..CallFailure::new("fetch", &failure) };
        call_failure(EN, failed, MAX_FEEDBACK)
    };
    assert!(!told("{}").contains("sk-1234567890abcdef"), "{}", told("{}"));
    let own = r#"{"key": "sk-1234567890abcdef", "n": "x"}"#;
    assert!(told(own).contains(r#""example":{"key":"sk-1234567890abcdef","n":1}"#), "{}", told(own));
}

proptest! {
    #[test]
    fn feedback_fits_and_says_where_it_is_cut(
        raw in prop_oneof!["\\PC{0,900}", r#"\{"from": "[a-z\\\\\x01]{0,600}", "date": [a-z]{0,90}"#, "\\{\"passengers\": [0-9]{1,3}\\}"],
        most in 512..20_000_usize, chinese in any::<bool>()
    ) {
        let words = if chinese { ZH } else { EN };
        prop_assume!(flights().resolve(&raw, Repairs::On).is_err());
        let (whole, cut) = (told(words, &raw, Some(2), usize::MAX), told(words, &raw, Some(2), most));
        prop_assert!(cut.len() <= most && whole.len() <= MAX_FEEDBACK, "{} bytes instead of {most}: {cut}", cut.len());
        let (whole, cut): (Value, Value) = (serde_json::from_str(&whole).unwrap(), serde_json::from_str(&cut).unwrap());
        for field in ["message", "guidance"] {
            let text = cut[field].as_str().unwrap();
            prop_assert!(whole[field] == cut[field] || text.ends_with("… (cut)"), "{text}");
        }
        let count = |value: &Value| value["details"].as_array().map_or(0, Vec::len) as u64;
        prop_assert_eq!(count(&cut) + cut["details_left_out"].as_u64().unwrap_or(0), count(&whole));
        prop_assert!(cut["sent"].is_null() || cut["sent"] == whole["sent"]);
    }
}
