//! How often a schema is applied once its references are expanded. A validator follows every reference each time it
//! meets it, so 36 definitions that each refer twice to the next one keep it busy for hours. This check runs before
//! anything else follows a reference, and takes time linear in the size of the schema.

use std::collections::{HashMap, hash_map::Entry};

use crate::{
    document::{Document, Parts},
    schema_error::SchemaError,
};

/// Most schemas applied to one value, wherever that value is.
const MAX_HERE: u64 = 10_000;
/// Most schemas applied to one value when those of the values around it multiply. A schema that contains itself counts
/// once: how often it is applied depends on the arguments.
const MAX_NESTED: u64 = 1_000_000;
/// Longest chain of schemas that apply to the same value. The validator needs stack for each of them at each level of the
/// arguments, which nest 64 deep; measured: 64 levels of 60 overflow 2 MiB in a debug build.
const MAX_CHAIN: u32 = 32;

/// Refuses a schema that is too expensive to apply or never ends. Returns how many schemas apply to one value at most; one
/// that contains itself is counted once.
pub(crate) fn check(document: &mut Document<'_>) -> Result<u64, SchemaError> {
    Expansion { document, here: HashMap::new(), below: HashMap::new() }.check()
}

struct Expansion<'d, 's> {
    document: &'d mut Document<'s>,
    /// `None` while a part is being counted.
    here: HashMap<usize, Option<Here>>,
    /// `None` while a part is being counted.
    below: HashMap<usize, Option<u64>>,
}

/// What applying a part to a value costs at that value.
#[derive(Clone, Copy)]
struct Here {
    /// Schemas that are applied.
    applied: u64,
    /// Schemas that are applied to find out what `unevaluatedProperties` or `unevaluatedItems` beside or above concerns:
    /// the validator applies alternatives once more for that.
    evaluated: u64,
    /// Length of the longest chain.
    chain: u32,
}

impl Expansion<'_, '_> {
    fn check(mut self) -> Result<u64, SchemaError> {
        let mut waiting = vec![(Document::ROOT, false)];
        while let Some((part, parts_are_counted)) = waiting.pop() {
            if parts_are_counted {
                self.count_below(part)?;
            } else if let Entry::Vacant(new) = self.below.entry(part) {
                new.insert(None);
                self.here(part, 1)?;
                let parts = self.document.parts(part)?;
                waiting.push((part, true));
                waiting.extend(parts.same.iter().chain(parts.nested()).map(|part| (*part, false)));
            }
        }
        self.deep(Document::ROOT)
    }

    /// Counts what is applied here. Recursion ends at [`MAX_CHAIN`].
    fn here(&mut self, part: usize, length: u32) -> Result<Here, SchemaError> {
        match self.here.get(&part) {
            Some(Some(known)) => return Ok(*known),
            Some(None) => {
                let message = "the schema applies itself to the same value without an end; \
                               a reference to itself is allowed only below a property or an item";
                return Err(self.document.error(part, message));
            }
            None => {}
        }
        if length > MAX_CHAIN {
            return Err(self.too_long(part));
        }
        self.here.insert(part, None);
        let parts = self.document.parts(part)?;
        let mut sum = Here { applied: 1, evaluated: 1, chain: 1 };
        for next in &parts.same {
            let next = self.here(*next, length + 1)?;
            sum.applied = sum.applied.saturating_add(next.applied);
            sum.evaluated = sum.evaluated.saturating_add(next.applied).saturating_add(next.evaluated);
            sum.chain = sum.chain.max(next.chain + 1);
        }
        sum.applied = sum.applied.saturating_add(sum.evaluated.saturating_mul(parts.unevaluated));
        if sum.applied > MAX_HERE {
            return Err(self.too_many(part, sum.applied, MAX_HERE, ""));
        }
        if sum.chain > MAX_CHAIN {
            return Err(self.too_long(part));
        }
        self.here.insert(part, Some(sum));
        Ok(sum)
    }

