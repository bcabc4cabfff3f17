//! Quotes a text around the place where it breaks.

use std::ops::Range;

use redial_proto::Language;

use crate::language::pick;

/// Longest text that is quoted as a whole, in characters.
const WHOLE: usize = 400;
/// Characters that are quoted of a longer text: at its start, before and after the place, and at its end.
const START: usize = 80;
const BEFORE: usize = 140;
const AFTER: usize = 60;
const END: usize = 50;
/// Angle brackets around a mark, if the text has fewer in a row.
const BRACKETS: usize = 3;

/// Quotes the text, with a mark at `at` (in bytes) and a mark instead of each part that is left out. Marks stand in
/// more angle brackets than the quoted text has anywhere in a row.
pub(crate) fn excerpt(text: &str, at: Option<usize>, language: Language) -> String {
    let at = at.map(|at| text.floor_char_boundary(at));
    let parts = parts(text, at);
    let brackets = parts.iter().map(|part| longest_run(&text[part.clone()])).max().unwrap_or_default() + 1;
    let brackets = brackets.max(BRACKETS);
    let mark = |words: &str| format!("{}{words}{}", "<".repeat(brackets), ">".repeat(brackets));
    let (mut quoted, mut end) = (String::new(), 0);
    for part in parts {
        let left_out = text[end..part.start].chars().count();
        if left_out > 0 {
            let words = format!("{left_out} characters left out");
            quoted.push_str(&mark(&pick(language, words, format!("省略 {left_out} 个字符"))));
        }
        match at.filter(|at| part.contains(at) || (*at == part.end && *at == text.len())) {
            Some(at) => {
                quoted.push_str(&text[part.start..at]);
                quoted.push_str(&mark("HERE"));
                quoted.push_str(&text[at..part.end]);
            }
            None => quoted.push_str(&text[part.clone()]),
        }
        end = part.end;
    }
    quoted
}

/// Returns what is quoted, in order and without overlaps. The last part ends with the text.
fn parts(text: &str, at: Option<usize>) -> Vec<Range<usize>> {
    if text.chars().nth(WHOLE).is_none() {
        return std::iter::once(0..text.len()).collect();
    }
    let around = at.map(|at| back(text, at, BEFORE)..forth(text, at, AFTER));
    let (start, end) = if around.is_some() { (START, END) } else { (START + BEFORE, END + AFTER) };
    let wanted = [Some(0..forth(text, 0, start)), around, Some(back(text, text.len(), end)..text.len())];
    let mut parts: Vec<Range<usize>> = Vec::new();
    for part in wanted.into_iter().flatten() {
        match parts.last_mut() {
            Some(last) if part.start <= last.end => last.end = last.end.max(part.end),
            _ => parts.push(part),
        }
    }
    parts
}

/// Goes so many characters back from `from`.
fn back(text: &str, from: usize, characters: usize) -> usize {
    text[..from].char_indices().rev().take(characters).last().map_or(from, |(at, _)| at)
}

/// Goes so many characters on from `from`.
fn forth(text: &str, from: usize, characters: usize) -> usize {
    text[from..].char_indices().nth(characters).map_or(text.len(), |(at, _)| from + at)
}

/// Counts the most angle brackets of one kind in a row.
fn longest_run(text: &str) -> usize {
    let (mut longest, mut run, mut last) = (0, 0, ' ');
    for c in text.chars() {
        run = match c {
            '<' | '>' if c == last => run + 1,
            '<' | '>' => 1,
            _ => 0,
        };
        last = c;
        longest = longest.max(run);
    }
    longest
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_short_text_is_quoted_as_a_whole() {
        let quoted = |text, at| excerpt(text, at, Language::En);
        assert_eq!(quoted("{\"a\": 1", Some(7)), "{\"a\": 1<<<HERE>>>");
        assert_eq!(quoted("{a b}", Some(3)), "{a <<<HERE>>>b}");
        assert_eq!(quoted("北京", Some(4)), "北<<<HERE>>>京");
        assert_eq!(quoted("", Some(9)), "<<<HERE>>>");
        assert_eq!(quoted("words", None), "words");
    }

    #[test]
    fn a_mark_is_not_confused_with_the_text() {
        assert_eq!(excerpt("<<<HERE>>> x", Some(11), Language::En), "<<<HERE>>> <<<<HERE>>>>x");
    }

    #[test]
    fn a_long_text_is_cut_around_the_place() {
        let text = format!("{{\"a\": \"{}\", oops, \"b\": \"{}\"}}", "x".repeat(5_000), "y".repeat(3_000));
        let at = text.find("oops");
        insta::assert_snapshot!(excerpt(&text, at, Language::En));
        insta::assert_snapshot!(excerpt(&text, None, Language::Zh));
    }

    proptest! {
        #[test]
        fn every_quotation_is_short_and_holds_the_place(text in "[a<>北\n]{0,900}", at in 0..3000_usize) {
            let quoted = excerpt(&text, Some(at), Language::En);
            prop_assert_eq!(quoted.matches("HERE").count(), 1);
            // Without marks of the length that stands around HERE, only text is left.
            let here = quoted.find("HERE").unwrap();
            prop_assert!(quoted[..here].ends_with("<<<") && quoted[here + 4..].starts_with(">>>"));
            prop_assert!(text.chars().count() <= 400 || quoted.chars().filter(|c| "a北\n".contains(*c)).count() <= 400);
        }
    }
}
