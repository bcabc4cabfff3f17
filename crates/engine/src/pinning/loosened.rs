//! Compares two schemas: which arguments that the first one refuses may the second one let through?
//!
//! Only keywords are compared, one by one. A schema that says the same in other words counts as weaker: an operator is asked
//! once too often, never once too little. Where keywords cannot be compared, any change counts.

use redial_proto::limits;
use serde_json::{Map, Value};

/// Reasons that are kept; the others are counted.
const MAX_REASONS: usize = 20;
/// Pairs of alternatives that are compared; larger ones must be equal as a whole.
const MAX_PAIRS: usize = 10_000;

/// Any change of these counts: whether it is a weakening cannot be seen from the keyword alone.
const OPAQUE: [&str; 24] = [
    "$schema",
    "$id",
    "$anchor",
    "$dynamicAnchor",
    "$dynamicRef",
    "$recursiveRef",
    "$recursiveAnchor",
    "$vocabulary",
    "$ref",
    "const",
    "pattern",
    "format",
    "multipleOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "contains",
    "dependentRequired",
    "unevaluatedItems",
    "dependencies",
    "contentEncoding",
    "contentMediaType",
];
/// Of those, the ones that only refuse more when they are added. Beside `$ref` older drafts ignore all other keywords.
const MAY_BE_ADDED: [&str; 9] =
    ["const", "pattern", "format", "multipleOf", "oneOf", "not", "contains", "dependentRequired", "unevaluatedItems"];
/// More of these is stricter.
const LEAST: [&str; 6] = ["minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties", "minContains"];
/// Less of these is stricter.
const MOST: [&str; 6] = ["maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties", "maxContains"];

/// What was found.
#[derive(Debug, Default)]
pub(super) struct Loosened {
    reasons: Vec<String>,
    more: usize,
}

impl Loosened {
    pub(super) fn into_reasons(mut self) -> Vec<String> {
        if self.more > 0 {
            self.reasons.push(format!("and {} more", self.more));
        }
        self.reasons
    }

    fn add(&mut self, at: &str, what: impl FnOnce() -> String) {
        if self.reasons.len() < MAX_REASONS {
            let at = if at.is_empty() { "the arguments".to_owned() } else { format!("{:?}", limits::shorten(at, 100)) };
            self.reasons.push(format!("{at}: {}", what()));
        } else {
            self.more += 1;
        }
    }

    /// Compares the schemas of the value at this place. No deeper than the JSON of a specification may be.
    pub(super) fn compare(&mut self, old: &Value, new: &Value, at: &str) {
        let nothing = Map::new();
        let (old, new) = match (old, new) {
            _ if old == new => return,
            // Everything was allowed, or nothing is.
            (Value::Bool(true), _) | (_, Value::Bool(false)) => return,
            (Value::Bool(false), _) => return self.add(at, || "any value was refused, and is not any more".to_owned()),
            (Value::Object(old), Value::Object(new)) => (old, new),
            (Value::Object(old), _) => (old, &nothing),
            _ => return self.add(at, || "its schema changes".to_owned()),
        };
        self.opaque(old, new, at);
        self.bounds(old, new, at);
        self.values(old, new, at);
        self.objects(old, new, at);
        self.arrays(old, new, at);
        self.alternatives(old, new, at);
    }

    fn opaque(&mut self, old: &Map<String, Value>, new: &Map<String, Value>, at: &str) {
        for keyword in OPAQUE {
            let may_be_added = MAY_BE_ADDED.contains(&keyword);
            match (old.get(keyword), new.get(keyword)) {
                (None, Some(_)) if !may_be_added => self.add(at, || format!("{keyword} is new")),
                (Some(_), None) => self.add(at, || format!("{keyword} is gone")),
                (Some(old), Some(new)) if old != new => self.add(at, || format!("{keyword} changes")),
                _ => {}
            }
        }
    }

