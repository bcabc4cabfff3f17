//! How many steps it takes to check a value.
//!
//! A thread that checks a value cannot be stopped, and a time limit would refuse the same call on a busy machine only. So the
//! steps are counted before they are made: the same schemas are walked over the same values as the validator does, but each
//! pair of them once, however often the validator comes by. A schema that applies itself to a property twice
//! (`{"allOf": [{"properties": {"a": {"$ref": "#"}}}, {"properties": {"a": {"$ref": "#"}}}]}`) doubles the validator's work
//! with each level, and costs one more pair here.

mod graph;

use std::{
    cell::Cell,
    collections::HashMap,
    hash::{BuildHasherDefault, Hasher},
};

use serde_json::Value;

use self::graph::{Graph, Node};
use crate::{document::Document, schema_error::SchemaError};

/// Most steps to check the arguments of one call, with all repairs: about 0.2 s. A step is one schema applied to one value.
pub(crate) const MAX_STEPS: u64 = 4_000_000;
/// Most steps to find out what is wrong with one value. Each takes longer, because errors copy values.
pub(crate) const MAX_DESCRIBED: u64 = 400_000;
/// Up to so many steps are made without counting them first, and on the thread that asks: about 5 ms.
pub(crate) const MAX_AT_ONCE: u64 = 100_000;
/// Pairs of a schema and a value that are counted.
const MAX_PAIRS: u64 = 400_000;
/// States of a regular expression that cost as much as a step, for each byte.
const STATES: u64 = 64;

/// Steps that may still be made.
#[derive(Debug)]
pub struct Steps(Cell<u64>);

impl Default for Steps {
    /// Returns as many as one call may take.
    fn default() -> Self {
        Self(Cell::new(MAX_STEPS))
    }
}

impl Steps {
    fn take(&self, count: u64) -> Result<(), Costly> {
        self.0.set(self.0.get().checked_sub(count).ok_or(Costly)?);
        Ok(())
    }
}

/// A check would take more steps than are allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Costly;

#[derive(Clone, Debug)]
pub(crate) struct Costs {
    graph: Graph,
    /// Most schemas that apply to one value; one that contains itself is counted once.
    here: u64,
    /// Most steps of one schema on its own, for each value and for each 64 bytes of text.
    each: u64,
    text: u64,
}

impl Costs {
    pub(crate) fn of(document: &mut Document<'_>, here: u64) -> Result<Self, SchemaError> {
        let graph = Graph::of(document)?;
        let most = |of: fn(&Node) -> u64| graph.nodes.iter().map(of).max().unwrap_or(0);
        let each = most(|node| node.own) + 2;
        let text = most(|node| node.states + node.name_states + if node.is_unique { 64 } else { 0 });
        Ok(Self { graph, here, each, text })
    }

    /// True if arguments of so many bytes are checked in [`MAX_AT_ONCE`] steps, whatever they are.
    pub(crate) fn is_cheap(&self, bytes: usize) -> bool {
        self.most(bytes) <= MAX_AT_ONCE
    }

    /// Returns the most steps to check arguments of so many bytes.
    fn most(&self, bytes: usize) -> u64 {
        if self.graph.is_recursive {
            return u64::MAX;
        }
        let bytes = bytes as u64;
        // Each value takes two bytes at least.
        let each = self.each.saturating_mul(bytes / 2 + 1).saturating_add(self.text.saturating_mul(bytes / 64 + 1));
        each.saturating_mul(self.here)
    }

    /// Takes the steps to find out whether a value fits; `bytes`: its length as text. Nothing is counted if it is bounded
    /// anyway: repairs of one call check few values.
    pub(crate) fn take_check(&self, value: &Value, bytes: usize, steps: &Steps) -> Result<(), Costly> {
        if self.most(bytes) <= MAX_STEPS {
            return Ok(());
        }
        let mut count = Count::new(&self.graph);
        let cost = count.pair(0, value);
        steps.take(count.pairs)?;
        let all = cost?.all;
        if all <= MAX_STEPS || !self.graph.is_recursive || self.graph.is_dynamic {
            return steps.take(all);
        }
        // The validator remembers what a reference to a schema that contains itself found at an object or a list. Between
        // such references the schemas apply as often as without recursion.
        steps.take(count.pairs.saturating_mul(self.here))
    }

    /// Takes the steps to find out which rules a value breaks. What was found of alternatives is not remembered.
    pub(crate) fn take_description(&self, value: &Value, steps: &Steps) -> Result<(), Costly> {
        let mut count = Count::new(&self.graph);
        let cost = count.pair(0, value);
        steps.take(count.pairs)?;
        let described = cost?.described;
        if described > MAX_DESCRIBED { Err(Costly) } else { steps.take(described) }
    }
}

/// The steps of a schema and of all that it applies, at one value and at all within it.
#[derive(Clone, Copy, Default)]
struct Cost {
    /// To find out whether the value fits.
    all: u64,
    /// To find out what of it is evaluated, for `unevaluatedProperties` and `unevaluatedItems`.
    evaluated: u64,
    /// To list the broken rules.
    described: u64,
}

