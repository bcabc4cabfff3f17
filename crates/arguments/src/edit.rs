//! Edits names and values in JSON text. Everything else is copied byte for byte, so an edit of one value cannot change
//! the digits of another number or the order of keys.

use std::{borrow::Cow, collections::HashMap, ops::Range};

use redial_proto::{Repair, RepairKind, limits::shorten, repair::MAX_QUOTED};

use crate::pointer;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fix {
    /// JSON pointer to the value in the text before the edit.
    pub(crate) pointer: String,
    pub(crate) kind: RepairKind,
    pub(crate) change: Change,
}

impl Fix {
    pub(crate) fn new(pointer: String, kind: RepairKind, change: Change) -> Self {
        Self { pointer, kind, change }
    }
}

/// What an edit writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// The member gets this key.
    Key(String),
    /// The value becomes this JSON text.
    Value(String),
    /// A number becomes a string, digit by digit.
    Quoted,
    /// A number loses a fraction that is zero.
    Integer,
}

/// Applies fixes to a text of valid JSON within the depth limit; returns the new text and a record of each change.
pub(crate) fn apply(json: &str, fixes: &[Fix]) -> (String, Vec<Repair>) {
    let mut tree = FixTree::default();
    for fix in fixes {
        tree.add(fix);
    }
    let mut editor = Editor { json, at: 0, copied: 0, out: String::with_capacity(json.len()), repairs: Vec::new() };
    editor.value(Some(&tree));
    editor.out.push_str(&json[editor.copied..]);
    (editor.out, editor.repairs)
}

/// Fixes by location, as a tree: walking it with the text costs one lookup per key.
#[derive(Default)]
struct FixTree<'f> {
    fixes: Vec<&'f Fix>,
    children: HashMap<Cow<'f, str>, FixTree<'f>>,
}

impl<'f> FixTree<'f> {
    fn add(&mut self, fix: &'f Fix) {
        let node = pointer::steps(&fix.pointer).fold(self, |node, step| node.children.entry(step).or_default());
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
    /// Offset of the next byte to read.
    at: usize,
    /// Bytes of the text that the output covers.
    copied: usize,
    out: String,
    repairs: Vec<Repair>,
}

impl Editor<'_> {
    /// Reads a value. Recursion is bounded by the depth of the text.
    fn value(&mut self, tree: Option<&FixTree<'_>>) {
        self.whitespace();
        let start = self.at;
        match self.next() {
            Some(b'{') => self.members(b'}', tree),
            Some(b'[') => self.members(b']', tree),
            Some(b'"') => self.string(),
            _ => {
                while self.next().is_some_and(|byte| !b",]} \t\r\n".contains(&byte)) {
                    self.at += 1;
                }
            }
        }
        for fix in tree.iter().flat_map(|tree| &tree.fixes) {
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

    /// Reads the members of an object, or the items of an array, with both brackets.
    fn members(&mut self, closer: u8, tree: Option<&FixTree<'_>>) {
        self.at += 1;
        for index in 0_usize.. {
            self.whitespace();
            match self.next() {
                None => return,
                Some(byte) if byte == closer => {
                    self.at += 1;
                    return;
                }
                Some(b',') => {
                    self.at += 1;
                    self.whitespace();
                }
                Some(_) => {}
            }
            let child = if closer == b'}' {
                self.key(tree)
            } else {
                tree.filter(|tree| !tree.children.is_empty()).and_then(|t| t.children.get(index.to_string().as_str()))
            };
            self.value(child);
        }
    }

    /// Reads a key and its colon; returns the fixes below it.
    fn key<'w>(&mut self, tree: Option<&'w FixTree<'w>>) -> Option<&'w FixTree<'w>> {
        let start = self.at;
        self.string();
        let span = start..self.at;
        self.whitespace();
        self.at += 1;
        let tree = tree.filter(|tree| !tree.children.is_empty())?;
        let key: String = serde_json::from_str(&self.json[span.clone()]).ok()?;
        let child = tree.children.get(key.as_str())?;
        if let Some((fix, name)) = child.key() {
            let path = pointer::join(pointer::parent(&fix.pointer), name);
            self.replace(span, &serde_json::Value::from(name).to_string(), fix.kind, &path);
        }
        Some(child)
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

    fn whitespace(&mut self) {
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

/// Returns the integer that equals a number with a zero fraction, with every digit kept.
pub(crate) fn integer(number: &str) -> Option<&str> {
    let (whole, fraction) = number.split_once('.')?;
    let digits = whole.strip_prefix('-').unwrap_or(whole);
    let integral = !fraction.is_empty() && fraction.bytes().all(|byte| byte == b'0');
    (integral && !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())).then_some(whole)
}
