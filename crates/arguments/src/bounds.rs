//! The size of a schema. This check runs before anything else looks at one: it uses no stack, and takes time linear in the
//! schema's size.

use serde_json::Value;

use crate::{pointer, schema_error::SchemaError};

/// Longest schema, in bytes of its JSON text without spaces, counted as at least two bytes for each value.
const MAX_BYTES: usize = 256 * 1024;
/// Deepest nesting of objects and arrays in a schema. A JSON text nests at most 127 deep when it is read.
const MAX_DEPTH: usize = 100;
/// Longest regular expression, in bytes.
const MAX_PATTERN: usize = 4_000;
/// States of all regular expressions of a schema, with each repetition written out. `\p{L}{1,100}` has 140,000.
const MAX_STATES: u64 = 200_000;

/// Bytes that a compiled schema takes at most, measured: for each byte of its text and each value in it, and for each regular
/// expression and each of its states.
const BYTES_FOR_TEXT: u64 = 16;
const BYTES_FOR_VALUE: u64 = 1_000;
const BYTES_FOR_PATTERN: u64 = 20_000;
const BYTES_FOR_STATE: u64 = 48;

/// Refuses a schema that is too long, too deep, or has regular expressions that are. Returns about how much memory it takes at
/// most once it is compiled, in bytes.
pub(crate) fn check(schema: &Value) -> Result<u64, SchemaError> {
    let bytes = bytes_of(schema);
    if bytes > MAX_BYTES {
        return Err(SchemaError::new("", format!("the schema takes {bytes} bytes; at most {MAX_BYTES} are allowed")));
    }
    let (mut expressions, mut patterns) = (0_u64, 0_u64);
    // Paths are kept as a chain of indices, so that a long schema costs no quadratic time.
    let mut places: Vec<Place<'_>> = vec![Place { value: schema, depth: 1, parent: None, step: Step::Index(0) }];
    let mut next = 0;
    while let Some(&Place { value, depth, .. }) = places.get(next) {
        if depth > MAX_DEPTH {
            let message = format!("the schema nests deeper than {MAX_DEPTH} levels, which is the most allowed");
            return Err(SchemaError::new(path(&places, next), message));
        }
        let is_pattern_map = matches!(places[next].step, Step::Key("patternProperties"));
        match value {
            Value::Object(object) => {
                for (key, value) in object {
                    let pattern = match (key.as_str(), value) {
                        _ if is_pattern_map => Some(key.as_str()),
                        ("pattern", Value::String(pattern)) => Some(pattern.as_str()),
                        _ => None,
                    };
                    if let Some(pattern) = pattern {
                        let wrong = |what| SchemaError::new(pointer::join(&path(&places, next), key), what);
                        expressions = expressions.saturating_add(check_pattern(pattern).map_err(wrong)?);
                        patterns += 1;
                        if expressions > MAX_STATES {
                            return Err(wrong(format!(
                                "the regular expressions of the schema up to here have {expressions} states, with each \
                                 repetition written out; at most {MAX_STATES} are allowed"
                            )));
                        }
                    }
                    places.push(Place { value, depth: depth + 1, parent: Some(next), step: Step::Key(key) });
                }
            }
            Value::Array(items) => places.extend(items.iter().enumerate().map(|(index, value)| Place {
                value,
                depth: depth + 1,
                parent: Some(next),
                step: Step::Index(index),
            })),
            _ => {}
        }
        next += 1;
    }
    let written = bytes as u64 * BYTES_FOR_TEXT + places.len() as u64 * BYTES_FOR_VALUE;
    Ok(written + patterns * BYTES_FOR_PATTERN + expressions * BYTES_FOR_STATE)
}

struct Place<'s> {
    value: &'s Value,
    depth: usize,
    parent: Option<usize>,
    step: Step<'s>,
}

#[derive(Clone, Copy)]
enum Step<'s> {
    Key(&'s str),
    Index(usize),
}

