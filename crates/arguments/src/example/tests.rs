use serde_json::json;

use super::*;
use crate::{Schema, cost::Steps};

fn found(schema: &Schema, sent: Option<&Value>) -> Option<Example> {
    let steps = Steps::default();
    Example::of(&Check { schema, steps: &steps, bytes: 0 }, sent)
}

fn example(schema: &Value, sent: &Value) -> Option<String> {
    let compiled = Schema::compile(schema).unwrap();
    let found = found(&compiled, Some(sent))?;
    assert!(compiled.check(&found.arguments.to_string()).is_ok(), "{schema}: {}", found.arguments);
    Some(found.arguments.to_string())
}

/// Returns the example of a call with one required property.
fn value(property: &Value) -> Option<Value> {
    let schema = json!({"properties": {"v": property}, "required": ["v"]});
    let found = found(&Schema::compile(&schema).unwrap(), None)?;
    Some(found.arguments["v"].clone())
}

#[test]
fn right_values_are_kept_and_wrong_ones_are_replaced() {
    let schema = json!({
        "properties": {
            "city": {"type": "string", "minLength": 1}, "days": {"type": "integer", "minimum": 1, "maximum": 5},
            "unit": {"enum": ["Celsius", "Kelvin"]}, "place": {"properties": {"lat": {"type": "number"}}, "required": ["lat"]}
        },
        "required": ["city", "days"]
    });
    for (sent, wanted) in [
        (json!({"city": "Rome", "days": 9}), r#"{"city":"Rome","days":1}"#),
        (json!({"days": "two"}), r#"{"days":1,"city":"text"}"#),
        (json!({"city": "Rome", "days": 2, "unit": "C"}), r#"{"city":"Rome","days":2,"unit":"Celsius"}"#),
        (json!({"city": "Rome", "days": 2, "place": {"lat": "x"}}), r#"{"city":"Rome","days":2,"place":{"lat":1}}"#),
        (json!({"city": "Rome", "days": 9, "units": "C"}), r#"{"city":"Rome","days":1}"#),
        (json!({}), r#"{"city":"text","days":1}"#),
        (json!({"city": "x".repeat(5_000), "days": 2}), r#"{"days":2,"city":"text"}"#),
    ] {
        assert_eq!(example(&schema, &sent).as_deref(), Some(wanted), "{sent}");
    }
}

/// Values that the author of the schema wrote down come first, then values by type, format and bounds. For the last properties
/// there is no example rather than a wrong one.
#[test]
fn every_property_has_the_value_that_its_schema_says() {
    let lines: Vec<String> = include_str!("properties.jsonl")
        .lines()
        .map(|property| {
            let example = value(&serde_json::from_str(property).unwrap());
            format!(
                "{property}\n    {}",
                example.map_or_else(|| "no example".to_owned(), |example| example.to_string())
            )
        })
        .collect();
    insta::assert_snapshot!(lines.join("\n"));
    assert_eq!(value(&json!({"const": "x".repeat(10_000)})), None);
}

#[test]
fn the_whole_schema_decides() {
    let either = json!({
        "properties": {"by": {"enum": ["card", "points"]}},
        "oneOf": [
            {"properties": {"by": {"const": "card"}, "number": {"type": "string"}}, "required": ["by", "number"]},
            {"properties": {"by": {"const": "points"}, "points": {"type": "integer"}}, "required": ["by", "points"]}
        ]
    });
    assert_eq!(example(&either, &json!({"by": "points"})).as_deref(), Some(r#"{"by":"points","points":2}"#));
    assert_eq!(example(&either, &json!({})).as_deref(), Some(r#"{"by":"card","number":"text"}"#));
    let closed = json!({"properties": {"a": {"type": "integer"}}, "additionalProperties": false});
    assert_eq!(example(&closed, &json!({"a": 2, "b": 3})).as_deref(), Some(r#"{"a":2}"#));
    let written = json!({"not": {"maxProperties": 3}, "examples": [{"a": 1, "b": 2, "c": 3, "d": 4}]});
    assert_eq!(example(&written, &json!({})).as_deref(), Some(r#"{"a":1,"b":2,"c":3,"d":4}"#));
}

#[test]
fn there_is_no_example_without_an_end() {
    let endless = json!({"type": "object", "properties": {"next": {"$ref": "#"}}, "required": ["next"]});
    assert_eq!(example(&endless, &json!({"next": 1})), None);
    let many: Vec<String> = (0..5_000).map(|n| format!("p{n}")).collect();
    assert_eq!(example(&json!({"required": many}), &json!({})), None);
}

#[test]
fn recursive_schemas_end() {
    let tree = json!({
        "properties": {"name": {"type": "string"}, "children": {"type": "array", "items": {"$ref": "#"}}},
        "required": ["name", "children"]
    });
    let found = example(&tree, &json!({"name": "root", "children": 5})).unwrap();
    assert!(found.starts_with(r#"{"name":"root","children":["#) && found.len() < 300, "{found}");
    let wide: Map<String, Value> = (0..20).map(|n| (format!("p{n}"), json!({"$ref": "#"}))).collect();
    let names: Vec<&String> = wide.keys().collect();
    assert_eq!(example(&json!({"type": "object", "properties": wide, "required": names}), &json!({})), None);
}
