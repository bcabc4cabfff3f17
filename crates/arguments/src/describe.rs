//! What a schema allows, in words.

use serde_json::Value;

/// Alternatives and enum values that are spelt out.
const MAX_LISTED: usize = 20;
/// References and alternatives that are followed; a schema may refer to itself.
const MAX_STEPS: usize = 4;

/// All that a schema says about a value; "any value" if it says nothing. `root` resolves its references.
pub(crate) fn schema(root: &Value, schema: &Value) -> String {
    let words = describe(root, schema, MAX_STEPS);
    if words.is_empty() { "any value".to_owned() } else { words }
}

fn describe(root: &Value, schema: &Value, steps: usize) -> String {
    if steps == 0 {
        return String::new();
    }
    if let Some(target) = schema.get("$ref").and_then(Value::as_str) {
        let target = target.strip_prefix('#').and_then(|pointer| root.pointer(pointer));
        return target.map(|target| describe(root, target, steps - 1)).unwrap_or_default();
    }
    if let Some(value) = schema.get("const").map(exactly).or_else(|| schema.get("enum").map(one_of)) {
        return value;
    }
    if let Some(branches) = schema.get("anyOf").or_else(|| schema.get("oneOf")).and_then(Value::as_array) {
        let mut words: Vec<String> = branches.iter().map(|branch| describe(root, branch, steps - 1)).collect();
        words.retain(|words| !words.is_empty());
        return words.join(" or ");
    }
    let facts = ["type", "format", "minimum", "minLength", "minItems", "multipleOf", "pattern"];
    let words: Vec<String> = facts.iter().filter_map(|fact| keyword(schema, fact)).collect();
    words.join(", ")
}

/// What one keyword of a schema allows, together with its counterpart (`minimum` and `maximum`); none if the schema
/// says nothing about it.
pub(crate) fn keyword(schema: &Value, keyword: &str) -> Option<String> {
    match keyword {
        "type" => schema.get("type").map(types),
        "enum" => schema.get("enum").map(one_of),
        "const" => schema.get("const").map(exactly),
        "format" => schema.get("format").and_then(Value::as_str).map(format_in_words),
        "pattern" => Some(format!("text that matches {}", schema.get("pattern")?.as_str()?)),
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => range(schema),
        "minLength" | "maxLength" => bounds(schema, "minLength", "maxLength", "character"),
        "minItems" | "maxItems" => bounds(schema, "minItems", "maxItems", "item"),
        "minProperties" | "maxProperties" => bounds(schema, "minProperties", "maxProperties", "property"),
        "multipleOf" => Some(format!("a multiple of {}", schema.get("multipleOf")?)),
        "uniqueItems" => Some("items that all differ".to_owned()),
        "not" => Some(format!("anything but {}", self::schema(schema, schema.get("not")?))),
        "contains" => Some(format!("an item that is {}", self::schema(schema, schema.get("contains")?))),
        _ => None,
    }
}

fn types(value: &Value) -> String {
    match value {
        Value::Array(names) => names.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or "),
        Value::String(name) => name.clone(),
        _ => String::new(),
    }
}

fn exactly(value: &Value) -> String {
    format!("exactly {value}")
}

fn one_of(values: &Value) -> String {
    let values = values.as_array().map(Vec::as_slice).unwrap_or_default();
    if let [only] = values {
        return exactly(only);
    }
    format!("one of {}", list(values.iter().map(ToString::to_string)))
}

/// Joins with commas; a long list ends with the number of what was left out.
pub(crate) fn list(items: impl ExactSizeIterator<Item = String>) -> String {
    let rest = items.len().saturating_sub(MAX_LISTED);
    let mut listed: Vec<String> = items.take(MAX_LISTED).collect();
    if rest > 0 {
        listed.push(format!("… and {rest} more"));
    }
    listed.join(", ")
}

