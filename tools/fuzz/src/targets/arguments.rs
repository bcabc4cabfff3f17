//! What a model wrote as the arguments and the name of a tool.

use redial_arguments::{Repairs, Schema, tool_name_in};
use redial_proto::{Help, Language};
use serde_json::{Value, json};

use super::target::{Decoder, Target, texts};
use crate::corpus;

/// The arguments of a call.
pub(super) const ARGUMENTS: Target =
    Target { name: "arguments", weight: 300, corpus: corpus::arguments, decoder: arguments };

/// The schema of a tool, with arguments for it.
pub(super) const SCHEMAS: Target =
    Target { name: "schema", weight: 20, corpus: corpus::schemas, decoder: || Box::new(schema) };

/// The name of a tool.
pub(super) const NAMES: Target =
    Target { name: "tool name", weight: 40, corpus: || texts(&corpus::NAMES), decoder: || Box::new(name) };

fn arguments() -> Decoder {
    let schemas = schemas();
    let mut turn = 0;
    Box::new(move |bytes| {
        turn += 1;
        let raw = String::from_utf8_lossy(bytes);
        let language = if turn % 2 == 0 { Language::En } else { Language::Zh };
        let schema = &schemas[turn % schemas.len()];
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
    })
}

/// The schema of the damaged texts, one of many kinds of values, and one that allows everything.
fn schemas() -> Vec<Schema> {
    let weather = json!({
        "type": "object",
        "properties": {
            "location": {"type": "string"}, "days": {"type": "integer"}, "hourly": {"type": "boolean"},
            "units": {"enum": ["metric", "imperial"]}, "tags": {"type": "array", "items": {"type": "string"}},
            "factor": {"type": "number"}, "note": {"type": ["string", "null"]},
        },
        "required": ["location"],
    });
    let order = json!({
        "type": "object",
        "properties": {
            "date": {"type": "string", "format": "date"}, "code": {"type": "string", "pattern": "^[A-Z]{3}$"},
            "lines": {"type": "array", "maxItems": 5, "items": {
                "type": "object", "properties": {"itemId": {"type": "integer"}, "count": {"type": "integer", "minimum": 1}},
                "required": ["itemId"], "additionalProperties": false}},
            "to": {"anyOf": [{"type": "string"}, {"type": "object", "properties": {"city": {"type": "string"}}}]},
        },
        "additionalProperties": false,
    });
    let compile = |schema: Value| Schema::compile(&schema).unwrap_or_else(|error| panic!("{error}"));
    [weather, order, json!({"type": "object"})].map(compile).into()
}

/// Any schema is compiled or refused, and checks deep arguments in bounded steps.
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
