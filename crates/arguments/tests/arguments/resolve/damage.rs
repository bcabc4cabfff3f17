//! Writes a value as JSON with the mistakes that models make, in every way that leaves no doubt about the value.

use proptest::prelude::*;
use serde_json::{Map, Value};

/// The mistakes to make.
#[expect(clippy::struct_excessive_bools, reason = "each mistake is independent")]
#[derive(Clone, Debug)]
pub(crate) struct Damage {
    pub(crate) fence: bool,
    pub(crate) encoded: bool,
    pub(crate) single_quotes: bool,
    pub(crate) python: bool,
    pub(crate) capitals: bool,
    pub(crate) trailing_commas: bool,
    pub(crate) comments: bool,
    pub(crate) bare_keys: bool,
    pub(crate) raw_controls: bool,
    pub(crate) full_width: bool,
    pub(crate) twice: bool,
}

impl Arbitrary for Damage {
    type Parameters = ();
    type Strategy = BoxedStrategy<Self>;

    fn arbitrary_with((): ()) -> Self::Strategy {
        prop::array::uniform11(any::<bool>())
            .prop_map(|yes| Self {
                fence: yes[0],
                encoded: yes[1],
                single_quotes: yes[2],
                python: yes[3],
                trailing_commas: yes[4],
                comments: yes[5],
                bare_keys: yes[6],
                raw_controls: yes[7],
                full_width: yes[8],
                twice: yes[9],
                capitals: yes[10],
            })
            .boxed()
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
        if self.damage.encoded {
            text = Value::from(text).to_string();
        }
        if self.damage.fence {
            text = format!("Here it is:\n```json\n{text}\n```\n");
        }
        text
    }

    fn value(&mut self, value: &Value) {
        match value {
            Value::Null if self.damage.capitals => self.out.push_str("NULL"),
            Value::Bool(true) if self.damage.capitals => self.out.push_str("TRUE"),
            Value::Bool(false) if self.damage.capitals => self.out.push_str("FALSE"),
            Value::Null if self.damage.python => self.out.push_str("None"),
            Value::Bool(true) if self.damage.python => self.out.push_str("True"),
            Value::Bool(false) if self.damage.python => self.out.push_str("False"),
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
            if self.damage.bare_keys && plain && !word {
                self.out.push_str(key);
            } else {
                self.string(key);
            }
            self.out.push_str(if self.damage.full_width { "：" } else { ":" });
            self.value(value);
            if self.damage.twice && last {
                let member = self.out[start..].to_owned();
                self.out.push(',');
                self.out.push_str(&member);
            }
            self.comma(last);
        }
        self.out.push('}');
    }

    fn comma(&mut self, last: bool) {
        if self.damage.comments {
            self.out.push_str(" /* , */ // \"x\": {\n # it's\n");
        }
        match (last, self.damage.full_width) {
            (true, _) if !self.damage.trailing_commas => {}
            (_, true) => self.out.push('，'),
            (_, false) => self.out.push(','),
        }
    }

    /// In single quotes as Python writes them, or in double quotes, perhaps with raw control characters.
    fn string(&mut self, text: &str) {
        let quote = if self.damage.single_quotes { '\'' } else { '"' };
        self.out.push(quote);
        for c in text.chars() {
            match c {
                c if c == quote || c == '\\' => self.out.extend(['\\', c]),
                c if c < ' ' && !self.damage.raw_controls => {
                    let escape = format!("\\u{:04x}", u32::from(c));
                    self.out.push_str(&escape);
                }
                c => self.out.push(c),
            }
        }
        self.out.push(quote);
    }
}