    /// Counts the schemas that are applied to one value below the value to which a part is applied.
    fn count_below(&mut self, part: usize) -> Result<(), SchemaError> {
        let parts = self.document.parts(part)?;
        let mut sum = self.nested(&parts)?;
        for next in &parts.same {
            sum = sum.saturating_add(self.below.get(next).copied().flatten().unwrap_or(0));
        }
        if sum > MAX_NESTED {
            return Err(self.too_many(part, sum, MAX_NESTED, " inside of it"));
        }
        self.below.insert(part, Some(sum));
        Ok(())
    }

    /// Counts what is applied below. Different properties are different values, so only the most expensive one counts.
    fn nested(&mut self, parts: &Parts) -> Result<u64, SchemaError> {
        let mut most = 0;
        for children in &parts.children {
            let mut one = 0;
            for part in &children.one_of {
                one = self.deep(*part)?.max(one);
            }
            for part in &children.all_of {
                one = self.deep(*part)?.saturating_add(one);
            }
            most = one.max(most);
        }
        Ok(most)
    }

    /// Returns the larger of what is applied at a value and what is applied to one below it.
    fn deep(&mut self, part: usize) -> Result<u64, SchemaError> {
        let here = self.here(part, 1)?.applied;
        Ok(self.below.get(&part).copied().flatten().map_or(here, |below| below.max(here)))
    }

    fn too_many(&self, part: usize, count: u64, limit: u64, place: &str) -> SchemaError {
        let message = format!(
            "{count} schemas apply to one value{place}, with each reference counted as often as it is followed; \
             at most {limit} are allowed"
        );
        self.document.error(part, message)
    }

