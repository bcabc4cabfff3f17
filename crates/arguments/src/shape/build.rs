//! Builds the shapes of a schema.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde_json::Value;

use super::{Shape, Shapes};
use crate::names::unique_folds;

/// Most shapes of one schema. Alternatives that refer to each other can make many; beyond the limit every key counts as
/// declared.
const MAX_SHAPES: usize = 2000;

/// Parts of a schema that apply to the same location.
type Parts<'s> = Vec<&'s Value>;

impl Shapes {
    /// Builds the shapes of a compiled schema.
    pub(crate) fn of(schema: &Value) -> Self {
        let mut builder = Builder { root: schema, shapes: Vec::new(), known: HashMap::new(), pending: Vec::new() };
        builder.index_of(&[schema]);
        while let Some((index, parts)) = builder.pending.pop() {
            builder.shapes[index] = builder.shape(&parts);
        }
        Self(builder.shapes)
    }
}

struct Builder<'s> {
    root: &'s Value,
    shapes: Vec<Shape>,
    /// The index of the shape of a set of parts, by their addresses.
    known: HashMap<Vec<*const Value>, usize>,
    /// Shapes that have an index but are not built yet.
    pending: Vec<(usize, Parts<'s>)>,
}

impl<'s> Builder<'s> {
    /// Returns the index of the shape of these parts; `None` if there are too many shapes.
    fn index_of(&mut self, parts: &[&'s Value]) -> Option<usize> {
        let mut key: Vec<*const Value> = parts.iter().map(|part| std::ptr::from_ref(*part)).collect();
        key.sort_unstable();
        key.dedup();
        if let Some(index) = self.known.get(&key) {
            return Some(*index);
        }
        let index = self.shapes.len();
        if index >= MAX_SHAPES {
            return None;
        }
        self.shapes.push(Shape { open: true, ..Shape::default() });
        self.known.insert(key, index);
        self.pending.push((index, parts.to_vec()));
        Some(index)
    }

    fn shape(&mut self, parts: &[&'s Value]) -> Shape {
        let (parts, mut open) = self.applicable(parts);
        let mut properties: BTreeMap<&'s str, Parts<'s>> = BTreeMap::new();
        let (mut others, mut items): (Parts<'s>, Parts<'s>) = (Vec::new(), Vec::new());
        for part in &parts {
            for (name, schema) in part.get("properties").and_then(Value::as_object).into_iter().flatten() {
                properties.entry(name).or_default().push(schema);
            }
            for name in list(part, "required").filter_map(Value::as_str) {
                properties.entry(name).or_default();
            }
            open |= part.get("patternProperties").is_some();
            let rest = ["additionalProperties", "unevaluatedProperties"].into_iter().filter_map(|name| part.get(name));
            others.extend(rest.filter(|schema| schema.is_object()));
            items.extend(part.get("items"));
            items.extend(list(part, "prefixItems"));
        }
        open |= !others.is_empty() || properties.is_empty();
        let types: HashSet<&str> = parts.iter().flat_map(|part| types(part)).collect();
        Shape {
            folds: unique_folds(properties.keys().copied()),
            properties: self.indices_of(properties),
            open,
            others: if others.is_empty() { None } else { self.index_of(&others) },
            items: if items.is_empty() { None } else { self.index_of(&items) },
            integer: types.contains("integer") && !types.contains("number"),
        }
    }

    fn indices_of(&mut self, properties: BTreeMap<&'s str, Parts<'s>>) -> HashMap<String, usize> {
        // An index beyond the last shape is never found, so nothing below it is inspected.
        properties
            .into_iter()
            .map(|(name, parts)| (name.to_owned(), self.index_of(&parts).unwrap_or(usize::MAX)))
            .collect()
    }

    /// Returns the parts with everything that they refer to and their alternatives; true if a reference cannot be
    /// resolved.
    fn applicable(&self, parts: &[&'s Value]) -> (Parts<'s>, bool) {
        let mut found: Parts<'s> = Vec::new();
        let mut seen: HashSet<*const Value> = HashSet::new();
        let mut waiting: Parts<'s> = parts.to_vec();
        let mut unknown = false;
        while let Some(part) = waiting.pop() {
            if !part.is_object() || !seen.insert(std::ptr::from_ref(part)) {
                continue;
            }
            found.push(part);
            for name in ["allOf", "anyOf", "oneOf"] {
                waiting.extend(list(part, name));
            }
            waiting.extend(["if", "then", "else"].into_iter().filter_map(|name| part.get(name)));
            waiting
                .extend(part.get("dependentSchemas").and_then(Value::as_object).into_iter().flat_map(|d| d.values()));
            for name in ["$ref", "$dynamicRef"] {
                let Some(target) = part.get(name).and_then(Value::as_str) else { continue };
                match target.strip_prefix('#').and_then(|pointer| self.root.pointer(pointer)) {
                    Some(target) => waiting.push(target),
                    None => unknown = true,
                }
            }
        }
        (found, unknown)
    }
}

fn list<'s>(part: &'s Value, name: &str) -> impl Iterator<Item = &'s Value> + use<'s> {
    part.get(name).and_then(Value::as_array).into_iter().flatten()
}

fn types(part: &Value) -> Vec<&str> {
    match part.get("type") {
        Some(Value::String(name)) => vec![name],
        _ => list(part, "type").filter_map(Value::as_str).collect(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::shape::Findings;

    fn inspect(schema: &Value, arguments: &Value) -> (Vec<String>, Vec<String>) {
        let Findings { fixes, undeclared } = Shapes::of(schema).inspect(arguments);
        (fixes.into_iter().map(|fix| format!("{} {:?}", fix.pointer, fix.change)).collect(), undeclared)
    }

    #[test]
    fn keys_are_found_behind_references_and_alternatives() {
        let schema = json!({
            "properties": {"stops": {"type": "array", "items": {"$ref": "#/$defs/Stop"}}},
            "oneOf": [{"properties": {"by_card": {}}}, {"properties": {"by_points": {"type": ["integer", "null"]}}}],
            "$defs": {"Stop": {"allOf": [{"properties": {"cityName": {}, "via": {"$ref": "#/$defs/Stop"}}}]}}
        });
        let sent =
            json!({"stops": [{"city_name": 1, "via": {"CITY-NAME": 2, "x": 3}}], "by_points": 2.0, "BY_CARD": 1});
        let (fixes, undeclared) = inspect(&schema, &sent);
        insta::assert_snapshot!(fixes.join("\n"), @r#"
        /stops/0/via/CITY-NAME Key("cityName")
        /stops/0/city_name Key("cityName")
        /by_points Integer
        /BY_CARD Key("by_card")
        "#);
        assert_eq!(undeclared, ["/stops/0/via/x"]);
    }

    #[test]
    fn a_key_means_a_declared_name_only_if_that_is_unambiguous() {
        let schema = json!({"properties": {"days": {}, "v1_1": {}, "ab": {}, "AB": {}}});
        let cases = [
            (json!({"Days": 1}), 1),
            (json!({"Days": 1, "days": 2}), 0),
            (json!({"Days": 1, "DAYS": 2}), 0),
            (json!({"v11": 1}), 0),
            (json!({"a_b": 1}), 0),
        ];
        for (sent, fixed) in cases {
            assert_eq!(inspect(&schema, &sent).0.len(), fixed, "{sent}");
        }
    }

    #[test]
    fn maps_take_any_key() {
        for schema in [
            json!({"type": "object"}),
            json!({"properties": {"a": {}}, "patternProperties": {"^x": {}}}),
            json!({"properties": {"a": {}}, "additionalProperties": {"type": "integer"}}),
            json!({"properties": {"a": {}}, "$ref": "#nowhere"}),
        ] {
            assert_eq!(inspect(&schema, &json!({"A": 1, "b": 2})), (vec![], vec![]), "{schema}");
        }
        let map = json!({"additionalProperties": {"properties": {"days": {"type": "integer"}}}});
        assert_eq!(
            inspect(&map, &json!({"Paris": {"Days": 1}, "Rome": {"days": 2.0}, "Oslo": {"days": 2.5}})).0.len(),
            2
        );
    }

    #[test]
    fn the_number_of_shapes_is_limited() {
        // Each step of the path makes a new set of alternatives.
        let definitions: serde_json::Map<String, Value> = (0..14)
            .map(|n| {
                let next = |m: i32| json!({"$ref": format!("#/$defs/d{}", m % 14)});
                let both = json!({"anyOf": [next(n * 2 + 1), next(n * 3 + 2)]});
                (format!("d{n}"), json!({"properties": {"a": both, "b": next(n + 1)}}))
            })
            .collect();
        let schema = json!({"$ref": "#/$defs/d0", "$defs": definitions});
        let shapes = Shapes::of(&schema);
        assert!(shapes.0.len() <= MAX_SHAPES, "{}", shapes.0.len());
        assert_eq!(shapes.inspect(&json!({"A": 1})).fixes.len(), 1);
    }
}