impl Cost {
    fn add(&mut self, other: Self) {
        self.all = self.all.saturating_add(other.all);
        self.described = self.described.saturating_add(other.described);
    }
}

/// Hashes indices and addresses, which no sender can choose.
type Quick = BuildHasherDefault<QuickHasher>;

#[derive(Default)]
struct QuickHasher(u64);

impl Hasher for QuickHasher {
    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 32)
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_usize(usize::from(*byte));
        }
    }

    fn write_usize(&mut self, number: usize) {
        self.0 = (self.0.rotate_left(5) ^ number as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
}

struct Count<'g> {
    graph: &'g Graph,
    /// Of objects and lists.
    known: HashMap<(usize, *const Value), Cost, Quick>,
    sizes: HashMap<*const Value, u64, Quick>,
    pairs: u64,
}

impl<'g> Count<'g> {
    fn new(graph: &'g Graph) -> Self {
        Self { graph, known: HashMap::default(), sizes: HashMap::default(), pairs: 0 }
    }

    /// Counts the steps of a schema for a value. Recursion ends at the value's depth times the longest chain of schemas
    /// for one value.
    fn pair(&mut self, index: usize, value: &Value) -> Result<Cost, Costly> {
        let key = (index, std::ptr::from_ref(value));
        let is_container = value.is_object() || value.is_array();
        if is_container && let Some(known) = self.known.get(&key) {
            return Ok(*known);
        }
        self.pairs += 1;
        if self.pairs > MAX_PAIRS {
            return Err(Costly);
        }
        let node = &self.graph.nodes[index];
        let own = self.own(node, value)?;
        let errors = if node.is_alternative { node.errors.saturating_mul(self.size(value)?) } else { node.errors };
        let mut cost = Cost { all: own, evaluated: 1, described: own.saturating_add(errors) };
        for next in &node.same {
            let next = self.pair(*next, value)?;
            cost.evaluated = cost.evaluated.saturating_add(next.all).saturating_add(next.evaluated);
            cost.add(next);
        }
        self.members(node, value, &mut cost)?;
        cost.all = cost.all.saturating_add(cost.evaluated.saturating_mul(node.unevaluated));
        if node.has_alternatives || node.unevaluated > 0 {
            cost.described = cost.described.saturating_add(cost.all);
        }
        if is_container {
            self.known.insert(key, cost);
        }
        Ok(cost)
    }

    fn members(&mut self, node: &Node, value: &Value, cost: &mut Cost) -> Result<(), Costly> {
        match value {
            Value::Object(object) => {
                for (name, member) in object {
                    let own = node.declared.get(name).copied().or(node.others);
                    for next in own.into_iter().chain(node.members.iter().copied()) {
                        cost.add(self.pair(next, member)?);
                    }
                    if let Some(names) = node.names {
                        cost.add(self.name(names, name)?);
                    }
                }
            }
            Value::Array(items) => {
                for (position, item) in items.iter().enumerate() {
                    let own = match node.first.get(position) {
                        Some(first) => first.as_slice(),
                        None => node.rest.as_slice(),
                    };
                    for next in own.iter().chain(&node.items) {
                        cost.add(self.pair(*next, item)?);
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Counts the steps of a name, which is checked as a string. It has no address of its own, so nothing of it is
    /// remembered.
    fn name(&mut self, index: usize, name: &str) -> Result<Cost, Costly> {
        let value = Value::from(name);
        let mut count = Count { pairs: self.pairs, ..Count::new(self.graph) };
        let cost = count.pair(index, &value);
        self.pairs = count.pairs;
        cost
    }

    /// Counts the steps of a schema without those that it applies.
    fn own(&mut self, node: &Node, value: &Value) -> Result<u64, Costly> {
        let more = match value {
            Value::String(text) => {
                let bytes = text.len() as u64;
                bytes.saturating_mul(node.states) / STATES
            }
            Value::Object(object) if node.name_states > 0 => {
                let bytes = object.keys().map(|name| name.len() as u64 + 1).sum::<u64>();
                bytes.saturating_mul(node.name_states) / STATES + object.len() as u64
            }
            Value::Object(object) => object.len() as u64,
            // Lists of up to 15 items are compared item by item.
            Value::Array(items) if node.is_unique => self.size(value)?.saturating_mul(16) + items.len() as u64,
            Value::Array(items) => items.len() as u64,
            _ => 0,
        };
        Ok(node.own.saturating_add(more).saturating_add(1))
    }

    /// Counts the values in a value, long texts as several.
    fn size(&mut self, value: &Value) -> Result<u64, Costly> {
        let inner: Vec<&Value> = match value {
            Value::String(text) => return Ok(text.len() as u64 / 64 + 1),
            Value::Object(object) => object.values().collect(),
            Value::Array(items) => items.iter().collect(),
            _ => return Ok(1),
        };
        let key = std::ptr::from_ref(value);
        if let Some(known) = self.sizes.get(&key) {
            return Ok(*known);
        }
        self.pairs += 1;
        let mut size = 1_u64;
        for one in inner {
            size = size.saturating_add(self.size(one)?);
        }
        self.sizes.insert(key, size);
        Ok(size)
    }
}

#[cfg(test)]
mod tests;