    fn bounds(&mut self, old: &Map<String, Value>, new: &Map<String, Value>, at: &str) {
        for (keywords, is_least) in [(LEAST, true), (MOST, false)] {
            for keyword in keywords {
                let Some(bound) = old.get(keyword) else { continue };
                let stricter = new.get(keyword).is_some_and(|new| {
                    let (old, number) = (bound.as_f64(), new.as_f64());
                    new == bound
                        || if is_least { number > old && old.is_some() } else { number.is_some() && number < old }
                });
                match new.get(keyword) {
                    _ if stricter => {}
                    None => self.add(at, || format!("{keyword} is gone")),
                    Some(new) => self.add(at, || format!("{keyword} is {} instead of {}", short(new), short(bound))),
                }
            }
        }
        // Without it one item must match `contains`.
        if old.contains_key("contains") && !old.contains_key("minContains") && is_zero(new.get("minContains")) {
            self.add(at, || "minContains is 0".to_owned());
        }
        if old.get("uniqueItems") == Some(&Value::Bool(true)) && new.get("uniqueItems") != Some(&Value::Bool(true)) {
            self.add(at, || "uniqueItems is gone".to_owned());
        }
    }

    fn values(&mut self, old: &Map<String, Value>, new: &Map<String, Value>, at: &str) {
        if let Some(before) = old.get("type") {
            match new.get("type") {
                None => self.add(at, || "type is gone".to_owned()),
                Some(now) if types(now).any(|now| !types(before).any(|before| is_type(now, before))) => {
                    self.add(at, || format!("type is {} instead of {}", short(now), short(before)));
                }
                Some(_) => {}
            }
        }
        let Some(before) = old.get("enum") else { return };
        let now = new.get("enum").map(list).or_else(|| new.get("const").map(std::slice::from_ref));
        match now {
            None => self.add(at, || "enum is gone".to_owned()),
            Some(now) if !is_within(now, list(before)) => self.add(at, || "enum has other values".to_owned()),
            Some(_) => {}
        }
    }

    fn objects(&mut self, old: &Map<String, Value>, new: &Map<String, Value>, at: &str) {
        if let Some(before) = old.get("required") {
            let now: std::collections::HashSet<&str> =
                new.get("required").map(list).unwrap_or_default().iter().filter_map(Value::as_str).collect();
            for name in list(before).iter().filter_map(Value::as_str).filter(|name| !now.contains(name)) {
                self.add(at, || format!("{:?} is not required any more", limits::shorten(name, 100)));
            }
        }
        for keyword in ["additionalProperties", "unevaluatedProperties", "propertyNames"] {
            let Some(before) = old.get(keyword) else { continue };
            match (before, new.get(keyword)) {
                (_, Some(now)) => self.compare(before, now, &format!("{at}/{keyword}")),
                (Value::Bool(true), None) => {}
                (_, None) => self.add(at, || format!("{keyword} is gone")),
            }
        }
        // A property that is gone is one of the others now, which may be refused.
        let others = new.get("additionalProperties").unwrap_or(&Value::Bool(true));
        self.each("properties", others, (old, new), at);
        self.each("patternProperties", others, (old, new), at);
        self.each("dependentSchemas", &Value::Bool(true), (old, new), at);
        // What refers to a definition that is gone changes as well.
        self.each("$defs", &Value::Bool(false), (old, new), at);
        self.each("definitions", &Value::Bool(false), (old, new), at);
    }

    /// Compares schemas by name; what is gone is compared with `gone`.
    fn each(&mut self, keyword: &str, gone: &Value, (old, new): (&Map<String, Value>, &Map<String, Value>), at: &str) {
        let Some(Value::Object(before)) = old.get(keyword) else { return };
        let now = new.get(keyword).and_then(Value::as_object);
        for (name, schema) in before {
            // Short, or a long name would be copied for each of many places below it.
            let (at, shown) = (limits::shorten(at, 200), limits::shorten(name, 100));
            let place =
                if keyword == "properties" { format!("{at}/{shown}") } else { format!("{at}/{keyword}/{shown}") };
            self.compare(schema, now.and_then(|now| now.get(name)).unwrap_or(gone), &place);
        }
    }

    fn arrays(&mut self, old: &Map<String, Value>, new: &Map<String, Value>, at: &str) {
        let (first_old, rest_old) = items(old);
        let (first_new, rest_new) = items(new);
        for position in 0..first_old.len().max(first_new.len()) {
            let before = first_old.get(position).unwrap_or(rest_old);
            let now = first_new.get(position).unwrap_or(rest_new);
            self.compare(before, now, &format!("{at}/{position}"));
        }
        self.compare(rest_old, rest_new, &format!("{at}/items"));
    }

