//! Values that a schema most likely allows.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::{number, pattern, size::is_small, text};
use crate::pointer;

/// Values of one example, and schemas that are looked at for one value: more is given up.
const MAX_VALUES: usize = 200;
const MAX_PARTS: usize = 100;
/// Values inside of values.
const MAX_LEVELS: usize = 12;
/// A list that is not asked for gets an item down to this level, so that its form can be seen.
const SHOWN_LEVELS: usize = 3;
/// Longest list.
const MAX_ITEMS: usize = 20;
/// Values from one `examples` or `enum` that are tried.
const MAX_TRIED: usize = 5;

pub(super) struct Generator<'s> {
    root: &'s Value,
    /// Values that may still be made.
    left: usize,
}

/// The schemas that apply to one value.
type Parts<'s> = Vec<&'s Value>;

impl<'s> Generator<'s> {
    pub(super) fn new(root: &'s Value) -> Self {
        Self { root, left: MAX_VALUES }
    }

    /// Makes a value for this place in the arguments. Another `try` gives another value, if there is one.
    pub(super) fn value_at(&mut self, path: &str, tried: usize) -> Option<Value> {
        let parts = self.parts_at(path, tried);
        self.value(&parts, tried, 0)
    }

    /// Returns the schemas of a place. Nothing is known of what lies below a place without one.
    fn parts_at(&self, path: &str, tried: usize) -> Parts<'s> {
        pointer::steps(path).fold(vec![self.root], |parts, step| {
            let parts = self.applicable(&parts, tried);
            let index = step.parse::<usize>().ok();
            let mut below: Parts<'s> =
                parts.iter().filter_map(|part| part.get("properties")?.get(step.as_ref())).collect();
            if below.is_empty() {
                below.extend(parts.iter().filter_map(|part| part.get("additionalProperties")));
                below.extend(index.into_iter().flat_map(|index| items(&parts, index)));
            }
            below
        })
    }

    fn value(&mut self, parts: &[&'s Value], tried: usize, level: usize) -> Option<Value> {
        self.left = self.left.checked_sub(1)?;
        if level > MAX_LEVELS {
            return None;
        }
        let parts = self.applicable(parts, tried);
        let known = known(&parts);
        if let Some(value) = known.get(tried) {
            return Some((*value).clone());
        }
        let variant = tried - known.len();
        match type_of(&parts) {
            "object" => self.object(&parts, level),
            "array" => self.array(&parts, level),
            "integer" => number::integer(&parts, variant),
            "number" => number::number(&parts, variant),
            "boolean" => Some(Value::Bool(variant.is_multiple_of(2))),
            "null" => Some(Value::Null),
            _ => string(&parts, variant),
        }
    }

    fn object(&mut self, parts: &Parts<'s>, level: usize) -> Option<Value> {
        let required: Vec<&str> =
            parts.iter().flat_map(|part| list(part, "required")).filter_map(Value::as_str).collect();
        let declared: Vec<&str> = parts
            .iter()
            .filter_map(|part| part.get("properties").and_then(Value::as_object))
            .flat_map(Map::keys)
            .map(String::as_str)
            .collect();
        let least = largest(parts, "minProperties").unwrap_or(0);
        let mut object = Map::new();
        for (n, name) in required.iter().chain(&declared).copied().enumerate() {
            let is_needed = n < required.len() || (object.len() as u64) < least;
            if !is_needed || object.contains_key(name) {
                continue;
            }
            let below: Parts<'s> = parts.iter().filter_map(|part| part.get("properties")?.get(name)).collect();
            object.insert(name.to_owned(), self.value(&below, 0, level + 1)?);
        }
        Some(Value::Object(object))
    }

    fn array(&mut self, parts: &Parts<'s>, level: usize) -> Option<Value> {
        let (least, most) = (largest(parts, "minItems").unwrap_or(0), smallest(parts, "maxItems"));
        let least = usize::try_from(least).ok().filter(|least| *least <= MAX_ITEMS)?;
        let contains: Parts<'s> = parts.iter().filter_map(|part| part.get("contains")).collect();
        let shown = usize::from(most != Some(0) && level < SHOWN_LEVELS);
        let differ = parts.iter().any(|part| part.get("uniqueItems") == Some(&Value::Bool(true)));
        let mut made = Vec::new();
        for index in 0..least.max(shown) {
            let below =
                if index == 0 && !contains.is_empty() { contains.clone() } else { items(parts, index).collect() };
            match self.value(&below, if differ { index } else { 0 }, level + 1) {
                Some(item) => made.push(item),
                // A list that may be empty ends a schema that contains itself.
                None if least == 0 => break,
                None => return None,
            }
        }
        Some(Value::Array(made))
    }

    /// Returns the parts with everything that they refer to. Of alternatives, one: each try takes the next.
    fn applicable(&self, parts: &[&'s Value], tried: usize) -> Parts<'s> {
        let mut found: Parts<'s> = Vec::new();
        let mut seen: HashSet<*const Value> = HashSet::new();
        let mut waiting: Parts<'s> = parts.iter().rev().copied().collect();
        while let Some(part) = waiting.pop() {
            if found.len() >= MAX_PARTS || !part.is_object() || !seen.insert(std::ptr::from_ref(part)) {
                continue;
            }
            found.push(part);
            waiting.extend(list(part, "allOf"));
            for name in ["anyOf", "oneOf"] {
                let (nulls, others): (Parts<'s>, Parts<'s>) = list(part, name).partition(|one| is_null(one));
                let all: Parts<'s> = others.into_iter().chain(nulls).collect();
                waiting.extend(all.get(tried % all.len().max(1)).copied());
            }
            let target = part.get("$ref").and_then(Value::as_str).and_then(|target| target.strip_prefix('#'));
            waiting.extend(target.and_then(|pointer| self.root.pointer(pointer)));
        }
        found
    }
}

/// Returns values that the author of the schema wrote down, best first.
fn known<'s>(parts: &Parts<'s>) -> Vec<&'s Value> {
    let fixed: Vec<&Value> = parts.iter().filter_map(|part| part.get("const")).take(1).collect();
    if fixed.iter().any(|value| is_small(value)) {
        return fixed;
    }
    let mut known: Vec<&Value> = parts.iter().filter_map(|part| part.get("default")).filter(|v| !v.is_null()).collect();
    for name in ["examples", "enum"] {
        known.extend(parts.iter().flat_map(|part| list(part, name).take(MAX_TRIED)));
    }
    known.extend(parts.iter().filter_map(|part| part.get("example")));
    known.retain(|value| is_small(value));
    known
}

