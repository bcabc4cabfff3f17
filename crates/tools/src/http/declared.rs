//! The part of the arguments that a schema declares.
//!
//! An undeclared property is the sender's idea, and a service that takes whatever it gets would store it: an `is_admin` among
//! the fields of a user. So the default body leaves it out. What is sent stays as it was written, byte for byte.

use std::{
    collections::{HashMap, HashSet},
    sync::LazyLock,
};

use redial_proto::json_text::Members;
use regex::Regex;
use serde_json::{Map, Value, value::RawValue};

/// Schemas that apply to one value.
type Parts<'s> = Vec<&'s Value>;

/// A schema, ready to say what it declares.
#[derive(Debug)]
pub(crate) struct Declared {
    schema: Value,
    /// The patterns of `patternProperties`: compiling one takes long.
    patterns: Patterns,
}

type Patterns = HashMap<String, Regex>;

impl Declared {
    /// Compiles the patterns of a schema.
    pub(crate) fn of_schema(schema: Value) -> Self {
        let mut patterns = Patterns::new();
        let mut waiting = vec![&schema];
        while let Some(part) = waiting.pop() {
            for (pattern, _) in object(part, "patternProperties") {
                // A dispatcher accepts no tool whose patterns do not compile.
                if let (false, Ok(compiled)) = (patterns.contains_key(pattern), Regex::new(pattern)) {
                    patterns.insert(pattern.clone(), compiled);
                }
            }
            match part {
                Value::Object(object) => waiting.extend(object.values()),
                Value::Array(items) => waiting.extend(items),
                _ => {}
            }
        }
        Self { schema, patterns }
    }

    /// Keeps the properties of the arguments that the schema declares, at every level; byte for byte if it declares
    /// all. Where a schema has no `properties`, every key is as good as another.
    pub(crate) fn of(&self, arguments: &RawValue) -> String {
        let (out, left_out) = (String::with_capacity(arguments.get().len()), false);
        let mut writer = Writer { root: &self.schema, patterns: &self.patterns, out, left_out };
        writer.write(&[&self.schema], arguments);
        if writer.left_out { writer.out } else { arguments.get().to_owned() }
    }
}

/// Finds the first reference of a schema that leads to nothing that is known here.
pub(crate) fn unknown_reference(schema: &Value) -> Option<&str> {
    let mut waiting = vec![schema];
    while let Some(part) = waiting.pop() {
        match part {
            Value::Object(object) => {
                let unknown = references(part).find(|reference| target(schema, reference).is_none());
                if unknown.is_some() {
                    return unknown;
                }
                waiting.extend(object.iter().filter(|(key, _)| !is_data(key)).map(|(_, value)| value));
            }
            Value::Array(items) => waiting.extend(items),
            _ => {}
        }
    }
    None
}

struct Writer<'s> {
    root: &'s Value,
    patterns: &'s Patterns,
    out: String,
    left_out: bool,
}

impl Writer<'_> {
    /// Writes a value; arguments nest at most 64 deep.
    fn write(&mut self, parts: &[&Value], value: &RawValue) {
        let text = value.get();
        // A `RawValue` is valid JSON, so both can be read.
        match text.as_bytes().first() {
            Some(b'{') => {
                let members = serde_json::from_str::<Members<'_>>(text).unwrap_or_default();
                self.object(&applicable(self.root, parts), &members.0);
            }
            Some(b'[') => {
                let items = serde_json::from_str::<Vec<&RawValue>>(text).unwrap_or_default();
                self.list(&applicable(self.root, parts), &items);
            }
            _ => self.out.push_str(text),
        }
    }

    fn object(&mut self, parts: &Parts<'_>, members: &[(String, &RawValue)]) {
        let is_open = !parts.iter().any(|part| declares_members(part));
        let mut separator = "{";
        for (name, value) in members {
            let below: Option<Parts<'_>> = schemas_of_member(self.patterns, parts, name);
            if below.is_none() && !is_open {
                self.left_out = true;
                continue;
            }
            self.out.push_str(std::mem::replace(&mut separator, ","));
            self.out.push_str(&Value::from(name.as_str()).to_string());
            self.out.push(':');
            self.write(&below.unwrap_or_default(), value);
        }
        self.out.push_str(if separator == "{" { "{}" } else { "}" });
    }

    fn list(&mut self, parts: &Parts<'_>, items: &[&RawValue]) {
        self.out.push('[');
        for (position, item) in items.iter().enumerate() {
            if position > 0 {
                self.out.push(',');
            }
            let below: Parts<'_> = parts.iter().flat_map(|part| schemas_of_item(part, position)).collect();
            self.write(&below, item);
        }
        self.out.push(']');
    }
}