    fn alternatives(&mut self, old: &Map<String, Value>, new: &Map<String, Value>, at: &str) {
        if let Some(before) = old.get("allOf").map(list) {
            let now = new.get("allOf").map(list).unwrap_or_default();
            for (position, schema) in before.iter().enumerate() {
                self.compare(
                    schema,
                    now.get(position).unwrap_or(&Value::Bool(true)),
                    &format!("{at}/allOf/{position}"),
                );
            }
        }
        let Some(before) = old.get("anyOf") else { return };
        match new.get("anyOf") {
            None => self.add(at, || "anyOf is gone".to_owned()),
            Some(now) if before != now && !is_within(list(now), list(before)) => {
                self.add(at, || "anyOf has other alternatives".to_owned());
            }
            Some(_) => {}
        }
    }
}

/// The schemas of the first items, and of the others: in the form of draft 2020-12, or in the one before.
fn items(schema: &Map<String, Value>) -> (&[Value], &Value) {
    let rest = |keyword| schema.get(keyword).unwrap_or(&Value::Bool(true));
    match (schema.get("prefixItems"), schema.get("items")) {
        (None, Some(Value::Array(first))) => (first, rest("additionalItems")),
        (first, _) => (first.map(list).unwrap_or_default(), rest("items")),
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn is_zero(value: Option<&Value>) -> bool {
    value.and_then(Value::as_f64) == Some(0.0)
}

fn types(value: &Value) -> impl Iterator<Item = &str> {
    value.as_str().into_iter().chain(list(value).iter().filter_map(Value::as_str))
}

fn is_type(now: &str, before: &str) -> bool {
    now == before || (now == "integer" && before == "number")
}

/// Whether each value is one of the others.
fn is_within(values: &[Value], others: &[Value]) -> bool {
    values == others
        || values.len().saturating_mul(others.len()) <= MAX_PAIRS && values.iter().all(|value| others.contains(value))
}

/// A value for an error, in a few characters.
fn short(value: &Value) -> String {
    match value {
        Value::String(text) => format!("{:?}", limits::shorten(text, 60)),
        Value::Array(_) | Value::Object(_) => format!("{:?}", limits::shorten(&value.to_string(), 60)),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn reasons(old: &Value, new: &Value) -> Vec<String> {
        let mut found = Loosened::default();
        found.compare(old, new, "");
        found.into_reasons()
    }

    #[expect(clippy::needless_pass_by_value, reason = "so that json!() can stand in the call")]
    fn city(city: Value) -> Value {
        json!({"type": "object", "properties": {"city": city}})
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
            (
                city(json!({"items": false})),
                city(json!({"prefixItems": [{}], "items": false})),
                "any value was refused",
            ),
            (
                city(json!({"properties": {"name": {"maxLength": 3}}})),
                city(json!({"properties": {"name": {"maxLength": 4}}})),
                "\"/city/name\": maxLength is 4",
            ),
            (city(json!({"type": "string"})), json!({"type": "object"}), "\"/city\": type is gone"),
            (city(json!(false)), city(json!(true)), "any value was refused"),
            (json!({"$ref": "#/$defs/a"}), json!({"$ref": "#/$defs/b"}), "$ref changes"),
            (json!({"$defs": {"a": {"type": "string"}}}), json!({"$defs": {"a": {}}}), "\"/$defs/a\": type is gone"),
            (json!({"anyOf": [{"type": "string"}]}), json!({"anyOf": [{"type": "string"}, {}]}), "anyOf has other"),
            (json!({"allOf": [{"minimum": 1}]}), json!({"allOf": []}), "\"/allOf/0\": minimum is gone"),
            (json!({"not": {"type": "null"}}), json!({}), "not is gone"),
            (json!({"then": {"minimum": 1}}), json!({"if": {}, "then": {"minimum": 1}}), "if is new"),
            (json!({"contains": {}}), json!({"contains": {}, "minContains": 0}), "minContains is 0"),
            (json!({}), json!({"$schema": "http://json-schema.org/draft-04/schema#"}), "$schema is new"),
            (
                json!({"dependentSchemas": {"a": {"required": ["b"]}}}),
                json!({}),
                "\"/dependentSchemas/a\": \"b\" is not required any more",
            ),
        ];
        for (old, new, wanted) in rows {
            let found = reasons(&old, &new);
            assert!(found.iter().any(|reason| reason.contains(wanted)), "{old} to {new}: {found:?}");
        }
    }

    #[test]
    fn what_refuses_more_or_names_more_is_no_weakening() {
        let closed =
            |properties: Value| json!({"type": "object", "properties": properties, "additionalProperties": false});
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
}
