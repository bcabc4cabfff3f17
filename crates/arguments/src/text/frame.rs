//! An array or object that is being read.

use std::{collections::HashMap, ops::Range};

use redial_proto::Language;

/// What may come next in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Its first member, or its end.
    FirstOrEnd,
    /// A comma, or its end.
    CommaOrEnd,
    /// The member after a comma.
    Member,
}

/// One open bracket.
#[derive(Debug)]
pub(super) struct Frame {
    /// `}` or `]`.
    pub(super) closer: char,
    /// Where the bracket stands in the text.
    pub(super) opened: usize,
    pub(super) next: Next,
    /// Members that were read.
    pub(super) count: usize,
    /// The key of the member that is being read, in an object.
    pub(super) key: String,
    /// The last comma: where it stands in the text, and where in the output.
    pub(super) comma: (usize, usize),
    /// Where in the output the value begins that is being read.
    pub(super) value: usize,
    /// Where in the output the value of each key is, in an object.
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
