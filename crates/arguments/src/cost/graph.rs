//! The schemas of a document and how they apply one another, with what each costs on its own.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use crate::{bounds, document::Document, schema_error::SchemaError};

/// A format is checked with as much work as a regular expression of so many states.
const FORMAT: u64 = 8;
/// Most schemas in one document.
const MAX_NODES: usize = 20_000;

/// Every schema that is reachable; the first is the whole.
#[derive(Clone, Debug)]
pub(super) struct Graph {
    pub(super) nodes: Vec<Node>,
    /// Some schema contains itself.
    pub(super) is_recursive: bool,
    /// Some reference is resolved while the schema is applied; the validator remembers no results of these.
    pub(super) is_dynamic: bool,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Node {
    /// Comparisons that it makes whatever the value is.
    pub(super) own: u64,
    /// States of the regular expression for a string; a format counts as a few.
    pub(super) states: u64,
    /// States of the regular expressions for names of members.
    pub(super) name_states: u64,
    pub(super) is_unique: bool,
    /// Errors that it may report, each with a copy of the value.
    pub(super) errors: u64,
    /// It offers alternatives; their errors are described only after all of them were tried.
    pub(super) has_alternatives: bool,
    /// It is within an alternative, where errors hold copies of values.
    pub(super) is_alternative: bool,
    /// How many keywords depend on what the others leave unevaluated.
    pub(super) unevaluated: u64,
    /// Schemas for the same value.
    pub(super) same: Vec<usize>,
    /// Schemas of members by name.
    pub(super) declared: HashMap<String, usize>,
    /// The schema of members that are not declared.
    pub(super) others: Option<usize>,
    /// Schemas that may apply to any member.
    pub(super) members: Vec<usize>,
    /// The schema of the names.
    pub(super) names: Option<usize>,
    /// Schemas of the first items; `None` for `true` and `false`.
    pub(super) first: Vec<Option<usize>>,
    /// Schemas of the items after the first.
    pub(super) rest: Vec<usize>,
    /// Schemas that may apply to any item.
    pub(super) items: Vec<usize>,
}

impl Graph {
    pub(super) fn of(document: &mut Document<'_>) -> Result<Self, SchemaError> {
        let mut builder = Builder { document, indices: HashMap::new(), order: Vec::new() };
        builder.index(Document::ROOT);
        let mut graph = Self { nodes: Vec::new(), is_recursive: false, is_dynamic: false };
        let mut alternatives = Vec::new();
        while let Some(part) = builder.order.get(graph.nodes.len()).copied() {
            if builder.order.len() > MAX_NODES {
                let message =
                    format!("the schema consists of more than {MAX_NODES} schemas, which is the most allowed");
                return Err(builder.document.error(part, message));
            }
            let (node, branches) = builder.node(part)?;
            alternatives.extend(branches);
            if let Value::Object(object) = builder.document.value(part) {
                graph.is_dynamic |= object.contains_key("$dynamicRef") || object.contains_key("$recursiveRef");
            }
            graph.nodes.push(node);
        }
        graph.is_recursive = graph.has_circle();
        graph.mark_alternatives(alternatives);
        Ok(graph)
    }

    /// Removes schemas that nothing applies any more, until none is left or those that are left apply one another.
    fn has_circle(&self) -> bool {
        let mut users = vec![0_usize; self.nodes.len()];
        for next in self.nodes.iter().flat_map(Node::applied) {
            users[next] += 1;
        }
        let mut free: Vec<usize> = (0..users.len()).filter(|node| users[*node] == 0).collect();
        let mut removed = 0;
        while let Some(node) = free.pop() {
            removed += 1;
            for next in self.nodes[node].applied() {
                users[next] -= 1;
                if users[next] == 0 {
                    free.push(next);
                }
            }
        }
        removed < self.nodes.len()
    }

