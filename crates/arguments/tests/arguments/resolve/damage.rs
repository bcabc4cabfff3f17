//! Writes a value as JSON with the mistakes that models make, in every way that leaves no doubt about the value.

use proptest::prelude::*;
use serde_json::{Map, Value};

/// The mistakes that there are.
const MISTAKES: &str = "fence encoded single_quotes python capitals trailing_commas comments bare_keys raw_controls full_width \
    twice";

#[derive(Clone, Debug)]
pub(crate) struct Damage(Vec<&'static str>);

impl Damage {
    pub(crate) fn any() -> impl Strategy<Value = Self> {
        let all: Vec<&str> = MISTAKES.split_whitespace().collect();
        let count = all.len();
        prop::sample::subsequence(all, 0..=count).prop_map(Self)
    }

    /// Unwraps the damage, for a text that is not wrapped in anything.
    pub(crate) fn unwrapped(mut self) -> Self {
        self.0.retain(|mistake| !["fence", "encoded"].contains(mistake));
        self
    }

    fn has(&self, mistake: &str) -> bool {
        debug_assert!(MISTAKES.contains(mistake), "{mistake}");
        self.0.contains(&mistake)
    }
}

/// Writes with the given damage.
pub(crate) struct Printer {
    damage: Damage,
    out: String,
}

impl Printer {
    pub(crate) fn new(damage: Damage) -> Self {
        Self { damage, out: String::new() }
    }

    pub(crate) fn print(mut self, value: &Value) -> String {
        self.value(value);
        let mut text = self.out;
        if self.damage.has("encoded") {
            text = Value::from(text).to_string();
        }
        if self.damage.has("fence") {
            text = format!("Here it is:\n```json\n{text}\n```\n");
        }
        text
    }

    fn value(&mut self, value: &Value) {
        match value {
            Value::Null if self.damage.has("capitals") => self.out.push_str("NULL"),
            Value::Bool(true) if self.damage.has("capitals") => self.out.push_str("TRUE"),
            Value::Bool(false) if self.damage.has("capitals") => self.out.push_str("FALSE"),
            Value::Null if self.damage.has("python") => self.out.push_str("None"),
            Value::Bool(true) if self.damage.has("python") => self.out.push_str("True"),
            Value::Bool(false) if self.damage.has("python") => self.out.push_str("False"),
            Value::String(text) => self.string(text),
            Value::Array(items) => self.list(items),
            Value::Object(object) => self.object(object),
            other => self.out.push_str(&other.to_string()),
        }
    }

    fn list(&mut self, items: &[Value]) {
        self.out.push('[');
        for (index, item) in items.iter().enumerate() {
            self.value(item);
            self.comma(index + 1 == items.len());
        }
        self.out.push(']');
    }

    fn object(&mut self, object: &Map<String, Value>) {
        self.out.push('{');
        for (index, (key, value)) in object.iter().enumerate() {
            let last = index + 1 == object.len();
            let start = self.out.len();
            let plain =
                key.starts_with(|c: char| c.is_ascii_lowercase()) && key.chars().all(|c| c.is_ascii_lowercase());
            let word = ["true", "false", "null"].contains(&key.as_str());
            if self.damage.has("bare_keys") && plain && !word {
                self.out.push_str(key);
            } else {
                self.string(key);
            }
            self.out.push_str(if self.damage.has("full_width") { "：" } else { ":" });
            self.value(value);
            if self.damage.has("twice") && last {
                let member = self.out[start..].to_owned();
                self.out.push(',');
                self.out.push_str(&member);
            }
            self.comma(last);
        }
        self.out.push('}');
    }

    fn comma(&mut self, last: bool) {
        if self.damage.has("comments") {
            self.out.push_str(" /* , */ // \"x\": {\n # it's\n");
        }
        match (last, self.damage.has("full_width")) {
            (true, _) if !self.damage.has("trailing_commas") => {}
            (_, true) => self.out.push('，'),
            (_, false) => self.out.push(','),
        }
    }

    /// Writes a string in single quotes as Python does, or in double quotes, perhaps with raw control characters.
    fn string(&mut self, text: &str) {
        let quote = if self.damage.has("single_quotes") { '\'' } else { '"' };
        self.out.push(quote);
        for c in text.chars() {
            match c {
                c if c == quote || c == '\\' => self.out.extend(['\\', c]),
                c if c < ' ' && !self.damage.has("raw_controls") => {
                    let escape = format!("\\u{:04x}", u32::from(c));
                    self.out.push_str(&escape);
                }
                c => self.out.push(c),
            }
        }
        self.out.push(quote);
    }
}
