//! Names and types against a schema: what is coerced, what is never coerced, and what is reported.

use proptest::prelude::*;
use redial_arguments::{Repairs, Resolved, Schema};
use redial_proto::RepairKind::{DoubleEncoded, KeyName, Type};
use serde_json::{Value, json};

fn resolved<'a>(schema: &Value, raw: &'a str) -> Resolved<'a> {
    Schema::compile(schema).unwrap().resolve(raw, Repairs::On).unwrap()
}

fn refused(schema: &Value, raw: &str) -> String {
    Schema::compile(schema).unwrap().resolve(raw, Repairs::On).unwrap_err().message
}

/// The final arguments.
fn arguments(schema: &Value, raw: &str) -> String {
    resolved(schema, raw).arguments.into_owned()
}

#[test]
fn correct_parts_keep_every_byte() {
    let schema = json!({"properties": {"days": {"type": "integer"}}});
    let raw = "{ \"id\" : 12345678901234567890123, \"Days\":\t\"2\",\n \"f\": 1.50e+2, \"t\": \"\\u00e9\\/\" }";
    assert_eq!(
        arguments(&schema, raw),
        "{ \"id\" : 12345678901234567890123, \"days\":\t2,\n \"f\": 1.50e+2, \"t\": \"\\u00e9\\/\" }"
    );
}

#[test]
fn undeclared_properties_are_reported_and_run_if_the_schema_allows_them() {
    let open = json!({"properties": {"location": {"type": "string"}}});
    let raw = r#"{"location":"Paris","units":"metric","a/b":1}"#;
    let done = resolved(&open, raw);
    assert_eq!(done.arguments, raw);
    assert_eq!(done.undeclared, ["/units", "/a~1b"]);
    let off = Schema::compile(&open).unwrap().resolve(raw, Repairs::Off).unwrap();
    assert_eq!(off.undeclared, done.undeclared);
    let closed = json!({"properties": {"location": {"type": "string"}}, "additionalProperties": false});
    assert!(refused(&closed, raw).starts_with("/units: \"metric\" was sent; allowed: only \"location\""));
    let nothing_declared = json!({"type": "object"});
    assert!(resolved(&nothing_declared, raw).undeclared.is_empty());
}

