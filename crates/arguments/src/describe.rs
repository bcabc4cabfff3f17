//! Describes what a schema allows.

mod bounds;
mod formats;

use redial_proto::Language;
use serde_json::Value;

use crate::language::pick;

/// At most this many alternatives and enum values are listed.
const MAX_LISTED: usize = 20;
/// References and alternatives are followed this deep, and so many schemas are described together; a schema may refer to
/// itself, and each alternative to all of them.
const MAX_DEPTH: usize = 4;
const MAX_DESCRIBED: usize = 60;

/// Says everything that a schema does about a value; "any value" if it says nothing. `root` resolves its references.
pub(crate) fn schema(root: &Value, schema: &Value, language: Language) -> String {
    let words = describe(root, schema, MAX_DEPTH, &mut { MAX_DESCRIBED }, language);
    if words.is_empty() { pick(language, "any value", "任意值") } else { words }
}

fn describe(root: &Value, schema: &Value, depth: usize, left: &mut usize, language: Language) -> String {
    if depth == 0 || *left == 0 {
        return String::new();
    }
    *left -= 1;
    if let Some(target) = schema.get("$ref").and_then(Value::as_str) {
        let target = target.strip_prefix('#').and_then(|pointer| root.pointer(pointer));
        return target.map(|target| describe(root, target, depth - 1, left, language)).unwrap_or_default();
    }
    if let Some(value) = keyword(schema, "const", language).or_else(|| keyword(schema, "enum", language)) {
        return value;
    }
    if let Some(branches) = schema.get("anyOf").or_else(|| schema.get("oneOf")).and_then(Value::as_array) {
        let mut words: Vec<String> =
            branches.iter().map(|branch| describe(root, branch, depth - 1, left, language)).collect();
        words.retain(|words| !words.is_empty());
        return words.join(or(language));
    }
    let facts = ["type", "format", "minimum", "minLength", "minItems", "multipleOf", "pattern"];
    let words: Vec<String> = facts.iter().filter_map(|fact| keyword(schema, fact, language)).collect();
    words.join(comma(language))
}

/// Says what one keyword of a schema allows, together with its counterpart (`minimum` and `maximum`); `None` if the
/// schema lacks it.
pub(crate) fn keyword(schema: &Value, keyword: &str, language: Language) -> Option<String> {
    match keyword {
        "type" => schema.get("type").map(|types| self::types(types, language)),
        "enum" => schema.get("enum").map(|values| one_of(values, language)),
        "const" => schema.get("const").map(|value| exactly(value, language)),
        "format" => schema.get("format").and_then(Value::as_str).map(|format| formats::describe(format, language)),
        "pattern" => {
            let pattern = schema.get("pattern")?.as_str()?;
            Some(pick(language, format!("text that matches {pattern}"), format!("符合 {pattern} 的文本")))
        }
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => bounds::range(schema, language),
        "minLength" | "maxLength" => bounds::count(schema, "Length", language),
        "minItems" | "maxItems" => bounds::count(schema, "Items", language),
        "minProperties" | "maxProperties" => bounds::count(schema, "Properties", language),
        "multipleOf" => {
            let step = schema.get("multipleOf")?;
            Some(pick(language, format!("a multiple of {step}"), format!("{step} 的倍数")))
        }
        "uniqueItems" => Some(pick(language, "items that all differ", "互不相同的元素")),
        "not" => {
            let words = self::schema(schema, schema.get("not")?, language);
            Some(pick(language, format!("anything but {words}"), format!("除此之外的任意值：{words}")))
        }
        "contains" => {
            let words = self::schema(schema, schema.get("contains")?, language);
            Some(pick(
                language,
                format!("at least one item that matches: {words}"),
                format!("至少包含一个这样的元素：{words}"),
            ))
        }
        _ => None,
    }
}

/// Names the JSON types, whose names are the same in every language.
fn types(value: &Value, language: Language) -> String {
    match value {
        Value::Array(names) => names.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(or(language)),
        Value::String(name) => name.clone(),
        _ => String::new(),
    }
}

fn exactly(value: &Value, language: Language) -> String {
    pick(language, format!("exactly {value}"), format!("只能是 {value}"))
}

fn one_of(values: &Value, language: Language) -> String {
    let values = values.as_array().map(Vec::as_slice).unwrap_or_default();
    if let [only] = values {
        return exactly(only, language);
    }
    let values = list(values.iter().map(ToString::to_string), language);
    pick(language, format!("one of {values}"), format!("以下之一：{values}"))
}

/// Joins items with commas; a long list ends with the number of items left out.
pub(crate) fn list(items: impl ExactSizeIterator<Item = String>, language: Language) -> String {
    let rest = items.len().saturating_sub(MAX_LISTED);
    let mut listed: Vec<String> = items.take(MAX_LISTED).collect();
    if rest > 0 {
        listed.push(pick(language, format!("… and {rest} more"), format!("……以及另外 {rest} 个")));
    }
    listed.join(match language {
        Language::En => ", ",
        Language::Zh => "、",
    })
}

const fn or(language: Language) -> &'static str {
    match language {
        Language::En => " or ",
        Language::Zh => " 或 ",
    }
}

const fn comma(language: Language) -> &'static str {
    match language {
        Language::En => ", ",
        Language::Zh => "，",
    }
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
            assert_eq!(schema(&root, &part, Language::En), words);
        }
    }

    #[test]
    fn long_enums_are_cut() {
        let words = keyword(&json!({"enum": (0..50).collect::<Vec<_>>()}), "enum", Language::En).unwrap();
        assert!(words.ends_with("18, 19, … and 30 more"), "{words}");
    }
}
