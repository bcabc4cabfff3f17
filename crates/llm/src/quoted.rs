//! The parts of a text in which a marker, such as a tag, is only quoted: code blocks, code in backticks, JSON.

use std::ops::Range;

use crate::json::extent::{Search, Style};

/// Longer runs of backticks are not read as code.
const MAX_RUN: usize = 8;

pub(crate) struct Quoted<'a> {
    text: &'a str,
    /// In order; they may overlap.
    code: Vec<Range<usize>>,
    /// In order, apart from each other.
    json: Vec<Range<usize>>,
}

impl<'a> Quoted<'a> {
    pub(crate) fn of(text: &'a str) -> Self {
        Self { text, code: code(text), json: objects(text) }
    }

    /// True if the marker in this range is quoted: in code, in JSON, or alone between quotation marks.
    pub(crate) fn contains(&self, marker: &Range<usize>) -> bool {
        let inside = |ranges: &[Range<usize>]| {
            let after = ranges.partition_point(|range| range.start <= marker.start);
            ranges[..after].last().is_some_and(|range| marker.start < range.end)
        };
        inside(&self.code) || inside(&self.json) || self.between_quotes(marker)
    }

    fn between_quotes(&self, marker: &Range<usize>) -> bool {
        let before = self.text[..marker.start].chars().next_back();
        let after = self.text[marker.end..].chars().next();
        matches!((before, after), (Some('"'), Some('"')) | (Some('\''), Some('\'')) | (Some('“'), Some('”')))
    }
}

/// Removes a code fence around all of the text.
pub(crate) fn unfenced(text: &str) -> &str {
    let text = text.trim();
    let Some((fence, inner)) = text.split_once('\n') else { return text };
    let is_fence = fence.strip_prefix("```").is_some_and(|kind| kind.trim().chars().all(char::is_alphanumeric));
    if !is_fence {
        return text;
    }
    inner.strip_suffix("```").unwrap_or(inner).trim()
}

/// Finds code blocks and code in backticks. If the fences of a text do not pair up, it is unclear what is code, so
/// nothing in fences is; the same holds for the backticks of a line.
fn code(text: &str) -> Vec<Range<usize>> {
    let mut blocks = Vec::new();
    let mut spans = Vec::new();
    let mut open: Option<(usize, &str)> = None;
    let mut unclear = false;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        match (fence(line), open) {
            (Some((mark, "")), Some((begin, opening))) if mark.len() >= opening.len() => {
                blocks.push(begin..at + line.len());
                open = None;
            }
            (Some((mark, kind)), Some((_, opening))) => unclear |= !kind.is_empty() && mark.len() >= opening.len(),
            (Some((mark, _)), None) => open = Some((at, mark)),
            (None, _) => spans.extend(code_in(line).map(|span| at + span.start..at + span.end)),
        }
        at += line.len();
    }
    if unclear || open.is_some() {
        blocks.clear();
    }
    blocks.extend(spans);
    blocks.sort_by_key(|range| range.start);
    // A span inside a block would hide that the block goes on after it.
    blocks.dedup_by(|range, before| range.start < before.end);
    blocks
}

/// Returns the backticks at the beginning of a line, and what follows them.
fn fence(line: &str) -> Option<(&str, &str)> {
    let line = line.trim();
    let rest = line.trim_start_matches('`');
    let mark = &line[..line.len() - rest.len()];
    ((3..=MAX_RUN).contains(&mark.len()) && !rest.contains('`')).then_some((mark, rest.trim()))
}

/// Returns the parts of a line between two equal runs of backticks.
fn code_in(line: &str) -> impl Iterator<Item = Range<usize>> {
    let mut spans = Vec::new();
    let mut open: Option<Range<usize>> = None;
    let mut at = 0;
    while let Some(found) = line[at..].find('`') {
        let begin = at + found;
        let length = line[begin..].bytes().take_while(|byte| *byte == b'`').count();
        at = begin + length;
        match &open {
            Some(opening) if opening.len() == length => {
                spans.push(opening.start..at);
                open = None;
            }
            Some(_) => {}
            None => open = Some(begin..at),
        }
    }
    if open.is_some() {
        spans.clear();
    }
    spans.into_iter()
}

fn objects(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut search = Search::of(text);
    let mut at = 0;
    while let Some(next) = text[at..].find('{') {
        let begin = at + next;
        match search.end(text, begin, Style::Strict) {
            Some(end) => {
                found.push(begin..end);
                at = end;
            }
            None => at = begin + 1,
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markers_in_code_and_json_are_quoted() {
        for (text, quoted) in [
            ("a X b", false),
            ("a `X` b", true),
            ("a `` ` X `` b", true),
            ("a ` X b", false),
            ("a ` X\n` b", false),
            ("```\nX\n```", true),
            ("```rust\nX\n```\nafter", true),
            ("```\nX\n", false),
            ("```\nX\n```json\n{}\n```", false),
            ("```\ncode\n```\nX\n```\ncode\n```", false),
            ("```\ncode\n```\nX\n```\ncode", false),
            ("````\n```\nX\n```\n````", true),
            (r#"{"a": "X"}"#, true),
            (r#"{"a": [{"b": "\"X"}]} Y"#, true),
            (r#"{"a": "X"#, false),
            (r#"{ {"a": "X"}"#, true),
            ("say \"X\"", true),
            ("say \"X", false),
        ] {
            let at = text.find('X').unwrap();
            assert_eq!(Quoted::of(text).contains(&(at..at + 1)), quoted, "{text}");
        }
    }
}
