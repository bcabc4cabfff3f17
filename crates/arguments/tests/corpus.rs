//! Damaged arguments as models write them, and the required outcome of each: they run with exactly these arguments, or
//! become feedback. The worst outcome, arguments that run but were not meant, must never happen.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "corpus/texts.rs"]
mod texts;

use redial_arguments::{Repairs, Schema, tool_name, tool_name_in};
use redial_proto::Language;
use serde_json::{Value, json};

use texts::{FEEDBACK, RUN};

/// `get_weather(location, days)` of the table, with one more property of each kind that can be damaged.
fn schema() -> Schema {
    let schema = json!({
        "type": "object",
        "properties": {
            "location": {"type": "string", "minLength": 1},
            "days": {"type": "integer"},
            "unit": {"enum": ["Celsius", "Fahrenheit", "Kelvin"]},
            "hourly": {"type": "boolean"},
            "note": {"type": ["string", "null"]},
            "limit": {"type": ["integer", "null"]},
            "factor": {"type": "number"},
            "tags": {"type": "array", "items": {"type": "string"}},
            "departureDate": {"type": "string"},
            "place": {
                "type": "object",
                "properties": {"lat": {"type": "number"}, "place_name": {"type": "string"}},
                "additionalProperties": false
            }
        },
        "required": ["location"],
        "additionalProperties": false
    });
    Schema::compile(&schema).unwrap()
}

/// One row of a table: the tool that the model named, the arguments that it wrote, and the required outcome.
type Row = (&'static str, &'static str, Result<&'static str, &'static str>);

