//! What the model knows already.

use std::{borrow::Cow, cell::OnceCell};

use redial_proto::FieldError;
use serde_json::Value;

use super::rule::Kind;

/// Rules of JSON Schema whose `allowed` is the tool's schema in words: it was offered to the model with the tool.
const SCHEMA_RULES: [&str; 24] = [
    "type",
    "enum",
    "const",
    "format",
    "pattern",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
    "multipleOf",
    "uniqueItems",
    "not",
    "contains",
    "required",
    "additionalProperties",
    "anyOf",
    "oneOf",
    "propertyNames",
];

/// Texts that the model sent, or received with the tool.
#[derive(Debug)]
pub struct Known<'a> {
    sent: &'a str,
    details: &'a [FieldError],
    texts: OnceCell<Texts<'a>>,
}

#[derive(Debug, Default)]
struct Texts<'a> {
    sent: Vec<Cow<'a, str>>,
    offered: Vec<&'a str>,
}

impl<'a> Known<'a> {
    /// Makes them of `sent`, the arguments as the model wrote them, JSON or not, and `details`, broken rules with what
    /// was sent there.
    pub const fn new(sent: &'a str, details: &'a [FieldError]) -> Self {
        Self { sent, details, texts: OnceCell::new() }
    }

    pub const fn nothing() -> Self {
        Self::new("", &[])
    }

    /// True if the model knows this piece, as words of their own. A secret in a schema is not known to the model.
    pub(super) fn holds(&self, piece: &str, kind: Kind) -> bool {
        let texts = self.texts.get_or_init(|| self.collect());
        texts.sent.iter().any(|text| holds(text, piece))
            || (kind != Kind::Secret && texts.offered.iter().any(|text| holds(text, piece)))
    }

    fn collect(&self) -> Texts<'a> {
        let mut texts = Texts::default();
        if !self.sent.is_empty() {
            texts.sent.push(self.sent.into());
            if let Ok(value) = serde_json::from_str::<Value>(self.sent) {
                strings(&value, &mut |text| texts.sent.push(text.to_owned().into()));
            }
        }
        for detail in self.details {
            texts.sent.push(detail.path.as_str().into());
            match &detail.sent {
                None => {}
                Some(Value::String(text)) => texts.sent.push(text.as_str().into()),
                Some(other) => {
                    texts.sent.push(other.to_string().into());
                    strings(other, &mut |text| texts.sent.push(text.to_owned().into()));
                }
            }
            if SCHEMA_RULES.contains(&detail.rule.as_str()) {
                texts.offered.push(&detail.allowed);
                texts.offered.extend(detail.hint.as_deref());
            }
        }
        texts
    }
}

/// Visits every string in a value as it reads without escapes, keys too.
fn strings(value: &Value, take: &mut impl FnMut(&str)) {
    match value {
        Value::String(text) => take(text),
        Value::Array(items) => items.iter().for_each(|item| strings(item, take)),
        Value::Object(members) => {
            for (key, value) in members {
                take(key);
                strings(value, take);
            }
        }
        _ => {}
    }
}

/// True if the text contains the piece, and not as part of a longer word.
fn holds(text: &str, piece: &str) -> bool {
    let is_word = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    text.match_indices(piece).any(|(at, _)| {
        let (before, after) = (text[..at].chars().next_back(), text[at + piece.len()..].chars().next());
        let cut_before = is_word(before) && is_word(piece.chars().next());
        let cut_after = is_word(after) && is_word(piece.chars().next_back());
        !cut_before && !cut_after
    })
}
