//! The parts of a schema and the references between them, resolved as the validator resolves them.

use std::{collections::HashMap, rc::Rc, sync::Arc};

use jsonschema::{Draft, ReferencingError, Registry, Uri, uri};
use serde_json::{Map, Value};

use crate::{pointer, schema_error::SchemaError};

/// The URI of a schema without an `$id`; that of the validator.
const DEFAULT_URI: &str = "json-schema:///";
/// Most parts that share one `$dynamicAnchor`: each reference to it may lead to each of them.
const MAX_DYNAMIC: usize = 16;

/// Keywords with a list of schemas for the same value.
const LISTS: [&str; 3] = ["allOf", "anyOf", "oneOf"];
/// Keywords with one schema for the same value.
const SINGLES: [&str; 4] = ["not", "if", "then", "else"];
/// Keywords with schemas for the same value by property; the second one is of older drafts.
const DEPENDENT: [&str; 2] = ["dependentSchemas", "dependencies"];

/// Every value of a schema, with an index.
pub(crate) struct Document<'s> {
    registry: Registry<'s>,
    places: Vec<Place<'s>>,
    by_address: HashMap<*const Value, usize>,
    dynamic_anchors: HashMap<&'s str, Vec<usize>>,
    parts: HashMap<usize, Rc<Parts>>,
}

struct Place<'s> {
    value: &'s Value,
    /// What its references are relative to.
    base: Arc<Uri<String>>,
    /// The value around it, and its key or index in there.
    parent: Option<(usize, String)>,
}

/// The schemas that a schema applies, by their index.
#[derive(Default)]
pub(crate) struct Parts {
    /// To the same value.
    pub(crate) same: Vec<usize>,
    /// To members, to items and to names.
    pub(crate) children: [Children; 3],
    /// Those of `same` that are alternatives: of `anyOf` and `oneOf`.
    pub(crate) alternatives: Vec<usize>,
    /// How many keywords depend on what the others leave unevaluated.
    pub(crate) unevaluated: u64,
}

#[derive(Default)]
pub(crate) struct Children {
    /// Each applies to another child.
    pub(crate) one_of: Vec<usize>,
    /// All of them may apply to the same child.
    pub(crate) all_of: Vec<usize>,
}

impl Parts {
    /// Returns the schemas that apply to children.
    pub(crate) fn nested(&self) -> impl Iterator<Item = &usize> {
        self.children.iter().flat_map(|children| children.one_of.iter().chain(&children.all_of))
    }
}

impl<'s> Document<'s> {
    pub(crate) const ROOT: usize = 0;

    pub(crate) fn read(schema: &'s Value) -> Result<Self, SchemaError> {
        let (registry, base) = registry(schema).map_err(|reason| SchemaError::unresolved(schema, &reason))?;
        let root = Place { value: schema, base: Arc::new(base), parent: None };
        let mut document = Self {
            registry,
            places: vec![root],
            by_address: HashMap::new(),
            dynamic_anchors: HashMap::new(),
            parts: HashMap::new(),
        };
        let mut next = 0;
        while next < document.places.len() {
            document.enter(next);
            next += 1;
        }
        Ok(document)
    }

    /// Indexes a value and adds those in it.
    fn enter(&mut self, index: usize) {
        let Place { value, base, .. } = &self.places[index];
        let (value, mut base) = (*value, base.clone());
        self.by_address.insert(std::ptr::from_ref(value), index);
        if let Some(id) = value.get("$id").and_then(Value::as_str).filter(|_| index != Self::ROOT)
            && let Ok(inner) = self.registry.resolve_uri(&base.borrow(), id.trim_end_matches('#'))
        {
            base = inner;
            self.places[index].base = base.clone();
        }
        if let Some(name) = value.get("$dynamicAnchor").and_then(Value::as_str) {
            self.dynamic_anchors.entry(name).or_default().push(index);
        }
        let add = |(step, value)| Place { value, base: base.clone(), parent: Some((index, step)) };
        match value {
            Value::Object(object) => {
                self.places.extend(object.iter().map(|(key, value)| (key.clone(), value)).map(add));
            }
            Value::Array(items) => {
                self.places.extend(items.iter().enumerate().map(|(n, value)| (n.to_string(), value)).map(add));
            }
            _ => {}
        }
    }

