//! Names and types against a schema: what is reported besides the arguments, and what can be switched off.

use redial_arguments::{Repairs, Schema};
use serde_json::{Value, json};

fn schema(schema: &Value) -> Schema {
    Schema::compile(schema).unwrap()
}

#[test]
fn undeclared_properties_are_reported_and_run_if_the_schema_allows_them() {
    let open = schema(&json!({"properties": {"location": {"type": "string"}}}));
    let raw = r#"{"location":"Paris","units":"metric","a/b":1}"#;
    let done = open.resolve(raw, Repairs::On).unwrap();
    assert_eq!(done.arguments, raw);
    assert_eq!(done.undeclared, ["/units", "/a~1b"]);
    assert_eq!(open.resolve(raw, Repairs::Off).unwrap().undeclared, done.undeclared);
    assert!(schema(&json!({"type": "object"})).resolve(raw, Repairs::On).unwrap().undeclared.is_empty());
}

#[test]
fn repairs_can_be_switched_off() {
    let schema = schema(&json!({"properties": {"days": {"type": "integer"}}, "additionalProperties": false}));
    let message = |raw| schema.resolve(raw, Repairs::Off).unwrap_err().message;
    let sent = [r#"{"days":2,}"#, r#"{"days":2"#, r#"{"Days":2}"#, r#"{"days":"2"}"#];
    insta::assert_snapshot!(sent.map(message).join("\n"));
    assert_eq!(schema.resolve(r#" {"days":2.0}"#, Repairs::Off).unwrap().arguments, r#" {"days":2.0}"#);
}
