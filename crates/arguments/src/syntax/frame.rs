//! An array or object that is not closed yet.

use std::{collections::HashMap, ops::Range};

use redial_proto::Language;

/// What may come next in a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// The first member, or the end.
    FirstOrEnd,
    /// A comma, or the end.
    CommaOrEnd,
    /// The member after a comma.
    Member,
}

/// One open bracket.
#[derive(Debug)]
pub(super) struct Frame {
    /// `}` or `]`.
    pub(super) closer: char,
    /// Offset of the bracket in the text.
    pub(super) opened: usize,
    pub(super) next: Next,
    /// Number of members that were read.
    pub(super) count: usize,
    /// In an object, the key of the member that is being read.
    pub(super) key: String,
    /// Offsets of the last comma in the text and in the output.
    pub(super) comma: (usize, usize),
    /// Offset in the output at which the current value begins.
    pub(super) value: usize,
    /// In an object, the range of each key's value in the output.
    pub(super) members: HashMap<String, Range<usize>>,
}

impl Frame {
    pub(super) fn new(bracket: char, opened: usize) -> Self {
        Self {
            closer: if bracket == '{' { '}' } else { ']' },
            opened,
            next: Next::FirstOrEnd,
            count: 0,
            key: String::new(),
            comma: (0, 0),
            value: 0,
            members: HashMap::new(),
        }
    }

    pub(super) fn is_object(&self) -> bool {
        self.closer == '}'
    }

    pub(super) fn name(&self, language: Language) -> &'static str {
        match (language, self.is_object()) {
            (Language::En, true) => "object",
            (Language::En, false) => "array",
            (Language::Zh, true) => "对象",
            (Language::Zh, false) => "数组",
        }
    }
}
