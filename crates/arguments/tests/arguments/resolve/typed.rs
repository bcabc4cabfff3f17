//! Against a schema of every type: correct members keep every byte, whatever is wrong with the others.

use std::{collections::BTreeSet, sync::LazyLock};

use proptest::prelude::*;
use redial_arguments::{Repairs, Schema};
use redial_proto::Language;
use serde_json::{Value, json};

static SCHEMA: LazyLock<Schema> = LazyLock::new(|| {
    let schema = json!({
        "properties": {
            "city": {"type": "string"}, "days": {"type": "integer"}, "factor": {"type": "number"},
            "hourly": {"type": "boolean"}, "unit": {"enum": ["Celsius", "one_way", 1]},
            "tags": {"type": "array", "items": {"type": "string"}},
            "place": {"type": "object", "properties": {"lat": {"type": "number"}}, "additionalProperties": false},
            "note": {"type": ["string", "null"]},
            "when": {"anyOf": [{"type": "string", "format": "date"}, {"type": "integer"}]}
        },
        "additionalProperties": false
    });
    Schema::compile(&schema).unwrap()
});

/// A correct member, as text.
fn correct() -> impl Strategy<Value = (&'static str, String)> {
    let text = "[a-zA-Z0-9北 '\"\\\\{}\\[\\]:,#/`_-]{0,12}".prop_map(|text| json!(text).to_string());
    prop_oneof![
        text.clone().prop_map(|text| ("city", text)),
        any::<i64>().prop_map(|n| ("days", n.to_string())),
        prop_oneof![Just("1.50".to_owned()), Just("-2e+3".to_owned()), any::<i32>().prop_map(|n| n.to_string())]
            .prop_map(|n| ("factor", n)),
        any::<bool>().prop_map(|b| ("hourly", b.to_string())),
        prop::sample::select(vec!["\"Celsius\"", "\"one_way\"", "1"]).prop_map(|v| ("unit", v.to_owned())),
        prop::collection::vec(text.clone(), 0..4).prop_map(|list| ("tags", format!("[ {} ]", list.join(" ,")))),
        (-90.0..90.0_f64).prop_map(|n| ("place", format!("{{\"lat\" : {}}}", json!(n)))),
        prop_oneof![text, Just("null".to_owned())].prop_map(|note| ("note", note)),
        prop::sample::select(vec!["\"2026-05-01\"", "20260501"]).prop_map(|v| ("when", v.to_owned())),
    ]
}

/// Members that need a repair, each with the required result.
const WRONG: [(&str, &str, &str); 8] = [
    ("city", "'Pa\"ris'", "\"Pa\\\"ris\""),
    ("days", "\"2\"", "2"),
    ("factor", ".5", "0.5"),
    ("hourly", "True", "true"),
    ("unit", "\"celsius\"", "\"Celsius\""),
    ("tags", "\"[\\\"a\\\"]\"", "[\"a\"]"),
    ("place", "{Lat: \"1.5\"}", "{\"lat\": 1.5}"),
    ("note", "None", "null"),
];

fn members(members: &[(&str, String)]) -> String {
    let members: Vec<String> = members.iter().map(|(key, value)| format!("\"{key}\":{value}")).collect();
    format!("{{{}}}", members.join(", "))
}

fn unique(mut all: Vec<(&'static str, String)>) -> Vec<(&'static str, String)> {
    let mut seen = BTreeSet::new();
    all.retain(|(key, _)| seen.insert(*key));
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn valid_arguments_keep_every_byte(all in prop::collection::vec(correct(), 0..9)) {
        let raw = members(&unique(all));
        for repairs in [Repairs::On, Repairs::Off] {
            let done = SCHEMA.resolve(&raw, repairs).unwrap();
            prop_assert_eq!(&done.arguments, &raw);
            prop_assert!(done.repairs.is_empty());
        }
    }

    #[test]
    fn a_repair_changes_no_other_member(
        all in prop::collection::vec(correct(), 0..9), wrong in prop::sample::select(WRONG.to_vec()), at in 0..9_usize
    ) {
        let (key, sent, becomes) = wrong;
        let mut all = unique(all);
        all.retain(|(other, _)| *other != key);
        let at = at.min(all.len());
        let mut wanted = all.clone();
        all.insert(at, (key, sent.to_owned()));
        wanted.insert(at, (key, becomes.to_owned()));
        let raw = members(&all);
        let done = SCHEMA.resolve(&raw, Repairs::On);
        let done = done.map_err(|refusal| TestCaseError::fail(format!("{raw}\n{refusal}")))?;
        prop_assert_eq!(&done.arguments, &members(&wanted));
        prop_assert!(!done.repairs.is_empty());
    }

    #[test]
    fn any_text_runs_valid_or_is_refused_in_both_languages(
        keys in prop::collection::vec("(city|City|days|Days|unit|tags|place|note|x)", 0..4),
        values in prop::collection::vec(
            "(\"[a-z0-9:]{0,4}\"|'[a-z]{0,3}'|[0-9.]{1,4}|True|null|\\[[0-9,]{0,5}\\]|\\{\\}|)", 4
        ),
        end in "(\\}|,\\}|)"
    ) {
        let pairs: Vec<String> = keys.iter().zip(&values).map(|(key, value)| format!("\"{key}\":{value}")).collect();
        let raw = format!("{{{}{end}", pairs.join(","));
        match (SCHEMA.resolve(&raw, Repairs::On), SCHEMA.resolve_in(&raw, Repairs::On, Language::Zh)) {
            (Ok(english), Ok(chinese)) => {
                prop_assert_eq!(&english, &chinese);
                prop_assert_eq!(SCHEMA.check(&english.arguments), Ok(()));
                prop_assert!(serde_json::from_str::<Value>(&english.arguments).unwrap().is_object());
            }
            (Err(english), Err(chinese)) => {
                prop_assert_eq!(english.class, chinese.class);
                prop_assert_eq!(english.details.len(), chinese.details.len());
                let is_chinese = chinese.message.contains(|c| matches!(c, '\u{4e00}'..='\u{9fff}'));
                prop_assert!(is_chinese, "{}", chinese.message);
            }
            (english, chinese) => prop_assert!(false, "{raw}: {english:?} but {chinese:?}"),
        }
    }
}