    fn mark_alternatives(&mut self, mut waiting: Vec<usize>) {
        while let Some(node) = waiting.pop() {
            if !std::mem::replace(&mut self.nodes[node].is_alternative, true) {
                waiting.extend(self.nodes[node].applied());
            }
        }
    }
}

impl Node {
    /// Returns all schemas that it applies, to whatever value.
    fn applied(&self) -> impl Iterator<Item = usize> {
        let lists = [&self.same, &self.members, &self.rest, &self.items].into_iter().flatten().copied();
        let singles = self.declared.values().copied().chain(self.others).chain(self.names);
        lists.chain(singles).chain(self.first.iter().copied().flatten())
    }
}

struct Builder<'d, 's> {
    document: &'d mut Document<'s>,
    /// Indices of nodes by those of parts.
    indices: HashMap<usize, usize>,
    /// Parts in the order of their nodes.
    order: Vec<usize>,
}

impl<'s> Builder<'_, 's> {
    fn index(&mut self, part: usize) -> usize {
        *self.indices.entry(part).or_insert_with(|| {
            self.order.push(part);
            self.order.len() - 1
        })
    }

    fn index_of(&mut self, schema: Option<&'s Value>) -> Option<usize> {
        let part = self.document.schema_at(schema?)?;
        Some(self.index(part))
    }

    /// Makes a node; returns which nodes are alternatives of it, too.
    fn node(&mut self, part: usize) -> Result<(Node, Vec<usize>), SchemaError> {
        let parts = self.document.parts(part)?;
        let Value::Object(object) = self.document.value(part) else { return Ok(Default::default()) };
        let mut node = own(object);
        node.unevaluated = parts.unevaluated;
        node.has_alternatives = !parts.alternatives.is_empty();
        let mut seen = HashSet::new();
        // A part that applies another one twice does so twice.
        node.same = parts.same.iter().map(|part| self.index(*part)).collect();
        let alternatives =
            parts.alternatives.iter().filter(|part| seen.insert(**part)).map(|part| self.index(*part)).collect();
        for (name, schema) in map(object, "properties") {
            if let Some(index) = self.index_of(Some(schema)) {
                node.declared.insert(name.clone(), index);
            }
        }
        node.others = self.index_of(object.get("additionalProperties"));
        let patterns = map(object, "patternProperties").map(|(_, schema)| schema);
        let members: Vec<&Value> = patterns.chain(object.get("unevaluatedProperties")).collect();
        node.members = members.into_iter().filter_map(|schema| self.index_of(Some(schema))).collect();
        node.names = self.index_of(object.get("propertyNames"));
        // `items` is a list in older drafts.
        let first = ["prefixItems", "items"].into_iter().find_map(|name| object.get(name)?.as_array());
        node.first = first.into_iter().flatten().map(|schema| self.index_of(Some(schema))).collect();
        let rest = [object.get("items"), object.get("additionalItems")];
        node.rest = rest.into_iter().filter_map(|schema| self.index_of(schema)).collect();
        let items = [object.get("contains"), object.get("unevaluatedItems")];
        node.items = items.into_iter().filter_map(|schema| self.index_of(schema)).collect();
        Ok((node, alternatives))
    }
}

/// Reads what a schema does without others.
fn own(object: &Map<String, Value>) -> Node {
    let length = |name: &str| object.get(name).map_or(0, |value| value.as_array().map_or(0, Vec::len) as u64);
    let compared: u64 = ["enum", "const"].into_iter().filter_map(|name| object.get(name)).map(comparisons).sum();
    let dependent: u64 = map(object, "dependentRequired").map(|(_, names)| comparisons(names)).sum();
    let pattern = object.get("pattern").and_then(Value::as_str).map_or(0, bounds::states);
    Node {
        own: compared
            .saturating_add(length("required"))
            .saturating_add(dependent)
            .saturating_add(object.len() as u64 / 2),
        states: pattern + if object.contains_key("format") { FORMAT } else { 0 },
        name_states: map(object, "patternProperties").map(|(pattern, _)| bounds::states(pattern)).sum(),
        is_unique: object.get("uniqueItems") == Some(&Value::Bool(true)),
        errors: object.len() as u64 + length("required") + dependent,
        ..Node::default()
    }
}

/// Counts the values, and long parts of texts, that a comparison with this value looks at. The size of schemas is
/// bounded.
fn comparisons(value: &Value) -> u64 {
    match value {
        Value::Array(items) => items.iter().map(comparisons).sum::<u64>() + 1,
        Value::Object(object) => object.values().map(comparisons).sum::<u64>() + object.len() as u64 + 1,
        Value::String(text) => text.len() as u64 / 64 + 1,
        _ => 1,
    }
}

fn map<'v>(object: &'v Map<String, Value>, name: &str) -> impl Iterator<Item = (&'v String, &'v Value)> + use<'v> {
    object.get(name).and_then(Value::as_object).into_iter().flatten()
}
