//! Coerces a value that breaks a rule into the form that the schema asks for, if there is exactly one.

use std::collections::{HashMap, hash_map::Entry};

use jsonschema::{
    JsonType, JsonTypeSet, ValidationError,
    error::{TypeKind, ValidationErrorKind as Kind},
};
use redial_proto::{Language, RepairKind, repair::MAX_REPAIRS};
use serde_json::{Number, Value};

use crate::{
    edit::{Change, Fix, integer},
    explain::intended_branch,
    names::fold_value,
    parse::any_value,
};

/// Finds the fixes that satisfy broken rules without changing the meaning of the values.
pub(crate) fn fixes<'e>(errors: impl Iterator<Item = ValidationError<'e>>) -> Vec<Fix> {
    let mut fixes = Fixes::default();
    for error in errors.take(MAX_REPAIRS) {
        fixes.add(&error);
    }
    let Fixes { order, mut by_path } = fixes;
    order
        .into_iter()
        .filter_map(|path| by_path.remove(&path)?.map(|(kind, change)| Fix::new(path, kind, change)))
        .collect()
}

/// The change that each broken value needs; `None` if two rules need different changes.
#[derive(Default)]
struct Fixes {
    order: Vec<String>,
    by_path: HashMap<String, Option<(RepairKind, Change)>>,
}

impl Fixes {
    fn add(&mut self, error: &ValidationError<'_>) {
        match error.kind() {
            Kind::AnyOf { context } | Kind::OneOfNotValid { context } => match intended_branch(error, context) {
                Some(branch) => branch.iter().for_each(|error| self.add(error)),
                None => self.add_shared(context),
            },
            _ => {
                for change in changes(error) {
                    self.insert(error.instance_path().as_str(), change);
                }
            }
        }
    }

    /// Adds errors that occur in every alternative: the value may be meant for any of them.
    fn add_shared(&mut self, branches: &[Vec<ValidationError<'static>>]) {
        let wrong = |branch: &[ValidationError<'_>], path: &str| {
            branch.iter().any(|error| is_about_the_value(error) && error.instance_path().as_str() == path)
        };
        for error in branches.iter().flatten().filter(|error| is_about_the_value(error)) {
            let path = error.instance_path().as_str();
            if branches.iter().all(|branch| wrong(branch, path)) {
                self.add(error);
            }
        }
    }

    fn insert(&mut self, path: &str, change: (RepairKind, Change)) {
        match self.by_path.entry(path.to_owned()) {
            Entry::Vacant(entry) => {
                self.order.push(path.to_owned());
                entry.insert(Some(change));
            }
            Entry::Occupied(mut entry) => {
                if entry.get().as_ref().is_some_and(|(_, first)| *first != change.1) {
                    entry.insert(None);
                }
            }
        }
    }
}

fn is_about_the_value(error: &ValidationError<'_>) -> bool {
    matches!(error.kind(), Kind::Type { .. } | Kind::Enum { .. } | Kind::Constant { .. })
}

fn changes(error: &ValidationError<'_>) -> Vec<(RepairKind, Change)> {
    let sent = error.instance();
    match error.kind() {
        Kind::Type { kind } => {
            let types = match kind {
                TypeKind::Single(one) => JsonTypeSet::empty().insert(*one),
                TypeKind::Multiple(several) => *several,
            };
            typed(sent, types)
        }
        Kind::Enum { options } => allowed(sent, options.as_array().map_or(&[], Vec::as_slice)),
        Kind::Constant { expected_value } => allowed(sent, std::slice::from_ref(expected_value.as_ref())),
        _ => Vec::new(),
    }
}

/// Writes `sent` as each of these types. A string is read as JSON would read it. Only a number becomes a string,
/// because `true` could as well stand for `True` or `yes`.
fn typed(sent: &Value, types: JsonTypeSet) -> Vec<(RepairKind, Change)> {
    match sent {
        Value::Number(_) => {
            let others = types.remove(JsonType::String).remove(JsonType::Null);
            let only_string = types.contains(JsonType::String) && others.is_empty();
            if only_string { vec![(RepairKind::Type, Change::Quoted)] } else { Vec::new() }
        }
        Value::String(text) => {
            let read = |wanted| read(text, wanted).map(|json| (kind_of(wanted), Change::Value(json)));
            types.iter().filter_map(read).collect()
        }
        _ => Vec::new(),
    }
}

fn kind_of(wanted: JsonType) -> RepairKind {
    match wanted {
        JsonType::Array | JsonType::Object => RepairKind::DoubleEncoded,
        _ => RepairKind::Type,
    }
}

/// Reads the JSON value of the given type that a string spells.
fn read(text: &str, wanted: JsonType) -> Option<String> {
    match wanted {
        JsonType::Integer => number(text).and_then(|number| {
            let whole = integer(number).unwrap_or(number);
            whole.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-').then(|| whole.to_owned())
        }),
        JsonType::Number => number(text).map(str::to_owned),
        JsonType::Boolean => {
            let literal = ["true", "false"].into_iter().find(|literal| literal.eq_ignore_ascii_case(text));
            literal.map(str::to_owned)
        }
        JsonType::Null => ["null", "None"].contains(&text).then(|| "null".to_owned()),
        JsonType::Array => container(text, '[', Value::is_array),
        JsonType::Object => container(text, '{', Value::is_object),
        JsonType::String => None,
    }
}

fn number(text: &str) -> Option<&str> {
    let plain =
        text.starts_with(|c: char| c == '-' || c.is_ascii_digit()) && text.ends_with(|c: char| c.is_ascii_digit());
    (plain && serde_json::from_str::<Number>(text).is_ok()).then_some(text)
}

fn container(text: &str, opener: char, fits: impl Fn(&Value) -> bool) -> Option<String> {
    let looks_right = text.trim_start().starts_with(opener);
    (looks_right && any_value(text, Language::En).is_ok_and(|value| fits(&value))).then(|| text.trim().to_owned())
}

/// Finds the one allowed value that equals `sent` except for case, separators or quotes.
fn allowed(sent: &Value, options: &[Value]) -> Vec<(RepairKind, Change)> {
    let Some(text) = sent.as_str() else { return Vec::new() };
    let folded = fold_value(text);
    let same = options.iter().filter_map(|option| {
        let json = option.to_string();
        let kind = match option {
            Value::String(name) => (fold_value(name) == folded).then_some(RepairKind::EnumValue),
            Value::Bool(_) => json.eq_ignore_ascii_case(text).then_some(RepairKind::Type),
            Value::Number(_) | Value::Null => (json.as_str() == text).then_some(RepairKind::Type),
            Value::Array(_) | Value::Object(_) => None,
        };
        kind.map(|kind| (kind, Change::Value(json)))
    });
    let same: Vec<_> = same.collect();
    if same.len() == 1 { same } else { Vec::new() }
}