    /// Returns the schemas that a schema applies; an error if a reference leads outside the document or to nothing.
    pub(crate) fn parts(&mut self, index: usize) -> Result<Rc<Parts>, SchemaError> {
        if let Some(known) = self.parts.get(&index) {
            return Ok(known.clone());
        }
        let mut parts = Parts::default();
        if let Value::Object(part) = self.places[index].value {
            parts.same = self.references(index, part)?;
            let lists = LISTS.iter().flat_map(|name| list(part, name));
            let singles = SINGLES.iter().filter_map(|name| part.get(*name));
            let dependent = DEPENDENT.iter().flat_map(|name| map(part, name));
            parts.same.extend(lists.chain(singles).chain(dependent).filter_map(|value| self.schema_at(value)));
            let alternatives = ["anyOf", "oneOf"].into_iter().flat_map(|name| list(part, name));
            parts.alternatives = alternatives.filter_map(|value| self.schema_at(value)).collect();
            parts.children = [
                self.children(
                    map(part, "properties").chain(part.get("additionalProperties")),
                    map(part, "patternProperties").chain(part.get("unevaluatedProperties")),
                ),
                // `items` is a list in older drafts.
                self.children(
                    list(part, "prefixItems").chain(list(part, "items")).chain(both(part, "items", "additionalItems")),
                    both(part, "contains", "unevaluatedItems"),
                ),
                self.children(part.get("propertyNames").into_iter(), std::iter::empty()),
            ];
            let unevaluated = ["unevaluatedProperties", "unevaluatedItems"];
            parts.unevaluated = unevaluated.iter().map(|name| u64::from(part.contains_key(*name))).sum();
        }
        let parts = Rc::new(parts);
        self.parts.insert(index, parts.clone());
        Ok(parts)
    }

    fn children<'v>(
        &self,
        one_of: impl Iterator<Item = &'v Value>,
        all_of: impl Iterator<Item = &'v Value>,
    ) -> Children {
        Children {
            one_of: one_of.filter_map(|value| self.schema_at(value)).collect(),
            all_of: all_of.filter_map(|value| self.schema_at(value)).collect(),
        }
    }

    pub(crate) fn value(&self, index: usize) -> &'s Value {
        self.places[index].value
    }

    /// Returns the index of a schema that may apply others; `true` and `false` cost nothing.
    pub(crate) fn schema_at(&self, value: &Value) -> Option<usize> {
        self.by_address.get(&std::ptr::from_ref(value)).copied().filter(|_| value.is_object())
    }

    fn references(&self, index: usize, part: &Map<String, Value>) -> Result<Vec<usize>, SchemaError> {
        let mut targets = Vec::new();
        for keyword in ["$ref", "$dynamicRef", "$recursiveRef"] {
            let Some(reference) = part.get(keyword).and_then(Value::as_str) else { continue };
            let path = || pointer::join(&self.path(index), keyword);
            let resolver = self.registry.resolver((*self.places[index].base).clone());
            let found =
                resolver.lookup(reference).map_err(|reason| SchemaError::outside(path(), &reason.to_string()))?;
            let Some(target) = self.by_address.get(&std::ptr::from_ref(found.contents())) else {
                return Err(SchemaError::outside(path(), &format!("{reference:?} is another schema")));
            };
            targets.push(*target);
            if keyword == "$dynamicRef" {
                let name = reference.rsplit('#').next().unwrap_or_default();
                let others = self.dynamic_anchors.get(name).map_or(&[][..], Vec::as_slice);
                if others.len() > MAX_DYNAMIC {
                    let message = format!("more than {MAX_DYNAMIC} schemas have this $dynamicAnchor");
                    return Err(SchemaError::new(path(), message));
                }
                targets.extend(others.iter().filter(|other| *other != target));
            }
        }
        Ok(targets)
    }

    pub(crate) fn error(&self, index: usize, message: impl Into<String>) -> SchemaError {
        SchemaError::new(self.path(index), message)
    }

    fn path(&self, index: usize) -> String {
        let mut steps = Vec::new();
        let mut place = &self.places[index];
        while let Some((parent, step)) = &place.parent {
            steps.push(step);
            place = &self.places[*parent];
        }
        steps.into_iter().rev().fold(String::new(), |path, step| pointer::join(&path, step))
    }
}

/// Registers the schema as the validator does; returns its URI, too. Nothing is fetched.
fn registry(schema: &Value) -> Result<(Registry<'_>, Uri<String>), ReferencingError> {
    let draft = Draft::Draft202012;
    let resource = draft.create_resource_ref(schema);
    let default = uri::from_str(DEFAULT_URI)?;
    let base = resource.id().map_or(Ok(default.clone()), |id| uri::resolve_against(&default.borrow(), id))?;
    let registry = Registry::new().retriever(Nothing).draft(draft).add(base.as_str(), resource)?.prepare()?;
    Ok((registry, base))
}

/// Refuses to fetch anything.
struct Nothing;

impl jsonschema::Retrieve for Nothing {
    fn retrieve(&self, uri: &Uri<String>) -> Result<Value, Box<dyn std::error::Error + Send + Sync>> {
        Err(format!("Retrieval is disabled, cannot fetch {uri}").into())
    }
}

fn list<'v>(part: &'v Map<String, Value>, name: &str) -> impl Iterator<Item = &'v Value> + use<'v> {
    part.get(name).and_then(Value::as_array).into_iter().flatten()
}

fn map<'v>(part: &'v Map<String, Value>, name: &str) -> impl Iterator<Item = &'v Value> + use<'v> {
    part.get(name).and_then(Value::as_object).into_iter().flat_map(Map::values)
}

fn both<'v>(part: &'v Map<String, Value>, one: &str, other: &str) -> impl Iterator<Item = &'v Value> + use<'v> {
    [part.get(one), part.get(other)].into_iter().flatten()
}
