//! What a schema declares at each location: property names, and where integers are required. Built once per tool, so
//! that a call costs one lookup per key.

mod build;

use std::collections::{HashMap, HashSet};

use redial_proto::{RepairKind, repair::MAX_REPAIRS};
use serde_json::{Map, Number, Value};

use crate::{
    edit::{Change, Fix},
    location::Location,
    names::fold,
};

/// At most this many undeclared properties are reported.
const MAX_UNDECLARED: usize = 100;

/// All shapes of a schema; the first is that of the arguments. Shapes refer to each other by index.
#[derive(Clone, Debug)]
pub(crate) struct Shapes(Vec<Shape>);

/// What a schema declares about values at one location, with all its alternatives combined.
#[derive(Clone, Debug, Default)]
struct Shape {
    /// Declared properties, with the index of the shape of their values.
    properties: HashMap<String, usize>,
    /// Declared names by their fold; `None` where several names share one.
    folds: HashMap<String, Option<String>>,
    /// Any other key is as good as a declared one: a map, or an object without declared properties.
    open: bool,
    /// The index of the shape of values under undeclared keys.
    others: Option<usize>,
    /// The index of the shape of an array's items.
    items: Option<usize>,
    /// A number must be an integer.
    integer: bool,
}

/// What is unusual in arguments, though it may be valid.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    /// Repairs of keys that mean a declared property, and of integers written with a decimal point.
    pub(crate) fixes: Vec<Fix>,
    /// JSON pointers to properties that the schema does not declare, at most 100.
    pub(crate) undeclared: Vec<String>,
}

impl Shapes {
    pub(crate) fn inspect(&self, arguments: &Value) -> Findings {
        let mut findings = Findings::default();
        if let Some(root) = self.0.first() {
            self.value(root, arguments, &Location::root(), &mut findings);
        }
        findings
    }

    fn value(&self, shape: &Shape, value: &Value, location: &Location<'_>, findings: &mut Findings) {
        match value {
            Value::Object(object) => self.object(shape, object, location, findings),
            Value::Array(items) => {
                let Some(shape) = shape.items.and_then(|items| self.0.get(items)) else { return };
                for (index, item) in items.iter().enumerate() {
                    self.value(shape, item, &location.item(index), findings);
                }
            }
            Value::Number(number) if shape.integer && is_integral(number) && findings.fixes.len() < MAX_REPAIRS => {
                findings.fixes.push(Fix::new(location.pointer(), RepairKind::Type, Change::Integer));
            }
            _ => {}
        }
    }

    fn object(&self, shape: &Shape, object: &Map<String, Value>, location: &Location<'_>, findings: &mut Findings) {
        let mut undeclared = Vec::new();
        for (key, value) in object {
            let declared = shape.properties.get(key);
            if declared.is_none() && !shape.open {
                undeclared.push(key.as_str());
                continue;
            }
            if let Some(shape) = declared.copied().or(shape.others).and_then(|shape| self.0.get(shape)) {
                self.value(shape, value, &location.key(key), findings);
            }
        }
        if !undeclared.is_empty() {
            match_undeclared(shape, object, &undeclared, location, findings);
        }
    }
}

/// True for `2.0`.
fn is_integral(number: &Number) -> bool {
    number.is_f64() && number.as_f64().is_some_and(|number| number.fract() == 0.0)
}

/// Matches undeclared keys: one means a declared name if it differs only in case and separators, that name is absent,
/// and no second key means it.
fn match_undeclared(
    shape: &Shape,
    object: &Map<String, Value>,
    keys: &[&str],
    location: &Location<'_>,
    findings: &mut Findings,
) {
    let meant: Vec<Option<&str>> = keys
        .iter()
        .map(|key| shape.folds.get(&fold(key))?.as_deref().filter(|name| !object.contains_key(*name)))
        .collect();
    let (mut once, mut twice) = (HashSet::new(), HashSet::new());
    for name in meant.iter().flatten() {
        if !once.insert(*name) {
            twice.insert(*name);
        }
    }
    for (key, meant) in keys.iter().zip(meant) {
        match meant.filter(|name| !twice.contains(name)) {
            Some(name) if findings.fixes.len() < MAX_REPAIRS => {
                let change = Change::Key(name.to_owned());
                findings.fixes.push(Fix::new(location.key(key).pointer(), RepairKind::KeyName, change));
            }
            _ if findings.undeclared.len() < MAX_UNDECLARED => findings.undeclared.push(location.key(key).pointer()),
            _ => {}
        }
    }
}
