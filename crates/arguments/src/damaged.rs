//! Damaged arguments, schemas and names: what a model wrote is resolved or refused, without a panic and in bounded time.

#[path = "../../../tests/shared/damaged.rs"]
mod strategy;

use std::sync::LazyLock;

use proptest::prelude::*;
use redial_proto::{Help, Language};
use serde_json::{Value, json};

use self::strategy::damaged;
use crate::{Repairs, Schema, tool_name_in};

const CORPUS: &str = include_str!("../tests/arguments/corpus.txt");

/// Returns the texts of the corpus.
fn arguments() -> impl Iterator<Item = String> {
    CORPUS.lines().filter_map(|line| line.strip_prefix('>')).map(|text| text.trim_start().replace('⏎', "\n"))
}

const NAMES: [&str; 7] =
    ["get_weather", "Get_Weather", "get wether", "订 机 票", "GETTIME", "functions.get_weather", "poll-job:0"];

/// Returns schemas of tools, and some whose checks would never end.
fn hostile_schemas() -> Vec<String> {
    let twice = json!({"properties": {"a": {"$ref": "#"}}});
    let filter = |op: &str| json!({"properties": {"op": {"const": op}, "of": {"items": {"$ref": "#/$defs/F"}}}, "required": ["op"]});
    let level =
        |n: usize| json!({"allOf": [{"$ref": format!("#/$defs/d{}", n + 1)}, {"$ref": format!("#/$defs/d{}", n + 1)}]});
    let mut levels: serde_json::Map<String, Value> = (0..34).map(|n| (format!("d{n}"), level(n))).collect();
    levels.insert("d34".to_owned(), json!({"type": "object"}));
    let schemas = [
        json!({"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}, "op": {"enum": ["and", "or"]}},
            "required": ["n"], "additionalProperties": false}),
        json!({"allOf": [twice, twice], "properties": {"n": {"type": "integer"}}}),
        json!({"$dynamicAnchor": "x", "anyOf": [{"properties": {"a": {"$dynamicRef": "#x"}}}, {"items": {"$dynamicRef": "#x"}}]}),
        json!({"properties": {"a": {"$ref": "#/$defs/F"}}, "$defs": {"F": {"oneOf": [filter("and"), filter("or"), {"type": "integer"}]}}}),
        json!({"$ref": "#/$defs/d0", "$defs": levels}),
        json!({"properties": {"n": {"pattern": "^(a{1,50}){1,50}$"}}, "patternProperties": {"^a": {"not": {"uniqueItems": true}}},
            "propertyNames": {"maxLength": 5}, "unevaluatedProperties": false, "dependentSchemas": {"a": {"minProperties": 2}}}),
        json!({"if": {"required": ["a"]}, "then": {"properties": {"a": {"contains": {"$ref": "#"}}}}, "else": {"$ref": "#/$defs/x"},
            "$defs": {"x": {"prefixItems": [true], "items": false, "unevaluatedItems": {"$ref": "#"}}}}),
    ];
    schemas.iter().map(Value::to_string).collect()
}

static SCHEMAS: LazyLock<Vec<Schema>> = LazyLock::new(schemas);

/// True if the arguments are resolved against one of the schemas.
fn resolve(bytes: &[u8], nth: usize) -> bool {
    let raw = String::from_utf8_lossy(bytes);
    let language = if nth.is_multiple_of(2) { Language::En } else { Language::Zh };
    let schema = &SCHEMAS[nth % SCHEMAS.len()];
    if let Ok(unchanged) = schema.resolve_in(&raw, Repairs::Off, language) {
        assert_eq!(unchanged.arguments, raw, "changed although repairs are off");
    }
    let resolved = match schema.resolve_in(&raw, Repairs::On, language) {
        Ok(resolved) => resolved,
        Err(refusal) => {
            let Help { sent, example, .. } = *refusal.help;
            assert!(sent.is_none_or(|sent| sent.chars().count() < 600), "a long quotation");
            let example = example.map(|example| example.to_string());
            assert!(example.is_none_or(|example| schema.check(&example).is_ok()), "an example that is not valid");
            return false;
        }
    };
    let checked = schema.check(&resolved.arguments);
    assert!(checked.is_ok(), "repaired into what breaks the schema: {}", resolved.arguments);
    assert_eq!(resolved.arguments == raw, resolved.repairs.is_empty(), "a repair that is not recorded");
    true
}

/// Returns the schemas of the corpus, one that allows other properties, and one that allows everything.
fn schemas() -> Vec<Schema> {
    let open = json!({
        "properties": {
            "location": {"type": "string"}, "days": {"type": "integer"},
            "tags": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["location"],
    });
    let of_corpus =
        CORPUS.lines().filter_map(|line| line.strip_prefix(':')).map(|text| serde_json::from_str(text).unwrap());
    of_corpus.chain([open, json!({})]).map(|schema: Value| Schema::compile(&schema).unwrap()).collect()
}

/// Compiles or refuses a schema, and checks deep arguments in bounded steps.
fn schema(bytes: &[u8]) -> bool {
    let Ok(schema) = serde_json::from_slice::<Value>(bytes) else { return false };
    let schema = match Schema::compile(&schema) {
        Ok(schema) => schema,
        Err(error) => {
            assert!(!error.message.is_empty(), "an error without a message");
            return false;
        }
    };
    for levels in [0, 3, 60] {
        let inner = json!({"n": "wrong", "op": "and", "of": [1, {"n": 1}]});
        let deep = (0..levels).fold(inner, |inner, _| json!({"a": inner}));
        let raw = deep.to_string();
        if schema.resolve(&raw, Repairs::On).is_ok_and(|done| done.repairs.is_empty()) {
            assert_eq!(schema.check(&raw), Ok(()));
        }
    }
    true
}

fn name(bytes: &[u8]) -> bool {
    const OFFERED: [&str; 6] = ["get_weather", "book_flight", "订机票", "GetTime", "get-time", "poll_job"];
    let sent = String::from_utf8_lossy(bytes);
    match tool_name_in(&sent, OFFERED, Language::Zh) {
        Ok((found, _)) => {
            assert!(OFFERED.contains(&found), "a tool that was not offered");
            true
        }
        Err(_) => false,
    }
}

proptest! {
    #[test]
    fn damaged_arguments_are_resolved_or_refused(bytes in damaged(arguments()), nth in any::<usize>()) {
        resolve(&bytes, nth);
    }

    #[test]
    fn damaged_schemas_are_compiled_or_refused(bytes in damaged(hostile_schemas())) {
        schema(&bytes);
    }

    #[test]
    fn damaged_names_are_found_or_refused(bytes in damaged(NAMES)) {
        name(&bytes);
    }
}

/// Damage to documents that are refused anyway would test only the first line of a decoder.
#[test]
fn the_first_document_of_every_corpus_is_good() {
    assert!((0..SCHEMAS.len()).any(|nth| resolve(arguments().next().unwrap().as_bytes(), nth)));
    assert!(schema(hostile_schemas()[0].as_bytes()) && name(NAMES[0].as_bytes()));
}

/// Inputs that once failed: texts that fit a schema as they stand, because it allows more properties than it names, and do
/// not once a property is taken for the one that was meant.
#[test]
fn inputs_that_once_failed_pass() {
    let found = [
        r#"{"location":"Paris","dayS":""}"#,
        r#"{"location":"Paris","tagS":"['a']"}"#,
        r#"{"location":"Pari{{arguments.a}}s{1e999"," days":"007"}"#,
    ];
    for input in found {
        for nth in 0..2 * SCHEMAS.len() {
            resolve(input.as_bytes(), nth);
        }
    }
}
