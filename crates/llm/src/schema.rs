//! Schemas of arguments as providers accept them.

use redial_proto::ToolOffer;
use serde_json::{Map, Value};

/// OpenAI and Anthropic refuse these keywords at the top level of a schema.
const REFUSED: [&str; 6] = ["oneOf", "anyOf", "allOf", "not", "enum", "const"];

/// Returns a schema without the keywords that are refused at the top level, and a note for the description instead.
/// Redial checks arguments against the whole schema in any case.
pub(crate) fn of(tool: &ToolOffer) -> (Value, Option<String>) {
    let mut schema = tool.parameters.as_object().cloned().unwrap_or_default();
    schema.insert("type".to_owned(), "object".into());
    // Some servers require it.
    if !schema.get("properties").is_some_and(Value::is_object) {
        schema.insert("properties".to_owned(), Value::Object(Map::new()));
    }
    let (refused, schema): (Map<_, _>, Map<_, _>) =
        schema.into_iter().partition(|(keyword, _)| REFUSED.contains(&keyword.as_str()));
    let note = (!refused.is_empty()).then(|| format!("The arguments must also satisfy {}", Value::Object(refused)));
    (Value::Object(schema), note)
}

/// Adds the note to a tool's description.
pub(crate) fn description(own: String, note: Option<String>) -> String {
    match note {
        Some(note) if own.is_empty() => note,
        Some(note) => format!("{own}\n{note}"),
        None => own,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of_schema(schema: &Value) -> (Value, Option<String>) {
        of(&serde_json::from_value(json!({"name": "a", "parameters": schema})).unwrap())
    }

    #[test]
    fn the_top_level_is_a_plain_object() {
        let plain = json!({"type": "object", "properties": {"a": {"anyOf": []}}});
        assert_eq!(of_schema(&plain), (plain, None));
        assert_eq!(of_schema(&json!({})).0, json!({"type": "object", "properties": {}}));
        assert_eq!(of_schema(&json!(true)).0, json!({"type": "object", "properties": {}}));
        let (schema, note) = of_schema(&json!({"properties": {"a": {}}, "anyOf": [{"required": ["a"]}]}));
        assert_eq!(schema, json!({"properties": {"a": {}}, "type": "object"}));
        assert_eq!(note.unwrap(), r#"The arguments must also satisfy {"anyOf":[{"required":["a"]}]}"#);
    }
}
