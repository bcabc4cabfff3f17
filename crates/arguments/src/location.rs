//! A location in a JSON document.

use crate::pointer;

/// A linked list on the stack, so that walking a document allocates nothing until a location must be reported.
pub(crate) struct Location<'a> {
    parent: Option<&'a Location<'a>>,
    step: Step<'a>,
    /// Arrays and objects around this location.
    pub(crate) depth: usize,
}

enum Step<'a> {
    Key(&'a str),
    Item(usize),
}

impl<'a> Location<'a> {
    /// Starts at the whole document.
    pub(crate) const fn root() -> Self {
        Self { parent: None, step: Step::Item(0), depth: 0 }
    }

    pub(crate) const fn key(&'a self, key: &'a str) -> Self {
        Self { parent: Some(self), step: Step::Key(key), depth: self.depth + 1 }
    }

    pub(crate) const fn item(&'a self, index: usize) -> Self {
        Self { parent: Some(self), step: Step::Item(index), depth: self.depth + 1 }
    }

    /// Writes the location as a JSON pointer.
    pub(crate) fn pointer(&self) -> String {
        let Some(parent) = self.parent else { return String::new() };
        let start = parent.pointer();
        match self.step {
            Step::Key(key) => pointer::join(&start, key),
            Step::Item(index) => format!("{start}/{index}"),
        }
    }
}