/// Returns the schemas of a member; `None` if no part declares it.
fn schemas_of_member<'s>(patterns: &Patterns, parts: &Parts<'s>, name: &str) -> Option<Parts<'s>> {
    let below: Parts<'s> = parts.iter().flat_map(|part| schemas_of(patterns, part, name)).collect();
    (!below.is_empty()).then_some(below)
}

fn declares_members(part: &Value) -> bool {
    ["properties", "patternProperties"].iter().any(|name| part.get(*name).is_some_and(Value::is_object))
        || ["additionalProperties", "unevaluatedProperties"]
            .iter()
            .any(|name| part.get(*name).is_some_and(Value::is_object))
}

/// Returns the schemas of a member; none if it is not declared.
fn schemas_of<'s>(patterns: &Patterns, part: &'s Value, name: &str) -> Parts<'s> {
    let own = part.get("properties").and_then(|properties| properties.get(name));
    let matches = |pattern: &str| patterns.get(pattern).is_some_and(|pattern| pattern.is_match(name));
    let matching = object(part, "patternProperties").filter(|(pattern, _)| matches(pattern)).map(|(_, schema)| schema);
    let mut found: Parts<'s> = own.into_iter().chain(matching).collect();
    if found.is_empty() {
        // `true` allows everything and declares nothing.
        let others = ["additionalProperties", "unevaluatedProperties"].into_iter().filter_map(|name| part.get(name));
        found.extend(others.filter(|schema| schema.is_object()));
    }
    found
}

fn schemas_of_item(part: &Value, position: usize) -> Parts<'_> {
    let first = ["prefixItems", "items"].into_iter().find_map(|name| part.get(name)?.as_array());
    let own =
        first.and_then(|first| first.get(position)).or_else(|| part.get("items").filter(|schema| schema.is_object()));
    own.into_iter().chain(part.get("contains")).collect()
}

/// Returns the parts with everything that they refer to and their alternatives.
fn applicable<'s>(root: &'s Value, parts: &[&'s Value]) -> Parts<'s> {
    let mut found: Parts<'s> = Vec::new();
    let mut seen: HashSet<*const Value> = HashSet::new();
    let mut waiting: Parts<'s> = parts.to_vec();
    while let Some(part) = waiting.pop() {
        if !part.is_object() || !seen.insert(std::ptr::from_ref(part)) {
            continue;
        }
        found.push(part);
        for name in ["allOf", "anyOf", "oneOf"] {
            waiting.extend(part.get(name).and_then(Value::as_array).into_iter().flatten());
        }
        waiting.extend(["if", "then", "else"].into_iter().filter_map(|name| part.get(name)));
        waiting.extend(object(part, "dependentSchemas").map(|(_, schema)| schema));
        waiting.extend(references(part).filter_map(|reference| target(root, reference)));
    }
    found
}

fn references(part: &Value) -> impl Iterator<Item = &str> {
    ["$ref", "$dynamicRef"].into_iter().filter_map(|name| part.get(name)?.as_str())
}

/// Follows a reference within the schema.
fn target<'s>(root: &'s Value, reference: &str) -> Option<&'s Value> {
    let fragment = reference.strip_prefix('#')?;
    if fragment.is_empty() || fragment.starts_with('/') {
        let pointer = percent_encoding::percent_decode_str(fragment).decode_utf8().ok()?;
        return root.pointer(&pointer);
    }
    let is_anchor = |part: &&Value| {
        ["$anchor", "$dynamicAnchor"].iter().any(|name| part.get(*name).and_then(Value::as_str) == Some(fragment))
    };
    let mut waiting = vec![root];
    while let Some(part) = waiting.pop() {
        if is_anchor(&part) {
            return Some(part);
        }
        match part {
            Value::Object(object) => {
                waiting.extend(object.iter().filter(|(key, _)| !is_data(key)).map(|(_, value)| value));
            }
            Value::Array(items) => waiting.extend(items),
            _ => {}
        }
    }
    None
}

/// True for keywords whose values are no schemas.
fn is_data(keyword: &str) -> bool {
    matches!(keyword, "const" | "enum" | "default" | "examples")
}

