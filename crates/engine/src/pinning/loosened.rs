//! Compares two schemas: which arguments that the first one refuses may the second one let through?
//!
//! Only keywords are compared, one by one. A schema that says the same in other words counts as weaker: an operator is asked
//! once too often, never once too little. Where keywords cannot be compared, any change counts.

#[cfg(test)]
mod tests;

use redial_proto::limits;
use serde_json::{Map, Value};

use super::{
    keywords::{EVALUATING, LEAST, MAY_BE_ADDED, MOST, OPAQUE, is_known},
    references::odd_reference,
};

/// Reasons that are kept; the others are counted.
const MAX_REASONS: usize = 20;
/// Pairs of alternatives that are compared; larger ones must be equal as a whole.
const MAX_PAIRS: usize = 10_000;

/// The keywords of a schema as they were and as they are, and its place.
#[derive(Clone, Copy)]
struct Change<'a> {
    old: &'a Map<String, Value>,
    new: &'a Map<String, Value>,
    at: &'a str,
}

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

    /// Compares two schemas with all that they refer to.
    pub(super) fn compare_all(&mut self, old: &Value, new: &Value) {
        if old == new {
            return;
        }
        if let Some(odd) = [old, new].into_iter().find_map(odd_reference) {
            self.add("", || {
                format!("its schema changes, and $ref {} leads into what is no schema", limits::shorten(odd, 100))
            });
        }
        self.compare(old, new, "");
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
        let change = Change { old, new, at };
        self.opaque(change);
        self.unknown(change);
        self.evaluated(change);
        self.bounds(change);
        self.values(change);
        self.objects(change);
        self.arrays(change);
        self.alternatives(change);
    }

    fn opaque(&mut self, Change { old, new, at }: Change<'_>) {
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

    /// What a keyword means that no draft knows cannot be seen: a reference may lead there.
    fn unknown(&mut self, Change { old, new, at }: Change<'_>) {
        for (keyword, before) in old.iter().filter(|(keyword, _)| !is_known(keyword)) {
            if new.get(keyword) != Some(before) {
                self.add(at, || format!("{:?} changes", limits::shorten(keyword, 100)));
            }
        }
        for keyword in new.keys().filter(|keyword| !is_known(keyword) && !old.contains_key(*keyword)) {
            self.add(at, || format!("{:?} is new", limits::shorten(keyword, 100)));
        }
    }

    /// `unevaluatedProperties` and `unevaluatedItems` are only about what other keywords leave over.
    fn evaluated(&mut self, Change { old, new, at }: Change<'_>) {
        for rest in ["unevaluatedProperties", "unevaluatedItems"] {
            if old.get(rest).is_none_or(|rest| *rest == Value::Bool(true)) {
                continue;
            }
            for keyword in EVALUATING.into_iter().filter(|keyword| old.get(*keyword) != new.get(*keyword)) {
                self.add(at, || format!("{keyword} changes, beside {rest}"));
            }
        }
    }

    fn bounds(&mut self, Change { old, new, at }: Change<'_>) {
        for (keywords, is_least) in [(LEAST, true), (MOST, false)] {
            for keyword in keywords {
                let Some(bound) = old.get(keyword) else { continue };
                let stricter = new.get(keyword).is_some_and(|new| match (bound.as_f64(), new.as_f64()) {
                    _ if new == bound => true,
                    // Strictly: large numbers that differ may be the same as an `f64`.
                    (Some(old), Some(new)) if is_least => new > old,
                    (Some(old), Some(new)) => new < old,
                    _ => false,
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

    fn values(&mut self, Change { old, new, at }: Change<'_>) {
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

    fn objects(&mut self, change: Change<'_>) {
        let Change { old, new, at } = change;
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
        self.each("properties", others, change);
        self.each("patternProperties", others, change);
        self.new_patterns(change);
        self.each("dependentSchemas", &Value::Bool(true), change);
        // What refers to a definition that is gone changes as well.
        self.each("$defs", &Value::Bool(false), change);
        self.each("definitions", &Value::Bool(false), change);
    }

    /// Compares schemas by name; what is gone is compared with `gone`.
    fn each(&mut self, keyword: &str, gone: &Value, Change { old, new, at }: Change<'_>) {
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

    /// What a new pattern describes is none of the other properties any more.
    fn new_patterns(&mut self, Change { old, new, at }: Change<'_>) {
        let known =
            |pattern: &str| old.get("patternProperties").is_some_and(|patterns| patterns.get(pattern).is_some());
        let patterns = new.get("patternProperties").and_then(Value::as_object);
        let others = old.get("additionalProperties").unwrap_or(&Value::Bool(true));
        for (pattern, schema) in patterns.into_iter().flatten().filter(|(pattern, _)| !known(pattern)) {
            let (at, pattern) = (limits::shorten(at, 200), limits::shorten(pattern, 100));
            self.compare(others, schema, &format!("{at}/patternProperties/{pattern}"));
        }
    }

    fn arrays(&mut self, Change { old, new, at }: Change<'_>) {
        let (first_old, rest_old) = items(old);
        let (first_new, rest_new) = items(new);
        for position in 0..first_old.len().max(first_new.len()) {
            let before = first_old.get(position).unwrap_or(rest_old);
            let now = first_new.get(position).unwrap_or(rest_new);
            self.compare(before, now, &format!("{at}/{position}"));
        }
        self.compare(rest_old, rest_new, &format!("{at}/items"));
    }

    fn alternatives(&mut self, Change { old, new, at }: Change<'_>) {
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
