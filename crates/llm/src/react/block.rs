//! The parts of a ReAct text.

use super::labels::Label;

/// A part of the text that begins with a label; only the first one may lack it.
pub(super) struct Block<'a> {
    pub(super) label: Option<Label>,
    /// The rest of the label's line.
    pub(super) first: &'a str,
    /// The lines after it.
    pub(super) more: &'a str,
}

impl Block<'_> {
    pub(super) fn text(&self) -> String {
        format!("{}\n{}", self.first.trim_end(), self.more).trim().to_owned()
    }
}
