//! The parts of a ReAct text.

use super::labels::{Label, label};
use crate::json::extent::{Search, Style};

/// A part of the text that begins with a label; only the first one may lack it.
pub(super) struct Block<'a> {
    pub(super) label: Option<Label>,
    /// The offset of the part in the text.
    pub(super) begin: usize,
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

/// Splits the text into its parts. An answer contains all the rest of the text. A label inside the JSON object of an
/// action or its input is text.
pub(super) fn blocks(text: &str) -> Vec<Block<'_>> {
    let mut blocks = vec![Block { label: None, begin: 0, first: "", more: "" }];
    let mut search = Search::of(text);
    let (mut begin, mut at) = (0, 0);
    let mut last = None;
    let mut object_end = 0;
    for line in text.split_inclusive('\n') {
        if last != Some(Label::Answer)
            && at >= object_end
            && let Some((found, first)) = label(line)
        {
            if let Some(block) = blocks.last_mut() {
                block.more = &text[begin..at];
            }
            blocks.push(Block { label: Some(found), begin: at, first, more: "" });
            (last, begin) = (Some(found), at + line.len());
            if matches!(found, Label::Action | Label::Input) {
                object_end = end_of_object(text, at, &mut search).unwrap_or_default();
            }
        }
        at += line.len();
    }
    if let Some(block) = blocks.last_mut() {
        block.more = &text[begin..];
    }
    blocks
}

/// Returns the end of the object that begins on the line at `at`, or on the next line with more than markup.
fn end_of_object(text: &str, at: usize, search: &mut Search) -> Option<usize> {
    let mut begin = at;
    for (n, line) in text[at..].split_inclusive('\n').take(4).enumerate() {
        let open = line.find('{');
        let before = line[..open.unwrap_or(line.len())].trim_matches(['`', '*', '_', '>', '-', ' ', '\t', '\r', '\n']);
        if n > 0 && !before.is_empty() && !before.eq_ignore_ascii_case("json") {
            return None;
        }
        if let Some(open) = open {
            return search.end(text, begin + open, Style::Loose);
        }
        begin += line.len();
    }
    None
}