#[test]
fn a_key_of_an_open_schema_is_matched_without_case() {
    let open = json!({"properties": {"days": {"type": "integer"}}});
    assert_eq!(arguments(&open, r#"{"Days":"2"}"#), r#"{"days":2}"#);
    assert_eq!(refused(&open, r#"{"Days":"soon"}"#), r#"/days: "soon" was sent; allowed: integer"#);
}

#[test]
fn a_refusal_quotes_what_was_sent_not_the_repaired_value() {
    let schema = json!({"properties": {"seats": {"type": "integer", "maximum": 5}}});
    assert_eq!(refused(&schema, r#"{"Seats":"9",}"#), r#"/seats: "9" was sent; allowed: at most 5"#);
}

#[test]
fn one_wrong_value_does_not_hide_the_repairs_of_others() {
    let schema = json!({"properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}});
    assert_eq!(refused(&schema, r#"{"a":"1","b":"two"}"#), r#"/b: "two" was sent; allowed: integer"#);
}

#[test]
fn alternatives_are_coerced_only_if_one_value_is_meant() {
    let of = |branches: Value| json!({"properties": {"v": {"anyOf": branches}}});
    let nullable = of(json!([{"type": "integer"}, {"type": "null"}]));
    assert_eq!(arguments(&nullable, r#"{"v":"2"}"#), r#"{"v":2}"#);
    assert_eq!(arguments(&nullable, r#"{"v":"None"}"#), r#"{"v":null}"#);
    let optional_enum = of(json!([{"enum": ["Red", "Blue"]}, {"type": "null"}]));
    assert_eq!(arguments(&optional_enum, r#"{"v":"red"}"#), r#"{"v":"Red"}"#);
    // The schema allows strings, but not this one; that it spells a number could be chance.
    let date_or_number = of(json!([{"type": "string", "format": "date"}, {"type": "integer"}]));
    refused(&date_or_number, r#"{"v":"20261120"}"#);
    let two_readings = of(json!([{"enum": ["1"]}, {"enum": [1]}]));
    refused(&two_readings, r#"{"v":"1.0"}"#);
    let object_or_null = of(json!([
        {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
        {"type": "null"}
    ]));
    assert_eq!(arguments(&object_or_null, r#"{"v":{"N":"1"}}"#), r#"{"v":{"n":1}}"#);
}

#[test]
fn a_tag_of_an_alternative_may_be_in_another_case() {
    let pay = json!({"properties": {"pay": {"oneOf": [
        {"properties": {"by": {"const": "card"}, "number": {"type": "string"}}, "required": ["by", "number"]},
        {"properties": {"by": {"const": "points"}, "points": {"type": "integer"}}, "required": ["by", "points"]}
    ]}}});
    assert_eq!(arguments(&pay, r#"{"pay":{"by":"Points","points":"3"}}"#), r#"{"pay":{"by":"points","points":3}}"#);
}

#[test]
fn enums_are_folded_only_if_one_value_is_meant() {
    let of = |values: Value| json!({"properties": {"v": {"enum": values}}});
    assert_eq!(arguments(&of(json!(["one_way", "return"])), r#"{"v":"One Way"}"#), r#"{"v":"one_way"}"#);
    assert_eq!(arguments(&of(json!([1, 2])), r#"{"v":"2"}"#), r#"{"v":2}"#);
    assert_eq!(arguments(&of(json!([true, null])), r#"{"v":"True"}"#), r#"{"v":true}"#);
    refused(&of(json!(["a", "A "])), r#"{"v":"b"}"#);
    refused(&of(json!(["Ab", "AB"])), r#"{"v":"ab"}"#);
    refused(&of(json!(["1", 1])), r#"{"v":"1 "}"#);
    refused(&of(json!(["+1", "-1"])), r#"{"v":"1"}"#);
}

#[test]
fn integers_keep_every_digit_or_are_refused() {
    let integer = json!({"properties": {"n": {"type": "integer"}}});
    for (sent, becomes) in [
        (r#""12345678901234567890123""#, "12345678901234567890123"),
        ("2.000", "2"),
        ("-2.0", "-2"),
        ("12345678901234567890123", "12345678901234567890123"),
        ("1e3", "1e3"),
    ] {
        assert_eq!(arguments(&integer, &format!("{{\"n\":{sent}}}")), format!("{{\"n\":{becomes}}}"));
    }
    for sent in [r#""1e3""#, r#"" 2""#, r#""+2""#, r#""0x1F""#, r#""1_000""#, r#""1,000""#, r#""２""#, r#""NaN""#] {
        refused(&integer, &format!("{{\"n\":{sent}}}"));
    }
    // Where a fraction is allowed it stays.
    let number = json!({"properties": {"n": {"type": "number"}}});
    assert_eq!(arguments(&number, r#"{"n":2.0}"#), r#"{"n":2.0}"#);
    let either = json!({"properties": {"n": {"anyOf": [{"type": "integer"}, {"type": "number"}]}}});
    assert_eq!(arguments(&either, r#"{"n":2.0}"#), r#"{"n":2.0}"#);
}

#[test]
fn a_number_becomes_a_string_only_where_only_strings_are_allowed() {
    let of = |types: Value| json!({"properties": {"v": {"type": types}}});
    assert_eq!(arguments(&of(json!("string")), r#"{"v":7500100.10}"#), r#"{"v":"7500100.10"}"#);
    assert_eq!(arguments(&of(json!(["string", "null"])), r#"{"v":5}"#), r#"{"v":"5"}"#);
    refused(&of(json!(["string", "boolean"])), r#"{"v":5}"#);
    refused(&of(json!("string")), r#"{"v":true}"#);
    refused(&json!({"properties": {"v": {"type": "string", "format": "date"}}}), r#"{"v":20261120}"#);
}

#[test]
fn values_in_strings_are_unwrapped_only_if_they_are_valid_json() {
    let schema = json!({"properties": {"v": {
        "type": "object", "properties": {"Ids": {"type": "array", "items": {"type": "integer"}}}
    }}});
    let done = resolved(&schema, r#"{"V":"{\"ids\": \"[\\\"1\\\", 2]\"}"}"#);
    assert_eq!(done.arguments, r#"{"v":{"Ids": [1, 2]}}"#);
    let kinds: Vec<_> = done.repairs.iter().map(|repair| repair.kind).collect();
    assert_eq!(kinds, [KeyName, DoubleEncoded, KeyName, DoubleEncoded, Type]);
    for inner in [r#""{'Ids': []}""#, r#""{\"Ids\": [}""#, r#""{\"Ids\":[],\"Ids\":[1]}""#, r#""[]""#, r#""see {}""#] {
        refused(&schema, &format!("{{\"v\":{inner}}}"));
    }
    let text = json!({"properties": {"v": {"type": "string"}}});
    assert_eq!(arguments(&text, r#"{"v":"{\"a\":1}"}"#), r#"{"v":"{\"a\":1}"}"#);
}

#[test]
fn more_repairs_than_can_be_recorded_are_refused() {
    let schema = json!({"properties": {"v": {"items": {"type": "integer"}}}});
    let list = |length: usize| format!("{{\"v\":[{}\"1\"]}}", "\"1\",".repeat(length - 1));
    assert_eq!(resolved(&schema, &list(1000)).repairs.len(), 1000);
    assert!(refused(&schema, &list(1001)).contains("1000 repairs"));
    let quotes = format!("{{'v':[{}]}}", "'x',".repeat(1000));
    assert!(refused(&json!({}), &quotes).contains("1000 repairs"));
}

#[test]
fn repairs_can_be_switched_off() {
    let schema = json!({"properties": {"days": {"type": "integer"}}, "additionalProperties": false});
    let schema = Schema::compile(&schema).unwrap();
    let message = |raw| schema.resolve(raw, Repairs::Off).unwrap_err().message;
    let sent = [r#"{"days":2,}"#, r#"{"days":2"#, r#"{"Days":2}"#, r#"{"days":"2"}"#];
    insta::assert_snapshot!(sent.map(message).join("\n"));
    assert_eq!(schema.resolve(r#" {"days":2.0}"#, Repairs::Off).unwrap().arguments, r#" {"days":2.0}"#);
}

/// Members of every declared type, each with text that a model may send instead.
fn member() -> impl Strategy<Value = (&'static str, Value, String)> {
    prop_oneof![
        any::<i64>().prop_map(|n| ("whole_number", json!(n), format!("\"{n}\""))),
        (-1e9..1e9_f64).prop_map(|n| ("number", json!(n), format!("\"{}\"", json!(n)))),
        any::<bool>().prop_map(|b| ("flag", json!(b), format!("\"{b}\""))),
        any::<u32>().prop_map(|n| ("text", json!(n.to_string()), n.to_string())),
        prop::sample::select(vec!["One_Way", "Return"]).prop_map(|v| (
            "kind",
            json!(v),
            format!("\"{}\"", v.to_uppercase())
        )),
        prop::collection::vec(any::<u8>(), 0..3).prop_map(|list| (
            "list",
            json!(list),
            json!(json!(list).to_string()).to_string()
        )),
    ]
}

proptest! {
    #[test]
    fn damaged_members_are_restored_and_the_rest_is_kept(
        members in prop::collection::vec((member(), any::<[bool; 2]>()), 0..6)
    ) {
        let schema = json!({"properties": {
            "whole_number": {"type": "integer"}, "number": {"type": "number"}, "flag": {"type": "boolean"},
            "text": {"type": "string"}, "kind": {"enum": ["One_Way", "Return"]},
            "list": {"type": "array", "items": {"type": "integer"}}
        }, "additionalProperties": false});
        let schema = Schema::compile(&schema).unwrap();
        let mut wanted = serde_json::Map::new();
        let mut texts = Vec::new();
        for ((name, value, otherwise), [damaged, renamed]) in members {
            if wanted.contains_key(name) {
                continue;
            }
            let key = if renamed { name.to_uppercase().replace('_', "-") } else { name.to_owned() };
            texts.push(format!("\"{key}\": {}", if damaged { otherwise } else { value.to_string() }));
            wanted.insert(name.to_owned(), value);
        }
        let raw = format!("{{{}}}", texts.join(", "));
        let done = schema.resolve(&raw, Repairs::On);
        let done = done.map_err(|refusal| TestCaseError::fail(format!("{raw}\n{refusal}")))?;
        let value: Value = serde_json::from_str(&done.arguments).unwrap();
        prop_assert_eq!(value, Value::Object(wanted), "{}", raw);
        for repair in &done.repairs {
            prop_assert!(repair.before != repair.after);
            prop_assert!(done.arguments.contains(&repair.after));
        }
    }
}