fn object<'s>(part: &'s Value, name: &str) -> impl Iterator<Item = (&'s String, &'s Value)> + use<'s> {
    static NONE: LazyLock<Map<String, Value>> = LazyLock::new(Map::new);
    part.get(name).and_then(Value::as_object).unwrap_or(&NONE).iter()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn sent(schema: &Value, arguments: &str) -> String {
        Declared::of_schema(schema.clone()).of(&RawValue::from_string(arguments.to_owned()).unwrap())
    }

    #[test]
    fn each_pattern_is_compiled_once_when_the_schema_is_read() {
        let below = json!({"patternProperties": {"^a": {}, "(": {}}});
        let schema = json!({"patternProperties": {"^a": {}}, "$defs": {"x": below.clone()}, "allOf": [below]});
        let declared = Declared::of_schema(schema);
        let compiled: Vec<&str> = declared.patterns.keys().map(String::as_str).collect();
        assert_eq!(compiled, ["^a"]);
        let arguments = RawValue::from_string(r#"{"a":1,"ab":2,"b":3}"#.to_owned()).unwrap();
        assert_eq!(declared.of(&arguments), r#"{"a":1,"ab":2}"#);
    }

    #[test]
    fn what_is_not_declared_is_left_out_at_every_level() {
        let schema = json!({
            "properties": {
                "name": {"type": "string"}, "n": {"type": "number"},
                "address": {"$ref": "#/$defs/Address"}, "tags": {"type": "object", "additionalProperties": {"type": "string"}},
                "lines": {"type": "array", "items": {"properties": {"id": {}}}}, "free": {"type": "object"},
                "to": {"anyOf": [{"properties": {"city": {}}}, {"properties": {"zip": {}}}]},
                "codes": {"patternProperties": {"^[A-Z]$": {"properties": {"v": {}}}}},
                "pair": {"prefixItems": [{"properties": {"a": {}}}], "items": {"properties": {"b": {}}}},
            },
            "$defs": {"Address": {"properties": {"city": {}, "other": {"$ref": "#/$defs/Address"}}}}
        });
        for (arguments, wanted) in [
            (r#"{"name":"Ada","is_admin":true}"#, r#"{"name":"Ada"}"#),
            (r#"{"is_admin":true}"#, "{}"),
            (r#"{ "n" : 1.50 , "x":1, "name":"a\u0041"}"#, r#"{"n":1.50,"name":"a\u0041"}"#),
            (r#"{ "n" : 1.50 , "name":"a\u0041"}"#, r#"{ "n" : 1.50 , "name":"a\u0041"}"#),
            (
                r#"{"address":{"city":"Paris","role":"admin","other":{"city":1,"role":2}}}"#,
                r#"{"address":{"city":"Paris","other":{"city":1}}}"#,
            ),
            (r#"{"tags":{"any":"1","key":"2"}}"#, r#"{"tags":{"any":"1","key":"2"}}"#),
            (r#"{"lines":[{"id":1,"price":0},{"price":0}]}"#, r#"{"lines":[{"id":1},{}]}"#),
            (r#"{"free":{"is_admin":{"a":[1]}}}"#, r#"{"free":{"is_admin":{"a":[1]}}}"#),
            (r#"{"to":{"city":1,"zip":2,"role":3}}"#, r#"{"to":{"city":1,"zip":2}}"#),
            (r#"{"codes":{"A":{"v":1,"w":2},"AB":{"v":1}}}"#, r#"{"codes":{"A":{"v":1}}}"#),
            (r#"{"pair":[{"a":1,"b":2},{"a":1,"b":2}]}"#, r#"{"pair":[{"a":1},{"b":2}]}"#),
        ] {
            assert_eq!(sent(&schema, arguments), wanted);
        }
        let big = r#"{"n":123456789012345678901234567890.10}"#;
        assert_eq!(sent(&schema, big), big, "numbers keep their text");
    }

    #[test]
    fn a_schema_without_properties_declares_nothing_in_particular() {
        for schema in [json!({"type": "object"}), json!({"additionalProperties": {}}), json!({"$ref": "#"})] {
            assert_eq!(sent(&schema, r#"{"a":{"b":1}}"#), r#"{"a":{"b":1}}"#, "{schema}");
        }
        let closed = json!({"properties": {"a": {}}, "additionalProperties": true});
        assert_eq!(sent(&closed, r#"{"a":1,"b":2}"#), r#"{"a":1}"#, "`true` declares nothing");
    }

    #[test]
    fn references_that_cannot_be_followed_are_found() {
        let unknown = |schema: &Value| unknown_reference(schema).map(str::to_owned);
        let known =
            json!({"properties": {"a": {"$ref": "#here"}, "b": {"$ref": "#"}}, "$defs": {"x": {"$anchor": "here"}}});
        assert_eq!(unknown(&known), None);
        assert_eq!(unknown(&json!({"properties": {"a": {"$ref": "other#/x"}}})).as_deref(), Some("other#/x"));
        assert_eq!(unknown(&json!({"const": {"$ref": "other"}})), None);
    }
}