/// Returns the type of the value to make, by what the schema says or else by what it limits.
fn type_of(parts: &Parts<'_>) -> &'static str {
    const TYPES: [&str; 7] = ["string", "integer", "number", "boolean", "array", "object", "null"];
    const LIMITS: [(&str, &str); 10] = [
        ("properties", "object"),
        ("required", "object"),
        ("items", "array"),
        ("prefixItems", "array"),
        ("minItems", "array"),
        ("minimum", "number"),
        ("maximum", "number"),
        ("exclusiveMinimum", "number"),
        ("exclusiveMaximum", "number"),
        ("multipleOf", "number"),
    ];
    let allows = |part: &Value, name: &str| match part.get("type") {
        Some(Value::String(only)) => only == name || (only == "number" && name == "integer"),
        Some(Value::Array(types)) => types.iter().any(|one| one == name),
        _ => true,
    };
    if parts.iter().any(|part| part.get("type").is_some()) {
        // `number` before `integer`, unless one of the schemas wants an integer.
        let wants =
            |name: &str| parts.iter().any(|part| part.get("type").is_some_and(|t| t == name || list_has(t, name)));
        let fits = |name: &&&str| wants(name) && parts.iter().all(|part| allows(part, name));
        return TYPES.iter().find(fits).copied().unwrap_or("string");
    }
    let limited = LIMITS.iter().find(|(keyword, _)| parts.iter().any(|part| part.get(*keyword).is_some()));
    limited.map_or("string", |(_, name)| name)
}

fn list_has(types: &Value, name: &str) -> bool {
    types.as_array().is_some_and(|types| types.iter().any(|one| one == name))
}

fn string(parts: &Parts<'_>, variant: usize) -> Option<Value> {
    let least = usize::try_from(largest(parts, "minLength").unwrap_or(0)).ok()?;
    let most = smallest(parts, "maxLength").and_then(|most| usize::try_from(most).ok()).unwrap_or(usize::MAX);
    let keyword = |name: &str| parts.iter().find_map(|part| part.get(name).and_then(Value::as_str));
    if let Some(pattern) = keyword("pattern") {
        return pattern::text(pattern, least).map(Value::String);
    }
    let sample = keyword("format").and_then(text::sample);
    match sample {
        Some(sample) => Some(Value::String(sample.to_owned())),
        None => text::word(least, most, variant).map(Value::String),
    }
}

/// Returns the schemas of an item of a list.
fn items<'s>(parts: &Parts<'s>, index: usize) -> impl Iterator<Item = &'s Value> + use<'s> {
    let found: Parts<'s> =
        parts.iter().filter_map(|part| list(part, "prefixItems").nth(index).or_else(|| part.get("items"))).collect();
    found.into_iter()
}

fn is_null(part: &Value) -> bool {
    part.get("type").is_some_and(|name| name == "null") || part.get("const").is_some_and(Value::is_null)
}

fn list<'s>(part: &'s Value, name: &str) -> impl Iterator<Item = &'s Value> + use<'s> {
    part.get(name).and_then(Value::as_array).into_iter().flatten()
}

fn largest(parts: &Parts<'_>, name: &str) -> Option<u64> {
    parts.iter().filter_map(|part| part.get(name)?.as_u64()).max()
}

fn smallest(parts: &Parts<'_>, name: &str) -> Option<u64> {
    parts.iter().filter_map(|part| part.get(name)?.as_u64()).min()
}