    fn too_long(&self, part: usize) -> SchemaError {
        let message = format!(
            "a chain of more than {MAX_CHAIN} schemas applies to the same value, each through a reference or a keyword \
             such as allOf; at most {MAX_CHAIN} are allowed"
        );
        self.document.error(part, message)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn check(schema: &Value) -> Result<(), SchemaError> {
        super::check(&mut Document::read(schema)?).map(drop)
    }

    /// Makes `levels` definitions, each of references to the next one.
    fn levels(levels: usize, one: impl Fn(&Value) -> Value) -> Value {
        let mut definitions: serde_json::Map<String, Value> =
            (0..levels).map(|n| (format!("d{n}"), one(&json!({"$ref": format!("#/$defs/d{}", n + 1)})))).collect();
        definitions.insert(format!("d{levels}"), json!({"properties": {"x": {"type": "integer"}}}));
        json!({"$ref": "#/$defs/d0", "$defs": definitions})
    }

    fn twice(next: &Value) -> [(&'static str, Value); 9] {
        let both = json!([next, next]);
        [
            ("allOf", json!({"allOf": both})),
            ("anyOf", json!({"anyOf": both})),
            ("oneOf", json!({"oneOf": both})),
            ("if", json!({"if": next, "then": next, "else": next})),
            ("not", json!({"not": next, "allOf": [next]})),
            ("dependentSchemas", json!({"dependentSchemas": {"a": next, "b": next}})),
            ("$ref", json!({"$ref": next["$ref"], "allOf": [next]})),
            ("unevaluatedProperties", json!({"allOf": both, "unevaluatedProperties": false})),
            ("properties", json!({"allOf": [{"properties": {"a": next}}, {"properties": {"a": next}}]})),
        ]
    }

    #[test]
    fn references_that_multiply_are_refused() {
        for (n, (keyword, _)) in twice(&json!({})).into_iter().enumerate() {
            let schema = |count| levels(count, |next| twice(next)[n].1.clone());
            assert_eq!(check(&schema(3)), Ok(()), "{keyword}");
            let error = check(&schema(36)).expect_err(keyword);
            assert!(error.path.starts_with("/$defs/d"), "{keyword}: {error}");
            assert!(check(&schema(5_000)).is_err(), "{keyword}");
        }
        assert_eq!(check(&levels(5, |next| json!({"allOf": [next, next]}))), Ok(()));
    }

    #[test]
    fn a_refusal_says_where_and_what_is_allowed() {
        let lines = [
            levels(12, |next| json!({"allOf": [next, next]})),
            levels(20, |next| json!({"allOf": [{"properties": {"a": next}}, {"properties": {"a": next}}]})),
            levels(40, Clone::clone),
            json!({"properties": {"a": {"anyOf": [{"$ref": "#/properties/a"}]}}}),
            json!({"$ref": "https://json-schema.org/draft/2020-12/schema"}),
        ]
        .map(|schema| check(&schema).unwrap_err().to_string());
        insta::assert_snapshot!(lines.join("\n"));
    }

    #[test]
    fn a_schema_that_applies_itself_to_the_same_value_is_refused() {
        for circle in [
            json!({"$ref": "#"}),
            json!({"allOf": [{"$ref": "#"}]}),
            json!({"anyOf": [{"type": "object"}, {"$ref": "#"}]}),
            json!({"not": {"$ref": "#"}}),
            json!({"if": {"$ref": "#"}}),
            json!({"dependentSchemas": {"a": {"$ref": "#"}}}),
            json!({"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"}),
            json!({"$ref": "#/%24defs/a", "$defs": {"a": {"$ref": "#/%24defs/%61"}}}),
            json!({"$anchor": "here", "allOf": [{"$ref": "#here"}]}),
            json!({"$dynamicAnchor": "here", "allOf": [{"$dynamicRef": "#here"}]}),
            json!({"$id": "https://example.com/tool", "allOf": [{"$ref": "TOOL/../tool"}]}),
            json!({"$ref": "part", "$defs": {"a": {"$id": "part", "allOf": [{"$ref": "#"}]}}}),
        ] {
            let error = check(&circle).expect_err(&circle.to_string());
            assert!(error.message.contains("without an end"), "{circle}: {error}");
        }
    }

    #[test]
    fn recursion_through_properties_and_items_is_allowed() {
        let filter = |op: &str| json!({"properties": {"op": {"const": op}, "of": {"items": {"$ref": "#/$defs/F"}}}});
        for schema in [
            json!({"properties": {"next": {"$ref": "#"}}}),
            json!({"additionalProperties": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}}),
            json!({"properties": {"f": {"$ref": "#/$defs/F"}}, "$defs": {"F": {"oneOf": [filter("and"), filter("or")]}}}),
            json!({"$dynamicAnchor": "n", "properties": {"list": {"items": {"$dynamicRef": "#n"}}}}),
            json!({"$id": "https://example.com/tool", "properties": {"next": {"$ref": "tool#/$defs/n"}},
                "$defs": {"n": {"$anchor": "n", "prefixItems": [{"$ref": "#n"}]}}}),
            json!({"properties": {"$ref": {"type": "string"}, "allOf": {"$ref": "#"}}}),
        ] {
            assert_eq!(check(&schema), Ok(()), "{schema}");
        }
    }

    #[test]
    fn large_schemas_are_allowed() {
        let many = |count: usize, one: &dyn Fn(usize) -> Value| -> serde_json::Map<String, Value> {
            (0..count).map(|n| (format!("p{n}"), one(n))).collect()
        };
        let shared = json!({"$defs": {"id": {"type": "string"}},
            "properties": many(5_000, &|_| json!({"anyOf": [{"$ref": "#/$defs/id"}, {"type": "null"}]}))});
        let union: Vec<Value> = (0..300).map(|n| json!({"properties": {"tag": {"const": n}}})).collect();
        let tree = levels(60, |next| json!({"properties": {"a": next, "b": next}}));
        let deep = levels(20_000, |next| json!({"properties": {"a": next}}));
        for schema in [shared, json!({"properties": {"event": {"oneOf": union}}}), tree, deep] {
            assert_eq!(check(&schema), Ok(()));
        }
    }
}
