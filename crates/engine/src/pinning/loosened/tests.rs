use serde_json::json;

use super::*;

fn reasons(old: &Value, new: &Value) -> Vec<String> {
    let mut found = Loosened::default();
    found.compare_all(old, new);
    found.into_reasons()
}

#[expect(clippy::needless_pass_by_value, reason = "so that json!() can stand in the call")]
fn city(city: Value) -> Value {
    json!({"type": "object", "properties": {"city": city}})
}

fn all_found<const N: usize>(rows: [(Value, Value, &str); N]) {
    for (old, new, wanted) in rows {
        let found = reasons(&old, &new);
        assert!(found.iter().any(|reason| reason.contains(wanted)), "{old} to {new}: {found:?}");
    }
}

#[test]
fn what_lets_more_through_is_found() {
    let rows = [
        (json!({"additionalProperties": false}), json!({}), "the arguments: additionalProperties is gone"),
        (json!({"additionalProperties": false}), json!({"additionalProperties": true}), "any value was refused"),
        (
            json!({"additionalProperties": {"type": "string"}}),
            json!({"additionalProperties": true}),
            "\"/additionalProperties\": type is gone",
        ),
        (json!({"required": ["a", "b"]}), json!({"required": ["b", "c"]}), "\"a\" is not required any more"),
        (json!({"required": ["a"]}), json!({}), "\"a\" is not required any more"),
        (city(json!({"type": "string"})), city(json!({})), "\"/city\": type is gone"),
        (city(json!({"type": "integer"})), city(json!({"type": "number"})), "type is \"number"),
        (city(json!({"type": "string"})), city(json!({"type": ["string", "null"]})), "type is"),
        (city(json!({"enum": ["a"]})), city(json!({"enum": ["a", "b"]})), "enum has other values"),
        (city(json!({"enum": ["a"]})), city(json!({})), "enum is gone"),
        (city(json!({"const": 1})), city(json!({"const": 2})), "const changes"),
        (city(json!({"pattern": "^a$"})), city(json!({"pattern": "a"})), "pattern changes"),
        (city(json!({"format": "date"})), city(json!({})), "format is gone"),
        (city(json!({"minimum": 2})), city(json!({"minimum": 1.5})), "minimum is 1.5 instead of 2"),
        (
            city(json!({"minimum": 9_007_199_254_740_993_u64})),
            city(json!({"minimum": 9_007_199_254_740_992_u64})),
            "minimum is 9007199254740992 instead of 9007199254740993",
        ),
        (city(json!({"maximum": 2})), city(json!({"maximum": 3})), "maximum is 3 instead of 2"),
        (city(json!({"maximum": 2})), city(json!({"exclusiveMaximum": 3})), "maximum is gone"),
        (city(json!({"maxLength": 2})), city(json!({})), "maxLength is gone"),
        (city(json!({"minItems": 1})), city(json!({"minItems": 0})), "minItems is 0 instead of 1"),
        (city(json!({"uniqueItems": true})), city(json!({"uniqueItems": false})), "uniqueItems is gone"),
        (city(json!({"items": {"type": "string"}})), city(json!({})), "\"/city/items\": type is gone"),
        (
            city(json!({"prefixItems": [{"type": "string"}]})),
            city(json!({"prefixItems": [{"type": "number"}]})),
            "\"/city/0\": type is",
        ),
        (city(json!({"items": false})), city(json!({"prefixItems": [{}], "items": false})), "any value was refused"),
        (
            city(json!({"properties": {"name": {"maxLength": 3}}})),
            city(json!({"properties": {"name": {"maxLength": 4}}})),
            "\"/city/name\": maxLength is 4",
        ),
        (city(json!({"type": "string"})), json!({"type": "object"}), "\"/city\": type is gone"),
        (city(json!(false)), city(json!(true)), "any value was refused"),
    ];
    all_found(rows);
}

