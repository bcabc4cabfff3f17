//! The messages that users and models read when arguments break the schema.

use proptest::prelude::*;
use redial_arguments::{Refusal, Repairs, Schema};
use redial_proto::{ErrorClass, Failure, Language};
use serde_json::{Value, json};

use crate::resolve::any_json_with;

fn refusal(schema: &Value, raw: &str) -> Refusal {
    Schema::compile(schema).unwrap().check(raw).unwrap_err()
}

fn flights() -> Value {
    serde_json::from_str(include_str!("check/flights.json")).unwrap()
}

const MANY_MISTAKES: &str = r#"{"from":"beijing","to":"Shanghai","dat":"明天","seats":"2","passengers":
    [{"nmae":"a"},{"name":"","child":1},{"name":"c"}],"pay":{"by":"points","points":"many"},"note":"too long"}"#;

const RARE_MISTAKES: &str = r#"{"a":null,"b":[1,1],"c":3,"d":1,"e":["x"],"f":[],"g":"no","h":"1","long":0}"#;

#[test]
fn every_broken_rule_at_once() {
    insta::assert_json_snapshot!(refusal(&flights(), MANY_MISTAKES).details);
}

#[test]
fn the_message_is_one_line() {
    let raw = r#"{"from":"上海市","to":"上海","date":"明天","seats":9}"#;
    insta::assert_snapshot!(refusal(&flights(), raw));
}

#[test]
fn all_alternatives_are_named_if_none_is_likely() {
    let schema =
        json!({"properties": {"when": {"anyOf": [{"type": "string", "format": "date"}, {"type": "integer"}]}}});
    insta::assert_snapshot!(refusal(&schema, r#"{"when": []}"#));
    insta::assert_snapshot!(refusal(&schema, r#"{"when": "soon"}"#));
}

#[test]
fn rarer_rules() {
    insta::assert_json_snapshot!(refusal(&rare(), RARE_MISTAKES).details);
}

fn rare() -> Value {
    json!({
        "properties": {
            "a": {"not": {"type": "null"}}, "b": {"uniqueItems": true}, "c": {"multipleOf": 5}, "d": false,
            "e": {"contains": {"type": "integer"}}, "f": {"minItems": 1}, "g": {"format": "email"}, "h": {"const": 1}
        },
        "propertyNames": {"maxLength": 3},
        "dependentRequired": {"a": ["z"]},
        "maxProperties": 8
    })
}

#[test]
fn the_same_rules_in_chinese() {
    let chinese = |schema: &Value, raw: &str| {
        let refusal = Schema::compile(schema).unwrap().resolve_in(raw, Repairs::Off, Language::Zh).unwrap_err();
        let lines: Vec<String> =
            refusal.details.iter().map(|d| format!("{} {}: {}", d.path, d.rule, d.allowed)).collect();
        format!("{refusal}\n{}", lines.join("\n"))
    };
    insta::assert_snapshot!(chinese(&flights(), MANY_MISTAKES));
    insta::assert_snapshot!(chinese(&rare(), RARE_MISTAKES));
    let bounds = json!({"properties": {
        "a": {"exclusiveMinimum": 0, "exclusiveMaximum": 1}, "b": {"minLength": 2, "maxLength": 3}, "c": {"minimum": 1},
        "d": {"maxItems": 0}, "e": {"enum": (0..30).collect::<Vec<_>>()}, "f": {"format": "date-time"},
        "g": {"type": ["integer", "null"]}, "h": {"oneOf": [{"type": "integer"}, {"minimum": 0}]}
    }});
    let raw = r#"{"a":1,"b":"x","c":0,"d":[1],"e":30,"f":"soon","g":"2","h":3}"#;
    insta::assert_snapshot!(chinese(&bounds, raw));
}

#[test]
fn a_huge_value_is_quoted_in_part() {
    let schema = json!({"properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}});
    let raw = json!({"a": "x".repeat(100_000), "b": vec![1; 10_000]}).to_string();
    let refusal = refusal(&schema, &raw);
    assert!(refusal.message.len() < 1000, "{}", refusal.message.len());
    assert!(serde_json::to_string(&refusal.details).unwrap().len() < 1500);
}

#[test]
fn ten_thousand_broken_rules_are_cut_and_counted() {
    let extra: serde_json::Map<String, Value> = (0..10_000).map(|n| (format!("k{n}"), Value::Null)).collect();
    let refusal = refusal(&json!({"additionalProperties": false}), &Value::Object(extra).to_string());
    assert_eq!(refusal.details.len(), 100);
}

#[test]
fn a_refusal_is_a_failure_without_effect() {
    let failure = Failure::from(refusal(&json!({}), "[]"));
    assert_eq!(failure.class, ErrorClass::MalformedArguments);
    assert!(!failure.effect_possible);
    assert_eq!(Failure::from(refusal(&flights(), "{}")).class, ErrorClass::InvalidArguments);
}

/// Generates JSON with the names of the flights in it.
fn any_flight() -> impl Strategy<Value = Value> {
    let names = vec!["from", "to", "date", "seats", "passengers", "pay", "by", "name", "note"];
    let name = prop_oneof![prop::sample::select(names).prop_map(str::to_owned), "[a-z~/]{0,4}"];
    any_json_with(name.boxed(), "[a-z北~/]{0,6}".boxed())
}

proptest! {
    #[test]
    fn every_field_error_points_into_what_was_sent(value in any_flight()) {
        let schema = Schema::compile(&flights()).unwrap();
        let Err(refusal) = schema.check(&value.to_string()) else { return Ok(()) };
        prop_assert!(!refusal.message.is_empty());
        for error in refusal.details {
            let there = value.pointer(&error.path);
            prop_assert_eq!(there.is_none(), error.rule == "required", "{:?}", error);
            prop_assert!(!error.allowed.is_empty());
        }
    }
}
