//! What providers refuse, as strict checks of the body of a request. Written from the providers' rules and from nothing
//! that makes such bodies, so that each can show an error of the other.
//!
//! Each provider has a `faults(body)`: what is wrong and where, a line for each fault; empty for a body that it accepts.

pub(crate) mod anthropic;
pub(crate) mod openai;
pub(crate) mod react;

use std::collections::BTreeSet;

use serde_json::{Map, Value};

/// Collects what is wrong.
#[derive(Debug, Default)]
struct Faults(Vec<String>);

impl Faults {
    fn add(&mut self, place: &str, what: impl std::fmt::Display) {
        self.0.push(format!("{place}: {what}"));
    }

    /// Adds a fault unless `fine`.
    fn check(&mut self, fine: bool, place: &str, what: impl std::fmt::Display) {
        if !fine {
            self.add(place, what);
        }
    }

    /// No keys but these.
    fn only(&mut self, object: &Map<String, Value>, allowed: &[&str], place: &str) {
        for key in object.keys().filter(|key| !allowed.contains(&key.as_str())) {
            self.add(place, format_args!("{key:?} is not allowed here"));
        }
    }

    /// A text with something in it.
    fn text(&mut self, value: &Value, place: &str) {
        match value.as_str() {
            None => self.add(place, format_args!("a text is needed, not {value}")),
            Some(text) => self.check(!text.trim().is_empty(), place, "the text is empty"),
        }
    }

    /// The name of a tool, as both providers want it.
    fn name(&mut self, value: &Value, place: &str) {
        self.token(value, 64, place);
    }

    /// Letters, digits, `_` and `-`, at most so many.
    fn token(&mut self, value: &Value, most: usize, place: &str) {
        let fits = |text: &str| {
            (1..=most).contains(&text.len())
                && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
        };
        let fine = value.as_str().is_some_and(fits);
        self.check(fine, place, format_args!("{value} is not 1 to {most} of a-z, A-Z, 0-9, _ and -"));
    }

    /// The list of tools, if there is one: not empty, names unique. `describe` takes a tool apart into its name and schema.
    fn tools(&mut self, body: &Value, describe: fn(&Value) -> (&Value, &Value)) {
        let Some(tools) = body.get("tools") else {
            for key in ["tool_choice", "parallel_tool_calls"] {
                self.check(body.get(key).is_none(), key, "there are no tools");
            }
            return;
        };
        let Some(tools) = tools.as_array().filter(|tools| !tools.is_empty()) else {
            return self.add("tools", "a list that is not empty is needed, or no such field");
        };
        let mut names = BTreeSet::new();
        for (n, tool) in tools.iter().enumerate() {
            let place = format!("tools[{n}]");
            let (name, schema) = describe(tool);
            self.name(name, &place);
            self.check(names.insert(name.to_string()), &place, format_args!("{name} is there twice"));
            self.check(schema["type"] == "object", &place, "its schema is not that of an object");
        }
    }
}

/// The roles of a conversation without tools' own role: system first only, then user and assistant by turns, user first
/// and last.
fn alternates(faults: &mut Faults, roles: &[&str]) {
    let mut wanted = "user";
    for (n, role) in roles.iter().enumerate() {
        if *role != wanted {
            faults.add(&format!("messages[{n}]"), format_args!("the role is {role:?}; {wanted:?} has its turn"));
        }
        wanted = if *role == "user" { "assistant" } else { "user" };
    }
    faults.check(roles.last() == Some(&"user"), "messages", "the last one is not the user's");
}

mod mutations {
    use serde_json::Value;

    /// Puts a value at a pointer, where something is already or not; `Value::Null` there is a null. `-` appends.
    pub(super) fn put(body: &mut Value, pointer: &str, value: Value) {
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        match body.pointer_mut(parent).unwrap_or_else(|| panic!("{pointer}: no such place")) {
            Value::Object(object) => drop(object.insert(key.to_owned(), value)),
            Value::Array(array) if key == "-" => array.push(value),
            Value::Array(array) => array[key.parse::<usize>().unwrap()] = value,
            other => panic!("{pointer}: {other} has no members"),
        }
    }

    pub(super) fn remove(body: &mut Value, pointer: &str) {
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        match body.pointer_mut(parent).unwrap_or_else(|| panic!("{pointer}: no such place")) {
            Value::Object(object) => drop(object.shift_remove(key).unwrap_or_else(|| panic!("{pointer}: not there"))),
            Value::Array(array) => drop(array.remove(key.parse().unwrap())),
            other => panic!("{pointer}: {other} has no members"),
        }
    }

    /// The fault is named, and without the damage there was none.
    pub(super) fn is_refused(
        good: &Value,
        damage: impl FnOnce(&mut Value),
        wanted: &str,
        check: fn(&Value) -> Vec<String>,
    ) {
        assert_eq!(check(good), Vec::<String>::new());
        let mut bad = good.clone();
        damage(&mut bad);
        let faults = check(&bad);
        assert!(faults.iter().any(|fault| fault.contains(wanted)), "{wanted:?} is not among {faults:#?}");
    }
}
