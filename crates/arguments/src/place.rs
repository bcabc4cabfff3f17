//! Where in a document one stands.

use crate::pointer;

/// A list on the stack, so that walking a document allocates nothing until a place has to be named.
pub(crate) struct Place<'a> {
    parent: Option<&'a Place<'a>>,
    step: Step<'a>,
    /// Arrays and objects around this place.
    pub(crate) depth: usize,
}

/// How one gets from the parent to here.
enum Step<'a> {
    Key(&'a str),
    Item(usize),
}

impl<'a> Place<'a> {
    /// The whole document.
    pub(crate) const fn root() -> Self {
        Self { parent: None, step: Step::Item(0), depth: 0 }
    }

    /// The value of a member.
    pub(crate) const fn key(&'a self, key: &'a str) -> Self {
        Self { parent: Some(self), step: Step::Key(key), depth: self.depth + 1 }
    }

    /// An item of an array.
    pub(crate) const fn item(&'a self, index: usize) -> Self {
        Self { parent: Some(self), step: Step::Item(index), depth: self.depth + 1 }
    }

    /// The place as a JSON pointer.
    pub(crate) fn pointer(&self) -> String {
        let Some(parent) = self.parent else { return String::new() };
        let start = parent.pointer();
        match self.step {
            Step::Key(key) => pointer::join(&start, key),
            Step::Item(index) => format!("{start}/{index}"),
        }
    }
}
