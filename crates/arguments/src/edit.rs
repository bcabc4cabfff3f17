//! Changes of names and values in JSON text. Everything else is copied byte for byte, so a change of one value cannot
//! touch another: not the digits of a number, not the order of keys.

use std::{borrow::Cow, collections::HashMap, ops::Range};

use redial_proto::{Repair, RepairKind, limits::shorten, repair::MAX_QUOTED};

use crate::pointer;

/// A name or value to write otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fix {
    /// Where, as a JSON pointer into the text as it is.
    pub(crate) pointer: String,
    pub(crate) kind: RepairKind,
    pub(crate) change: Change,
}

impl Fix {
    pub(crate) fn new(pointer: String, kind: RepairKind, change: Change) -> Self {
        Self { pointer, kind, change }
    }
}

/// How to write it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// The member gets this key.
    Key(String),
    /// The value becomes this JSON text.
    Value(String),
    /// A number becomes a string, digit by digit.
    Quoted,
    /// A number loses a fraction of zeros.
    Integer,
}

/// Makes the changes in a text of valid JSON, no deeper than the limit; gives the new text and a record of each change.
pub(crate) fn apply(json: &str, fixes: &[Fix]) -> (String, Vec<Repair>) {
    let mut wanted = Wanted::default();
    for fix in fixes {
        wanted.add(fix);
    }
    let mut editor = Editor { json, at: 0, copied: 0, out: String::with_capacity(json.len()), repairs: Vec::new() };
    editor.value(Some(&wanted));
    editor.out.push_str(&json[editor.copied..]);
    (editor.out, editor.repairs)
}

/// The places to change, as a tree: walking it with the text costs one lookup for each key.
#[derive(Default)]
struct Wanted<'f> {
    fixes: Vec<&'f Fix>,
    below: HashMap<Cow<'f, str>, Wanted<'f>>,
}

impl<'f> Wanted<'f> {
    fn add(&mut self, fix: &'f Fix) {
        let node = pointer::steps(&fix.pointer).fold(self, |node, step| node.below.entry(step).or_default());
        node.fixes.push(fix);
    }

    fn key(&self) -> Option<(&'f Fix, &'f str)> {
        self.fixes.iter().find_map(|fix| match &fix.change {
            Change::Key(name) => Some((*fix, name.as_str())),
            _ => None,
        })
    }
}

struct Editor<'a> {
    json: &'a str,
    /// Bytes that were read.
    at: usize,
    /// Bytes that are in the output, as they were or changed.
    copied: usize,
    out: String,
    repairs: Vec<Repair>,
}

impl Editor<'_> {
    /// Reads a value. Recursion is bounded by the depth of the text.
    fn value(&mut self, wanted: Option<&Wanted<'_>>) {
        self.blanks();
        let start = self.at;
        match self.next() {
            Some(b'{') => self.members(b'}', wanted),
            Some(b'[') => self.members(b']', wanted),
            Some(b'"') => self.string(),
            _ => {
                while self.next().is_some_and(|byte| !b",]} \t\r\n".contains(&byte)) {
                    self.at += 1;
                }
            }
        }
        for fix in wanted.iter().flat_map(|wanted| &wanted.fixes) {
            let text = &self.json[start..self.at];
            let new = match &fix.change {
                Change::Key(_) => None,
                Change::Value(new) => Some(new.clone()),
                Change::Quoted => Some(format!("\"{text}\"")),
                Change::Integer => integer(text).map(str::to_owned),
            };
            if let Some(new) = new {
                self.replace(start..self.at, &new, fix.kind, &fix.pointer);
            }
        }
    }

    /// The members of an object, or the items of an array, with both brackets.
    fn members(&mut self, closer: u8, wanted: Option<&Wanted<'_>>) {
        self.at += 1;
        for index in 0_usize.. {
            self.blanks();
            match self.next() {
                None => return,
                Some(byte) if byte == closer => {
                    self.at += 1;
                    return;
                }
                Some(b',') => {
                    self.at += 1;
                    self.blanks();
                }
                Some(_) => {}
            }
            let below = if closer == b'}' {
                self.key(wanted)
            } else {
                wanted.filter(|wanted| !wanted.below.is_empty()).and_then(|w| w.below.get(index.to_string().as_str()))
            };
            self.value(below);
        }
    }

    /// A key and its colon.
    fn key<'w>(&mut self, wanted: Option<&'w Wanted<'w>>) -> Option<&'w Wanted<'w>> {
        let start = self.at;
        self.string();
        let span = start..self.at;
        self.blanks();
        self.at += 1;
        let wanted = wanted.filter(|wanted| !wanted.below.is_empty())?;
        let key: String = serde_json::from_str(&self.json[span.clone()]).ok()?;
        let below = wanted.below.get(key.as_str())?;
        if let Some((fix, name)) = below.key() {
            let path = pointer::join(pointer::up(&fix.pointer), name);
            self.replace(span, &serde_json::Value::from(name).to_string(), fix.kind, &path);
        }
        Some(below)
    }

    fn string(&mut self) {
        self.at += 1;
        while let Some(byte) = self.next() {
            self.at += if byte == b'\\' { 2 } else { 1 };
            if byte == b'"' {
                return;
            }
        }
    }

    fn blanks(&mut self) {
        while self.next().is_some_and(|byte| b" \t\r\n".contains(&byte)) {
            self.at += 1;
        }
    }

    fn next(&self) -> Option<u8> {
        self.json.as_bytes().get(self.at).copied()
    }

    fn replace(&mut self, span: Range<usize>, new: &str, kind: RepairKind, path: &str) {
        self.out.push_str(&self.json[self.copied..span.start]);
        self.out.push_str(new);
        self.repairs.push(Repair {
            kind,
            path: Some(path.to_owned()),
            offset: None,
            before: shorten(&self.json[span.clone()], MAX_QUOTED),
            after: shorten(new, MAX_QUOTED),
        });
        self.copied = span.end;
    }
}

/// The integer that a number with a fraction of zeros is, to the last digit.
pub(crate) fn integer(number: &str) -> Option<&str> {
    let (whole, fraction) = number.split_once('.')?;
    let digits = whole.strip_prefix('-').unwrap_or(whole);
    let integral = !fraction.is_empty() && fraction.bytes().all(|byte| byte == b'0');
    (integral && !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())).then_some(whole)
}
