//! Keys that an error shows in part.

use std::ops::Range;

/// Most bytes of a secret that are compared with the text beside a mask.
const MAX_PART: usize = 64;
/// Most masks of a text beside which parts are looked for: no error of a service has as many.
const MAX_MASKS: usize = 1000;
/// At least this many bytes of a secret beside a mask are a part of it.
const MIN_PART: usize = 4;
/// At least this many bytes of the beginning of a secret are a part of it, without a mask.
const MIN_START: usize = 12;

/// Removes parts of secrets from a text: beside a mask, as in `sk-abc***1234`, or the beginning of one.
pub(crate) fn without_parts<'a>(text: &str, secrets: impl Iterator<Item = &'a str>, mark: &str) -> String {
    let mut found = Vec::new();
    let masks: Vec<Range<usize>> = masks(text).take(MAX_MASKS).collect();
    for secret in secrets {
        found.extend(masks.iter().filter_map(|mask| part(text, mask, secret)));
        if let Some(start) = secret.get(..MIN_START).filter(|_| secret.len() > MIN_START) {
            found.extend(text.match_indices(start).map(|(at, _)| {
                let same = text[at..].chars().zip(secret.chars()).take_while(|(one, other)| one == other);
                at..at + same.map(|(c, _)| c.len_utf8()).sum::<usize>()
            }));
        }
    }
    found.sort_by_key(|range| range.start);
    replaced(text, found, mark)
}

/// Finds the runs that stand for the hidden part of a key.
fn masks(text: &str) -> impl Iterator<Item = Range<usize>> {
    let mut characters = text.char_indices().peekable();
    std::iter::from_fn(move || {
        loop {
            let (begin, c) = characters.next()?;
            let (mut end, mut count) = (begin + c.len_utf8(), 1);
            while let Some((at, same)) = characters.next_if(|(_, next)| *next == c) {
                (end, count) = (at + same.len_utf8(), count + 1);
            }
            let needed = match c {
                '…' => 1,
                '*' | '•' | '·' | '█' => 2,
                '.' => 3,
                'x' | 'X' => 4,
                _ => continue,
            };
            if count >= needed {
                return Some(begin..end);
            }
        }
    })
}

/// Extends the mask over the parts of the secret on both sides; `None` if these have too few bytes together.
fn part(text: &str, mask: &Range<usize>, secret: &str) -> Option<Range<usize>> {
    let (before, after) = (&text[..mask.start], &text[mask.end..]);
    let longest = secret.len().min(MAX_PART);
    let left = (1..=longest).rev().find(|length| secret.get(..*length).is_some_and(|part| before.ends_with(part)));
    let ends = |length: usize| secret.get(secret.len() - length..).is_some_and(|part| after.starts_with(part));
    let right = (1..=longest).rev().find(|length| ends(*length));
    let (left, right) = (left.unwrap_or_default(), right.unwrap_or_default());
    (left + right >= MIN_PART).then(|| mask.start - left..mask.end + right)
}

/// Puts `mark` in place of each range. Ranges are in the order of their beginnings and may overlap.
pub(crate) fn replaced(text: &str, ranges: Vec<Range<usize>>, mark: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut at = 0;
    for range in ranges {
        if range.start >= at {
            shown.push_str(&text[at..range.start]);
            shown.push_str(mark);
        }
        at = at.max(range.end);
    }
    shown.push_str(&text[at..]);
    shown
}
