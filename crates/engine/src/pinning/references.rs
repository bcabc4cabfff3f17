//! Finds references of a schema that lead to something else than a schema.

use serde_json::Value;

/// Under these keywords are schemas by name.
const NAMED: [&str; 5] = ["properties", "patternProperties", "dependentSchemas", "$defs", "definitions"];
/// Under these are schemas by position, and each keeps its position as long as nothing is said about it.
const LISTED: [&str; 3] = ["allOf", "prefixItems", "items"];
/// Under these is one schema.
const SINGLE: [&str; 11] = [
    "items",
    "additionalItems",
    "additionalProperties",
    "unevaluatedItems",
    "unevaluatedProperties",
    "propertyNames",
    "contains",
    "not",
    "if",
    "then",
    "else",
];

/// The first reference by pointer of a schema that leads into the value of what is no keyword for schemas, such as `default` or a name
/// that no draft knows. Such a value is compared by nobody. A list of alternatives counts, too: its order means nothing elsewhere.
pub(super) fn odd_reference(schema: &Value) -> Option<&str> {
    let mut waiting = vec![schema];
    while let Some(part) = waiting.pop() {
        match part {
            Value::Object(object) => {
                let references = ["$ref", "$dynamicRef", "$recursiveRef"].into_iter();
                let mut references = references.filter_map(|keyword| object.get(keyword)?.as_str());
                if let Some(odd) = references.find(|reference| is_odd(reference)) {
                    return Some(odd);
                }
                waiting.extend(object.values());
            }
            Value::Array(items) => waiting.extend(items),
            _ => {}
        }
    }
    None
}

fn is_odd(reference: &str) -> bool {
    let Some((_, fragment)) = reference.split_once('#') else { return false };
    // What is no pointer is an anchor.
    let Some(pointer) = fragment.strip_prefix('/') else { return false };
    let mut tokens = pointer.split('/').peekable();
    while let Some(keyword) = tokens.next() {
        let is_position = |token: &&str| !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_digit());
        if NAMED.contains(&keyword) {
            if tokens.next().is_none() {
                return true;
            }
        } else if LISTED.contains(&keyword) && tokens.peek().is_some_and(is_position) {
            tokens.next();
        } else if !SINGLE.contains(&keyword) {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_references_to_schemas_are_plain() {
        let plain = [
            "#",
            "#here",
            "other.json",
            "#/$defs/a",
            "#/definitions/default",
            "#/properties/x/items/1/properties/a~1b",
            "#/allOf/0/not",
            "#/items",
            "other#/additionalProperties/%24defs",
        ];
        for reference in &plain[..8] {
            let schema = json!({"properties": {"a": {"$ref": reference}}});
            assert_eq!(odd_reference(&schema), None, "{reference}");
        }
        for reference in
            ["#/x", "#/default", "#/examples/0", "#/properties", "#/anyOf/0", "#/enum/1", "#/$defs/a/x", "#/", plain[8]]
        {
            let schema = json!({"items": [{"$ref": reference}]});
            assert_eq!(odd_reference(&schema), Some(reference));
        }
    }
}
