//! Calls after a marker.

use redial_proto::ReplyCall;
use serde_json::value::RawValue;

use super::object;
use crate::{
    json::extent::{Search, Style},
    offers::Offers,
};

/// What follows a marker.
#[derive(Clone, Copy)]
pub(super) enum Form {
    /// An object, up to this tag.
    Tagged(&'static str),
    /// `name>`, the arguments, `</function>`.
    Function,
    /// A list of objects, or a name and its arguments.
    List,
    /// Objects, with semicolons between them.
    Objects,
}

/// The markers, and what follows them.
pub(super) const MARKERS: [(&str, Form); 5] = [
    ("<tool_call>", Form::Tagged("</tool_call>")),
    ("<function_call>", Form::Tagged("</function_call>")),
    ("<function=", Form::Function),
    ("[TOOL_CALLS]", Form::List),
    ("<|python_tag|>", Form::Objects),
];

pub(super) struct Calls {
    pub(super) calls: Vec<ReplyCall>,
    /// Bytes that they take after the marker.
    pub(super) length: usize,
}

/// Reads the calls after the markers of one text.
pub(super) struct Reader<'a> {
    offers: &'a Offers,
    search: Search,
}

impl<'a> Reader<'a> {
    pub(super) fn of(text: &str, offers: &'a Offers) -> Self {
        Self { offers, search: Search::of(text) }
    }

    /// Reads the calls in the text after a marker; `None` if it has none. Only valid objects may name a tool that is
    /// not offered.
    pub(super) fn read(&mut self, form: Form, text: &str) -> Option<Calls> {
        match form {
            Form::Tagged(close) => self.tagged(text, close),
            Form::Function => self.function(text),
            Form::List => self.list(text).or_else(|| self.named(text)),
            Form::Objects => self.objects(text),
        }
    }

    fn tagged(&mut self, text: &str, close: &str) -> Option<Calls> {
        let begin = text.len() - text.trim_start().len();
        let inner = &text[begin..];
        if let Some(function) = inner.strip_prefix("<function=") {
            let found = self.function(function)?;
            let end = text.len() - function.len() + found.length;
            return Some(Calls { length: end + closing(&text[end..], close), ..found });
        }
        if let Some(length) = self.search.end(inner, 0, Style::Strict)
            && let Some(found) = object::read(&inner[..length])
        {
            let calls = vec![of(found, self.offers)];
            let end = begin + length;
            return Some(Calls { calls, length: end + closing(&text[end..], close) });
        }
        let (inner, _) = up_to(text, close);
        let found = object::damaged(inner, self.offers)?;
        Some(Calls { calls: vec![found.call], length: found.end + closing(&text[found.end..], close) })
    }

    fn function(&mut self, text: &str) -> Option<Calls> {
        const CLOSE: &str = "</function>";
        let (name, inner) = text.split_at(near(text).find(['>', '{', '\n'])?);
        let name = name.trim().trim_matches(['"', '\'']);
        if !self.offers.has(name) {
            return None;
        }
        let inner = inner.strip_prefix('>').unwrap_or(inner);
        let begin = text.len() - inner.trim_start().len();
        let arguments = &text[begin..];
        let (arguments, length) = if let Some(length) = self.search.end(arguments, 0, Style::Strict) {
            (&arguments[..length], begin + length + closing(&arguments[length..], CLOSE))
        } else {
            let (arguments, length) = up_to(arguments, CLOSE);
            (arguments, begin + length)
        };
        Some(Calls { calls: vec![call(name, arguments.trim().to_owned(), self.offers)], length })
    }

    /// Reads `[{"name": …, "arguments": …}, …]`.
    fn list(&mut self, text: &str) -> Option<Calls> {
        let begin = text.len() - text.trim_start().len();
        let inner = &text[begin..];
        if !inner.starts_with('[') {
            return None;
        }
        let Some(length) = self.search.end(inner, 0, Style::Strict) else {
            let found = object::damaged(near(inner), self.offers)?;
            return Some(Calls { calls: vec![found.call], length: begin + found.end });
        };
        let objects: Vec<&RawValue> = serde_json::from_str(&inner[..length]).ok()?;
        let found: Vec<object::Found> =
            objects.iter().map(|object| object::read(object.get())).collect::<Option<_>>()?;
        let calls: Vec<ReplyCall> = found.into_iter().map(|found| of(found, self.offers)).collect();
        (!calls.is_empty()).then_some(Calls { calls, length: begin + length })
    }

    /// Reads `name[ARGS]{…}`, `name[CALL_ID]id[ARGS]{…}` or `name{…}`.
    fn named(&mut self, text: &str) -> Option<Calls> {
        let begin = near(text).find('{')?;
        let name = text[..begin].split('[').next()?.trim();
        if !self.offers.has(name) {
            return None;
        }
        let inner = &text[begin..];
        let length = self.search.end(inner, 0, Style::Strict).unwrap_or_else(|| up_to(inner, "[TOOL_CALLS]").0.len());
        let calls = vec![call(name, inner[..length].trim().to_owned(), self.offers)];
        Some(Calls { calls, length: begin + length })
    }

    fn objects(&mut self, text: &str) -> Option<Calls> {
        let mut calls = Vec::new();
        let (mut at, mut length) = (0, 0);
        loop {
            at += text[at..].len() - text[at..].trim_start().len();
            let inner = &text[at..];
            let found = match self.search.end(inner, 0, Style::Strict) {
                Some(end) => object::read(&inner[..end]).map(|found| (of(found, self.offers), end)),
                None => object::damaged(near(inner), self.offers).map(|found| (found.call, found.end)),
            };
            let Some((call, end)) = found else { break };
            calls.push(call);
            at += end;
            length = at;
            match text[at..].trim_start().strip_prefix(';') {
                Some(next) => at = text.len() - next.len(),
                None => break,
            }
        }
        (!calls.is_empty()).then_some(Calls { calls, length })
    }
}

fn of(found: object::Found, offers: &Offers) -> ReplyCall {
    call(&found.name, found.arguments.unwrap_or_default(), offers)
}

fn call(name: &str, arguments: String, offers: &Offers) -> ReplyCall {
    ReplyCall { name: offers.own(name), arguments }
}

/// Returns the length of a tag that closes a call, with the white space before it; 0 if it is missing.
fn closing(text: &str, close: &str) -> usize {
    let rest = text.trim_start();
    if rest.starts_with(close) { text.len() - rest.len() + close.len() } else { 0 }
}

/// Returns the text up to a tag, or to the next marker, or to its end; and the length with the tag.
fn up_to<'a>(text: &'a str, close: &str) -> (&'a str, usize) {
    let text = near(text);
    text.find(close).map_or((text, text.len()), |at| (&text[..at], at + close.len()))
}

/// Returns the text up to the next marker. What is looked for only here is looked for once in each part of a text.
fn near(text: &str) -> &str {
    let mut places = text.match_indices(['<', '[']).map(|(at, _)| at);
    let next = places.find(|at| MARKERS.iter().any(|(marker, _)| text[*at..].starts_with(marker)));
    &text[..next.unwrap_or(text.len())]
}
