//! Calls after a marker.

use redial_proto::ReplyCall;
use serde_json::value::RawValue;

use super::object;
use crate::{
    json::extent::{self, Style},
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

/// Calls after a marker.
pub(super) struct Calls {
    pub(super) calls: Vec<ReplyCall>,
    /// Bytes that they take after the marker.
    pub(super) length: usize,
}

/// The calls in the text after a marker; `None` if it has none of an offered tool.
pub(super) fn read(form: Form, text: &str, offers: &Offers) -> Option<Calls> {
    match form {
        Form::Tagged(close) => tagged(text, close, offers),
        Form::Function => function(text, offers),
        Form::List => list(text, offers).or_else(|| named(text, offers)),
        Form::Objects => objects(text, offers),
    }
}

fn tagged(text: &str, close: &str, offers: &Offers) -> Option<Calls> {
    let begin = text.len() - text.trim_start().len();
    let inner = &text[begin..];
    if let Some(function) = inner.strip_prefix("<function=") {
        let found = self::function(function, offers)?;
        let end = text.len() - function.len() + found.length;
        return Some(Calls { length: end + closing(&text[end..], close), ..found });
    }
    if let Ok(length) = extent::end(inner, Style::Strict)
        && let Some(found) = object::read(&inner[..length])
    {
        let calls = vec![offered(found, offers)?];
        let end = begin + length;
        return Some(Calls { calls, length: end + closing(&text[end..], close) });
    }
    let (inner, _) = up_to(text, close);
    let found = object::damaged(inner, offers)?;
    Some(Calls { calls: vec![found.call], length: found.end + closing(&text[found.end..], close) })
}

fn function(text: &str, offers: &Offers) -> Option<Calls> {
    const CLOSE: &str = "</function>";
    let (name, inner) = text.split_at(text.find(['>', '{', '\n'])?);
    let name = name.trim().trim_matches(['"', '\'']);
    if !offers.has(name) {
        return None;
    }
    let inner = inner.strip_prefix('>').unwrap_or(inner);
    let begin = text.len() - inner.trim_start().len();
    let arguments = &text[begin..];
    let (arguments, length) = match extent::end(arguments, Style::Strict) {
        Ok(length) => (&arguments[..length], begin + length + closing(&arguments[length..], CLOSE)),
        Err(_) => {
            let (arguments, length) = up_to(arguments, CLOSE);
            (arguments, begin + length)
        }
    };
    Some(Calls { calls: vec![call(name, arguments.trim().to_owned(), offers)], length })
}

/// `[{"name": …, "arguments": …}, …]`. If one of them is a call of an offered tool, all of them are calls.
fn list(text: &str, offers: &Offers) -> Option<Calls> {
    let begin = text.len() - text.trim_start().len();
    let inner = &text[begin..];
    if !inner.starts_with('[') {
        return None;
    }
    let Ok(length) = extent::end(inner, Style::Strict) else {
        let found = object::damaged(inner, offers)?;
        return Some(Calls { calls: vec![found.call], length: begin + found.end });
    };
    let objects: Vec<&RawValue> = serde_json::from_str(&inner[..length]).ok()?;
    let found: Vec<object::Found> = objects.iter().map(|object| object::read(object.get())).collect::<Option<_>>()?;
    if !found.iter().any(|found| offers.has(&found.name)) {
        return None;
    }
    let calls = found.into_iter().map(|found| call(&found.name, found.arguments.unwrap_or_default(), offers));
    Some(Calls { calls: calls.collect(), length: begin + length })
}

/// `name[ARGS]{…}`, `name[CALL_ID]id[ARGS]{…}` or `name{…}`.
fn named(text: &str, offers: &Offers) -> Option<Calls> {
    let begin = text.find('{')?;
    let name = text[..begin].split('[').next()?.trim();
    if !offers.has(name) {
        return None;
    }
    let inner = &text[begin..];
    let length = extent::end(inner, Style::Strict).unwrap_or_else(|_| up_to(inner, "[TOOL_CALLS]").0.len());
    let calls = vec![call(name, inner[..length].trim().to_owned(), offers)];
    Some(Calls { calls, length: begin + length })
}

fn objects(text: &str, offers: &Offers) -> Option<Calls> {
    let mut calls = Vec::new();
    let (mut at, mut length) = (0, 0);
    loop {
        at += text[at..].len() - text[at..].trim_start().len();
        let inner = &text[at..];
        let found = match extent::end(inner, Style::Strict) {
            Ok(end) => object::read(&inner[..end]).and_then(|found| Some((offered(found, offers)?, end))),
            Err(_) => object::damaged(inner, offers).map(|found| (found.call, found.end)),
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

fn offered(found: object::Found, offers: &Offers) -> Option<ReplyCall> {
    offers.has(&found.name).then(|| call(&found.name, found.arguments.unwrap_or_default(), offers))
}

fn call(name: &str, arguments: String, offers: &Offers) -> ReplyCall {
    ReplyCall { name: offers.own(name), arguments }
}

/// The length of a tag that closes a call, with the white space before it; 0 if it is missing.
fn closing(text: &str, close: &str) -> usize {
    let rest = text.trim_start();
    if rest.starts_with(close) { text.len() - rest.len() + close.len() } else { 0 }
}

/// The text up to a tag or to its end, and the length with the tag.
fn up_to<'a>(text: &'a str, close: &str) -> (&'a str, usize) {
    text.find(close).map_or((text, text.len()), |at| (&text[..at], at + close.len()))
}
