//! What a schema declares, place by place: names of properties, and where integers are wanted. Made once per tool, so
//! that a call costs one lookup for each of its keys.

mod build;

use std::collections::{HashMap, HashSet};

use redial_proto::{RepairKind, repair::MAX_REPAIRS};
use serde_json::{Map, Number, Value};

use crate::{
    edit::{Change, Fix},
    names::fold,
    place::Place,
};

/// Properties that are reported as undeclared.
const MAX_UNDECLARED: usize = 100;

/// Every shape of a schema; the first is that of the arguments.
#[derive(Clone, Debug)]
pub(crate) struct Shapes(Vec<Shape>);

/// What is declared about values at one place, all alternatives of the schema taken together.
#[derive(Clone, Debug, Default)]
struct Shape {
    /// Declared properties, and the shapes of their values.
    properties: HashMap<String, usize>,
    /// Declared names by their fold; none where several fold to the same.
    folds: HashMap<String, Option<String>>,
    /// Any other key is as good as a declared one: a map, or an object of which nothing is declared.
    open: bool,
    /// The shape of values under undeclared keys.
    others: Option<usize>,
    /// The shape of an array's items.
    items: Option<usize>,
    /// A number has to be an integer.
    integer: bool,
}

/// What is unusual in arguments, though it may be valid.
#[derive(Debug, Default)]
pub(crate) struct Survey {
    /// Keys that mean a declared property, and integers written with a point.
    pub(crate) fixes: Vec<Fix>,
    /// JSON pointers to properties that the schema does not declare, at most 100.
    pub(crate) undeclared: Vec<String>,
}

impl Shapes {
    /// Looks through arguments.
    pub(crate) fn survey(&self, arguments: &Value) -> Survey {
        let mut survey = Survey::default();
        if let Some(root) = self.0.first() {
            self.value(root, arguments, &Place::root(), &mut survey);
        }
        survey
    }

    fn value(&self, shape: &Shape, value: &Value, place: &Place<'_>, survey: &mut Survey) {
        match value {
            Value::Object(object) => self.object(shape, object, place, survey),
            Value::Array(items) => {
                let Some(shape) = shape.items.and_then(|items| self.0.get(items)) else { return };
                for (index, item) in items.iter().enumerate() {
                    self.value(shape, item, &place.item(index), survey);
                }
            }
            Value::Number(number) if shape.integer && is_integral(number) && survey.fixes.len() < MAX_REPAIRS => {
                survey.fixes.push(Fix::new(place.pointer(), RepairKind::Type, Change::Integer));
            }
            _ => {}
        }
    }

    fn object(&self, shape: &Shape, object: &Map<String, Value>, place: &Place<'_>, survey: &mut Survey) {
        let mut strange = Vec::new();
        for (key, value) in object {
            let declared = shape.properties.get(key);
            if declared.is_none() && !shape.open {
                strange.push(key.as_str());
                continue;
            }
            if let Some(shape) = declared.copied().or(shape.others).and_then(|shape| self.0.get(shape)) {
                self.value(shape, value, &place.key(key), survey);
            }
        }
        if !strange.is_empty() {
            undeclared(shape, object, &strange, place, survey);
        }
    }
}

/// True for `2.0`.
fn is_integral(number: &Number) -> bool {
    number.is_f64() && number.as_f64().is_some_and(|number| number.fract() == 0.0)
}

/// A key that is no declared name means one if it differs in case and separators only, that name is not there itself,
/// and no second key means it.
fn undeclared(shape: &Shape, object: &Map<String, Value>, keys: &[&str], place: &Place<'_>, survey: &mut Survey) {
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
            Some(name) if survey.fixes.len() < MAX_REPAIRS => {
                let change = Change::Key(name.to_owned());
                survey.fixes.push(Fix::new(place.key(key).pointer(), RepairKind::KeyName, change));
            }
            _ if survey.undeclared.len() < MAX_UNDECLARED => survey.undeclared.push(place.key(key).pointer()),
            _ => {}
        }
    }
}