/// Estimates the bytes of a value's JSON text.
fn bytes_of(value: &Value) -> usize {
    let mut waiting = vec![value];
    let mut bytes = 0;
    while let Some(value) = waiting.pop() {
        bytes += match value {
            Value::String(text) => text.len() + 2,
            Value::Object(object) => 2 + object.keys().map(|key| key.len() + 3).sum::<usize>(),
            _ => 2,
        };
        match value {
            Value::Object(object) => waiting.extend(object.values()),
            Value::Array(items) => waiting.extend(items),
            _ => {}
        }
    }
    bytes
}

fn path(places: &[Place<'_>], index: usize) -> String {
    let mut steps = Vec::new();
    let mut place = &places[index];
    while let Some(parent) = place.parent {
        steps.push(place.step);
        place = &places[parent];
    }
    steps.into_iter().rev().fold(String::new(), |path, step| match step {
        Step::Key(key) => pointer::join(&path, key),
        Step::Index(index) => format!("{path}/{index}"),
    })
}

fn check_pattern(pattern: &str) -> Result<u64, String> {
    if pattern.len() > MAX_PATTERN {
        let found = pattern.len();
        return Err(format!("a regular expression takes {found} bytes; at most {MAX_PATTERN} are allowed"));
    }
    let states = states(pattern);
    if states > MAX_STATES {
        return Err(format!(
            "a regular expression has {states} states, with each repetition written out; at most {MAX_STATES} are allowed"
        ));
    }
    Ok(states)
}

/// Estimates the states of a regular expression once it is compiled. One that cannot be read here is refused by the
/// validator if it cannot read it either, and else has none that are written out.
pub(crate) fn states(pattern: &str) -> u64 {
    regex_syntax::Parser::new().parse(pattern).map_or(pattern.len() as u64, |hir| states_of(&hir))
}

/// Counts the states; the parser limits how deep an expression nests.
fn states_of(hir: &regex_syntax::hir::Hir) -> u64 {
    use regex_syntax::hir::{Class, HirKind};
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => 1,
        HirKind::Literal(literal) => literal.0.len() as u64,
        HirKind::Class(Class::Unicode(class)) => 2 * class.ranges().len() as u64,
        HirKind::Class(Class::Bytes(class)) => 2 * class.ranges().len() as u64,
        HirKind::Repetition(repetition) => {
            let times = repetition.max.unwrap_or_else(|| repetition.min.saturating_add(1));
            states_of(&repetition.sub).saturating_mul(u64::from(times)).saturating_add(1)
        }
        HirKind::Capture(capture) => states_of(&capture.sub),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => {
            parts.iter().map(states_of).fold(1, u64::saturating_add)
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_refusal_names_the_limit_what_was_found_and_where() {
        let deep = (0..120).fold(json!({}), |inner, _| json!({"not": inner}));
        let errors = [
            json!({"properties": {"a": {"enum": vec!["x".repeat(100); 3_000]}}}),
            deep,
            json!({"properties": {"a/b": {"pattern": "a".repeat(4_001)}}}),
            json!({"properties": {"a": {"pattern": "(a{1000}){1000}"}}}),
            json!({"properties": {"a": {"patternProperties": {"(\\w{50}){50}": {}}}}}),
            json!({"allOf": vec![json!({"pattern": "^\\p{L}{1,100}$"}); 2]}),
        ]
        .map(|schema| check(&schema).unwrap_err().to_string());
        insta::assert_snapshot!(errors.join("\n").replace(&"a".repeat(60), ""));
    }

    #[test]
    fn ordinary_expressions_are_allowed() {
        for pattern in [
            "^[A-Z]{3}$",
            r"^[\w.+-]+@[\w-]+\.[\w.-]+$",
            r"^\p{L}{1,100}$",
            "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$",
        ] {
            assert!(check(&json!({"properties": {"a": {"pattern": pattern}}})).is_ok(), "{pattern}");
        }
        assert!(
            check(&json!({"const": {"patternProperties": 1}, "properties": {"pattern": {"type": "string"}}})).is_ok()
        );
    }
}