/// Damaged calls that were measured on other frameworks: `Ok` runs with these arguments and without a second model call,
/// `Err` becomes feedback that contains this.
const TABLE: [Row; 17] = [
    ("get_weather", r#"{"location":"Paris","days":2,}"#, Ok(r#"{"location":"Paris","days":2}"#)),
    ("get_weather", "{'location':'Paris','days':2}", Ok(r#"{"location":"Paris","days":2}"#)),
    ("get_weather", "```json\n{\"location\":\"Paris\"}\n```", Ok(r#"{"location":"Paris"}"#)),
    ("get_weather", r#""{\"location\":\"Paris\"}""#, Ok(r#"{"location":"Paris"}"#)),
    ("get_weather", r#"{"location":"Paris","days":"2"}"#, Ok(r#"{"location":"Paris","days":2}"#)),
    ("get_weather", r#"{"Location":"Paris","Days":2}"#, Ok(r#"{"location":"Paris","days":2}"#)),
    ("Get_Weather", r#"{"location":"Paris"}"#, Ok(r#"{"location":"Paris"}"#)),
    ("get_weather", r#"{"location":"Paris","days":2"#, Err("cut off at line 1 column 29")),
    ("get_weather", r#"{"location":"Paris","days":"two"}"#, Err(r#"/days: "two" was sent; allowed: integer"#)),
    ("get_weather", r#"[{"location":"Paris"}]"#, Err("the arguments are an array")),
    ("get_weather", r#"{"location":["Paris"]}"#, Err(r#"/location: ["Paris"] was sent; allowed: string"#)),
    ("get_weather", r#"{"location":"Paris","days":""}"#, Err(r#"/days: "" was sent; allowed: integer"#)),
    ("get_weather", "", Err("the arguments are empty")),
    ("get_weather", r#"{"locaton":"Paris"}"#, Err(r#"did you mean "location"?"#)),
    ("get_wether", r#"{"location":"Paris"}"#, Err(r#"did you mean "get_weather" or "get_whether"?"#)),
    (
        "get_weather",
        r#"{"location":"Paris","units":"C"}"#,
        Err(r#"/units: "C" was sent; allowed: only "location", "days""#),
    ),
    ("send_email", "{}", Err(r#"no tool "send_email" is offered; offered: "get_weather", "get_whether""#)),
];

#[test]
fn the_table_of_damaged_calls() {
    let schema = json!({
        "properties": {"location": {"type": "string"}, "days": {"type": "integer"}},
        "required": ["location"],
        "additionalProperties": false
    });
    let schema = Schema::compile(&schema).unwrap();
    let mut ran = 0;
    for (tool, raw, want) in TABLE {
        let named = tool_name(tool, ["get_weather", "get_whether"]);
        let done = named.and_then(|(name, _)| {
            assert_eq!(name, "get_weather");
            schema.resolve(raw, Repairs::On)
        });
        match (done, want) {
            (Ok(done), Ok(want)) => {
                assert_eq!(done.arguments, want, "{tool} {raw}");
                ran += 1;
            }
            (Err(refusal), Err(want)) => assert!(refusal.message.contains(want), "{tool} {raw}: {refusal}"),
            (done, want) => panic!("{tool} {raw}: {done:?} instead of {want:?}"),
        }
    }
    let refused = TABLE.len() - ran;
    println!("table of damaged calls: {} rows; {ran} run, {refused} become feedback", TABLE.len());
}

/// The text on one line.
fn visible(text: &str) -> String {
    text.replace('\n', "⏎").replace('\t', "⇥").replace('\u{feff}', "<BOM>").replace('\u{a0}', "<NBSP>")
}

#[test]
fn no_damaged_text_runs_with_wrong_arguments() {
    let schema = schema();
    let (mut correct, mut wrong, mut refused) = (0, Vec::new(), Vec::new());
    for (raw, want) in RUN {
        let want: Value = serde_json::from_str(want).unwrap();
        match schema.resolve(raw, Repairs::On) {
            Ok(done) if serde_json::from_str::<Value>(&done.arguments).unwrap() == want => correct += 1,
            Ok(done) => wrong.push(format!("{raw}\n  ran as {}", done.arguments)),
            Err(refusal) => refused.push(format!("{raw}\n  {refusal}")),
        }
    }
    let mut rightly_refused = 0;
    for (raw, what) in FEEDBACK {
        match schema.resolve(raw, Repairs::On) {
            Ok(done) => wrong.push(format!("{raw}\n  ran as {}", done.arguments)),
            Err(refusal) => {
                assert!(refusal.message.contains(what), "{raw}\n  {refusal}\n  does not contain {what:?}");
                rightly_refused += 1;
            }
        }
    }
    println!(
        "damaged arguments: {} texts; {correct} run correctly, {rightly_refused} rightly refused, {} silently wrong, {} refused \
         that should run",
        RUN.len() + FEEDBACK.len(),
        wrong.len(),
        refused.len()
    );
    assert!(wrong.is_empty(), "silently wrong:\n{}", wrong.join("\n"));
    assert!(refused.is_empty(), "refused that should run:\n{}", refused.join("\n"));
}

#[test]
fn every_repair_of_the_corpus_is_recorded() {
    let schema = schema();
    let lines: Vec<String> = RUN
        .iter()
        .map(|(raw, _)| {
            let repairs = schema.resolve(raw, Repairs::On).unwrap().repairs;
            let repairs: Vec<String> = repairs.iter().map(ToString::to_string).collect();
            format!("{}\n    {}", visible(raw), repairs.join("\n    "))
        })
        .collect();
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn feedback_says_where_and_what_is_allowed() {
    let schema = schema();
    let lines: Vec<String> = FEEDBACK
        .iter()
        .map(|(raw, _)| {
            let refusal = schema.resolve(raw, Repairs::On).unwrap_err();
            format!("{}\n    {}: {refusal}", visible(raw), refusal.class)
        })
        .collect();
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn feedback_in_chinese_has_the_same_details() {
    let schema = schema();
    let lines: Vec<String> = FEEDBACK
        .iter()
        .map(|(raw, _)| {
            let refusal = schema.resolve_in(raw, Repairs::On, Language::Zh).unwrap_err();
            let english = schema.resolve(raw, Repairs::On).unwrap_err();
            assert_eq!(refusal.class, english.class);
            let rule = |refusal: &redial_arguments::Refusal| {
                refusal.details.iter().map(|d| (d.path.clone(), d.rule.clone(), d.sent.clone())).collect::<Vec<_>>()
            };
            assert_eq!(rule(&refusal), rule(&english));
            assert!(refusal.message.contains(|c| matches!(c, '\u{4e00}'..='\u{9fff}')), "{refusal}");
            format!("{}\n    {}: {refusal}", visible(raw), refusal.class)
        })
        .collect();
    insta::assert_snapshot!(lines.join("\n"));
    let unknown = |sent: &str, offered: &[&'static str]| {
        tool_name_in(sent, offered.iter().copied(), Language::Zh).unwrap_err().message
    };
    let tools = ["get_weather", "get_whether"];
    insta::assert_snapshot!(
        [unknown("get_wether", &tools), unknown("send_email", &tools), unknown("a", &[])].join("\n")
    );
    let off = |raw| schema.resolve_in(raw, Repairs::Off, Language::Zh).unwrap_err().message;
    insta::assert_snapshot!([off(r#"{"location":"Paris",}"#), off("{\"location\":1e999}"), off("")].join("\n"));
}

#[test]
fn without_repairs_no_damaged_text_runs() {
    let schema = schema();
    for (raw, _) in RUN {
        // JSON Schema accepts `2.0` as an integer.
        if schema.check(raw).is_err() {
            assert!(schema.resolve(raw, Repairs::Off).is_err(), "{raw}");
        }
    }
    for (raw, _) in FEEDBACK {
        assert!(schema.resolve(raw, Repairs::Off).is_err(), "{raw}");
    }
}
