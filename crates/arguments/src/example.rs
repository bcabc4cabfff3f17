//! One valid call, made from the schema and from the values of the sender that were right.
//!
//! The validator decides what is right: a start is corrected where it breaks a rule, until it breaks none. What cannot be
//! corrected in a few rounds has no example. All sizes are bounded, so that the work does not depend on what was sent.

mod generate;
mod number;
mod pattern;
mod size;
mod text;

use std::{borrow::Cow, collections::HashMap};

use jsonschema::{ValidationError, error::ValidationErrorKind as Kind};
use serde_json::{Map, Value};

use self::{
    generate::Generator,
    size::{is_small, json_size},
};
use crate::{explain::intended_branch, pointer, schema::Check};

/// No example, and nothing on the way to it, has more bytes of JSON.
pub(crate) const MAX_BYTES: usize = size::MAX_EXAMPLE;
/// Longest value of the sender that an example keeps, and all of them, in bytes of JSON.
const MAX_KEPT_ONE: usize = 300;
const MAX_KEPT: usize = 1_200;
/// Corrections of a start, each followed by a check.
const MAX_ROUNDS: usize = 10;
/// Broken rules that are corrected in one round.
const MAX_ERRORS: usize = 50;

pub(crate) struct Example {
    /// A JSON object that fits the schema.
    pub(crate) arguments: Value,
    /// How many properties have the value that was sent.
    pub(crate) kept: usize,
}

impl Example {
    /// Makes an example with the right values of what was sent; `None` if none can be found.
    pub(crate) fn of(check: &Check<'_>, sent: Option<&Value>) -> Option<Self> {
        let kept = sent.map(|sent| kept(check, sent)).unwrap_or_default();
        let corrected = (!kept.is_empty()).then(|| Corrections::new(check).correct(Value::Object(kept.clone())));
        let found = corrected.flatten().or_else(|| Corrections::new(check).correct(Value::Object(Map::new())));
        let arguments = found.or_else(|| written_example(check))?;
        let is_kept = |(key, value): &(&String, &Value)| arguments.get(key.as_str()) == Some(*value);
        let kept = kept.iter().filter(is_kept).count();
        Some(Self { arguments, kept })
    }
}

/// Keeps the declared properties that were sent, as far as they are short.
fn kept(check: &Check<'_>, sent: &Value) -> Map<String, Value> {
    let Some(object) = sent.as_object() else { return Map::new() };
    let undeclared = check.schema.shapes.inspect(sent).undeclared;
    let mut room = MAX_KEPT;
    let mut kept = Map::new();
    for (key, value) in object {
        let Some(size) = json_size(value, MAX_KEPT_ONE).map(|size| size + key.len()) else { continue };
        if size <= room && !undeclared.contains(&pointer::join("", key)) {
            room -= size;
            kept.insert(key.clone(), value.clone());
        }
    }
    kept
}

/// Returns a whole call that the author of the schema wrote down.
fn written_example(check: &Check<'_>) -> Option<Value> {
    let root = check.schema.root();
    let examples = root.get("examples").and_then(Value::as_array).into_iter().flatten().take(3);
    let mut all = examples.chain(root.get("example")).chain(root.get("default"));
    all.find(|example| example.is_object() && is_small(example) && check.is_valid(example) == Ok(true)).cloned()
}

/// One correction of a value that breaks a rule.
enum Correction {
    /// The property must not be there.
    Remove(String),
    /// A value is missing, or is wrong.
    Write(String),
}

struct Corrections<'s> {
    check: &'s Check<'s>,
    generator: Generator<'s>,
    /// How often a value was written at each path: each time another one is tried.
    tries: HashMap<String, usize>,
}

impl<'s> Corrections<'s> {
    fn new(check: &'s Check<'s>) -> Self {
        Self { check, generator: Generator::new(check.schema.root()), tries: HashMap::new() }
    }

    /// Corrects the value until it breaks no rule; `None` if that takes too long or too much.
    fn correct(mut self, mut value: Value) -> Option<Value> {
        for _ in 0..MAX_ROUNDS {
            if !is_small(&value) {
                return None;
            }
            if self.check.is_valid(&value).ok()? {
                return value.is_object().then_some(value);
            }
            let corrections = self.check.with_errors(&value, |errors| {
                let mut found = Vec::new();
                errors.take(MAX_ERRORS).for_each(|error| collect(&error, &mut found));
                found
            });
            let corrections = corrections.ok()?;
            for correction in corrections.into_iter().take(MAX_ERRORS) {
                match correction {
                    Correction::Remove(path) => remove(&mut value, &path),
                    Correction::Write(path) => self.write(&mut value, &path)?,
                }
            }
        }
        None
    }

    fn write(&mut self, value: &mut Value, path: &str) -> Option<()> {
        let tries = self.tries.entry(path.to_owned()).or_default();
        let made = self.generator.value_at(path, *tries)?;
        *tries += 1;
        if path.is_empty() {
            *value = made;
            return Some(());
        }
        // The value around it may have been replaced by now; the next round sees what is wrong then.
        let last = pointer::steps(path).last()?.into_owned();
        match value.pointer_mut(pointer::parent(path)) {
            Some(Value::Object(object)) => {
                object.insert(last, made);
            }
            Some(Value::Array(items)) => {
                if let Some(item) = last.parse().ok().and_then(|index: usize| items.get_mut(index)) {
                    *item = made;
                }
            }
            _ => {}
        }
        Some(())
    }
}

fn remove(value: &mut Value, path: &str) {
    let Some(last) = pointer::steps(path).last().map(Cow::into_owned) else { return };
    if let Some(Value::Object(object)) = value.pointer_mut(pointer::parent(path)) {
        object.shift_remove(&last);
    }
}

/// Collects the corrections that a broken rule asks for.
fn collect(error: &ValidationError<'_>, found: &mut Vec<Correction>) {
    let path = error.instance_path().as_str();
    match error.kind() {
        Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
            found.extend(unexpected.iter().map(|key| Correction::Remove(pointer::join(path, key))));
        }
        Kind::FalseSchema => found.push(Correction::Remove(path.to_owned())),
        Kind::Required { property } => {
            let property = property.as_str().unwrap_or_default();
            found.push(Correction::Write(pointer::join(path, property)));
        }
        Kind::AnyOf { context } | Kind::OneOfNotValid { context } => match intended_branch(error, context) {
            Some(branch) => branch.iter().for_each(|error| collect(error, found)),
            None => found.push(Correction::Write(path.to_owned())),
        },
        _ => found.push(Correction::Write(path.to_owned())),
    }
}

#[cfg(test)]
mod tests;