#[test]
fn what_lets_more_through_by_way_of_other_schemas_is_found() {
    let rows = [
        (json!({"$ref": "#/$defs/a"}), json!({"$ref": "#/$defs/b"}), "$ref changes"),
        (json!({"$defs": {"a": {"type": "string"}}}), json!({"$defs": {"a": {}}}), "\"/$defs/a\": type is gone"),
        (json!({"anyOf": [{"type": "string"}]}), json!({"anyOf": [{"type": "string"}, {}]}), "anyOf has other"),
        (json!({"allOf": [{"minimum": 1}]}), json!({"allOf": []}), "\"/allOf/0\": minimum is gone"),
        (json!({"not": {"type": "null"}}), json!({}), "not is gone"),
        (json!({"then": {"minimum": 1}}), json!({"if": {}, "then": {"minimum": 1}}), "if is new"),
        (json!({"contains": {}}), json!({"contains": {}, "minContains": 0}), "minContains is 0"),
        (json!({}), json!({"$schema": "http://json-schema.org/draft-04/schema#"}), "$schema is new"),
        (
            json!({"additionalProperties": false}),
            json!({"additionalProperties": false, "patternProperties": {"": {}}}),
            "\"/patternProperties/\": any value was refused",
        ),
        (
            json!({"additionalProperties": {"maxLength": 3}}),
            json!({"additionalProperties": {"maxLength": 3}, "patternProperties": {"^a": {"maxLength": 4}}}),
            "\"/patternProperties/^a\": maxLength is 4",
        ),
        (
            json!({"unevaluatedProperties": false}),
            json!({"unevaluatedProperties": false, "allOf": [{"additionalProperties": true}]}),
            "allOf changes, beside unevaluatedProperties",
        ),
        (json!({"$ref": "#/x", "x": {"maxLength": 3}}), json!({"$ref": "#/x", "x": {}}), "\"x\" changes"),
        (json!({}), json!({"x": {}}), "\"x\" is new"),
        (
            json!({"$ref": "#/default", "default": {"maxLength": 3}}),
            json!({"$ref": "#/default", "default": {}}),
            "$ref #/default leads into what is no schema",
        ),
        (
            json!({"dependentSchemas": {"a": {"required": ["b"]}}}),
            json!({}),
            "\"/dependentSchemas/a\": \"b\" is not required any more",
        ),
    ];
    all_found(rows);
}

#[test]
fn what_refuses_more_or_names_more_is_no_weakening() {
    let closed = |properties: Value| json!({"type": "object", "properties": properties, "additionalProperties": false});
    let rows = [
        (closed(json!({"a": {"type": "string"}})), closed(json!({"a": {"type": "string"}, "b": {"type": "null"}}))),
        (closed(json!({"a": {"type": "string"}, "b": {}})), closed(json!({"a": {"type": "string"}}))),
        (closed(json!({"a": {"type": "number"}})), closed(json!({"a": {"type": "integer", "minimum": 1}}))),
        (closed(json!({"a": {"type": ["string", "null"]}})), closed(json!({"a": {"type": "string"}}))),
        (closed(json!({"a": {"enum": [1, 2]}})), closed(json!({"a": {"enum": [2]}}))),
        (closed(json!({"a": {"enum": [1, 2]}})), closed(json!({"a": {"const": 2, "enum": [2]}}))),
        (json!({"required": ["a"]}), json!({"required": ["b", "a"]})),
        (json!({}), json!({"additionalProperties": false, "required": ["a"], "maxProperties": 1})),
        (json!({"minimum": 1, "maxLength": 5}), json!({"minimum": 1.5, "maxLength": 4})),
        (json!({"additionalProperties": {"type": "string"}}), json!({"additionalProperties": false})),
        (json!({"anyOf": [{"type": "string"}, {"type": "null"}]}), json!({"anyOf": [{"type": "null"}]})),
        (json!({"allOf": [{"minimum": 1}]}), json!({"allOf": [{"minimum": 2}, {"maximum": 3}]})),
        (
            json!({"items": {"type": "number"}}),
            json!({"items": {"type": "number"}, "prefixItems": [{"type": "integer"}]}),
        ),
        (json!({"description": "a", "title": "b"}), json!({"description": "c", "default": 1})),
        (json!({}), json!({"pattern": "a", "not": {"type": "null"}, "contains": {}})),
        (json!(true), json!({"type": "string"})),
        (json!({}), json!({"patternProperties": {"^a": {"type": "string"}}})),
        (
            json!({"additionalProperties": {"type": "number"}}),
            json!({"additionalProperties": {"type": "number"}, "patternProperties": {"^a": {"type": "integer"}}}),
        ),
        (json!({"type": "object"}), json!(false)),
    ];
    for (old, new) in rows {
        assert_eq!(reasons(&old, &new), Vec::<String>::new(), "{old} to {new}");
    }
}

#[test]
fn reasons_and_work_are_bounded() {
    let many = |value: Value| {
        let properties: Map<String, Value> = (0..1000).map(|n| (format!("p{n}"), value.clone())).collect();
        json!({"properties": properties})
    };
    let found = reasons(&many(json!({"type": "string"})), &many(json!({})));
    assert_eq!((found.len(), found[20].as_str()), (21, "and 980 more"));
    let long = json!({"properties": {"x".repeat(10_000): {"type": "string"}}});
    assert!(reasons(&long, &json!({}))[0].len() < 200);
    let values = |from: u32| json!({"enum": (from..from + 100_000).collect::<Vec<_>>()});
    assert_eq!(reasons(&values(0), &values(0)), Vec::<String>::new());
    assert_eq!(reasons(&values(0), &values(1)), ["the arguments: enum has other values"]);
}