fn range(schema: &Value) -> Option<String> {
    let get = |name| schema.get(name).filter(|value: &&Value| value.is_number());
    if let (Some(low), Some(high)) = (get("minimum"), get("maximum")) {
        return Some(format!("{low} to {high}"));
    }
    let low = get("minimum").map(|low| format!("at least {low}"));
    let low = low.or_else(|| get("exclusiveMinimum").map(|low| format!("more than {low}")));
    let high = get("maximum").map(|high| format!("at most {high}"));
    let high = high.or_else(|| get("exclusiveMaximum").map(|high| format!("less than {high}")));
    match (low, high) {
        (Some(low), Some(high)) => Some(format!("{low} and {high}")),
        (low, high) => low.or(high),
    }
}

fn bounds(schema: &Value, low: &str, high: &str, unit: &str) -> Option<String> {
    let get = |name| schema.get(name).and_then(Value::as_u64);
    let many = if unit == "property" { "properties".to_owned() } else { format!("{unit}s") };
    let units = |count: u64| if count == 1 { unit.to_owned() } else { many.clone() };
    match (get(low), get(high)) {
        (Some(low), Some(high)) if low == high => Some(format!("exactly {low} {}", units(low))),
        (Some(low), Some(high)) => Some(format!("{low} to {high} {many}")),
        (Some(low), None) => Some(format!("at least {low} {}", units(low))),
        (None, Some(high)) => Some(format!("at most {high} {}", units(high))),
        (None, None) => None,
    }
}

/// The formats of the 2020-12 specification as a person would write them down.
fn format_in_words(format: &str) -> String {
    let words = match format {
        "date" => "YYYY-MM-DD",
        "time" => "HH:MM:SS with an offset, e.g. 08:30:00Z",
        "date-time" => "a date and time with an offset, e.g. 2026-05-01T08:30:00Z",
        "duration" => "an ISO 8601 duration, e.g. PT1H30M",
        "email" | "idn-email" => "an e-mail address",
        "hostname" | "idn-hostname" => "a host name",
        "ipv4" => "an IPv4 address",
        "ipv6" => "an IPv6 address",
        "uri" | "iri" => "a URI with its scheme, e.g. https://example.com/a",
        "uri-reference" | "iri-reference" => "a URI or a relative reference",
        "uuid" => "a UUID, e.g. 123e4567-e89b-12d3-a456-426614174000",
        "json-pointer" => "a JSON pointer, e.g. /a/0",
        "regex" => "a regular expression",
        other => return format!("the format {other}"),
    };
    words.to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn schemas_in_words() {
        let root = json!({"$defs": {"City": {"enum": ["北京", "上海"]}, "Loop": {"$ref": "#/$defs/Loop"}}});
        for (part, words) in [
            (json!({}), "any value"),
            (json!({"$ref": "#/$defs/City"}), r#"one of "北京", "上海""#),
            (json!({"$ref": "#/$defs/Loop"}), "any value"),
            (json!({"anyOf": [{"$ref": "#/$defs/City"}, {"type": "null"}]}), r#"one of "北京", "上海" or null"#),
            (json!({"const": 1}), "exactly 1"),
            (json!({"enum": [1]}), "exactly 1"),
            (json!({"type": "integer", "minimum": 1, "maximum": 5}), "integer, 1 to 5"),
            (json!({"type": "number", "exclusiveMinimum": 0, "maximum": 1.5}), "number, more than 0 and at most 1.5"),
            (json!({"type": ["string", "null"], "format": "date"}), "string or null, YYYY-MM-DD"),
            (json!({"type": "string", "minLength": 1}), "string, at least 1 character"),
            (json!({"type": "array", "minItems": 2, "maxItems": 2}), "array, exactly 2 items"),
            (json!({"type": "object", "maxProperties": 3}), "object"),
            (json!({"type": "string", "pattern": "^[A-Z]{3}$"}), "string, text that matches ^[A-Z]{3}$"),
        ] {
            assert_eq!(schema(&root, &part), words);
        }
    }

    #[test]
    fn long_enums_are_cut() {
        let words = keyword(&json!({"enum": (0..50).collect::<Vec<_>>()}), "enum").unwrap();
        assert!(words.ends_with("18, 19, … and 30 more"), "{words}");
    }
}
