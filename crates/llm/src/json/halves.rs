//! Lone halves of surrogate pairs, such as `"\ud83d"`: JSON allows to write them, but no text contains them. A
//! provider that cuts a text between UTF-16 units sends one half in an event and the other half in the next.

use std::borrow::Cow;

use serde_json::Value;

/// Begins a half that was put aside; the three characters after it are its digits. Both are characters that Unicode
/// reserves for the use inside a program.
const MARK: char = '\u{fdef}';
/// The digit 0; the other 15 follow it.
const ZERO: u32 = 0xfdd0;
/// The character for a half without the other one.
const LOST: char = '\u{fffd}';

/// Puts U+FFFD in place of each lone half in the JSON text.
pub(crate) fn replaced(json: &str) -> Cow<'_, str> {
    with(json, |_, text| text.push(LOST))
}

/// Puts a mark in place of each lone half in the JSON text, which [`join`] understands.
pub(crate) fn marked(json: &str) -> Cow<'_, str> {
    with(json, |half, text| {
        text.push(MARK);
        let digits = [half >> 8 & 0xf, half >> 4 & 0xf, half & 0xf];
        text.extend(digits.into_iter().filter_map(|digit| char::from_u32(ZERO + u32::from(digit))));
    })
}

/// Puts a character in place of two marks that belong together, and U+FFFD in place of any other mark.
pub(crate) fn join(text: String) -> String {
    if !text.contains(MARK) {
        return text;
    }
    let mut joined = String::with_capacity(text.len());
    let mut first: Option<u16> = None;
    let mut rest = text.as_str();
    while let Some(c) = rest.chars().next() {
        let half = mark_at(rest);
        rest = &rest[half.map_or(c.len_utf8(), |(_, length)| length)..];
        let pair = first.take().zip(half.map(|(half, _)| half));
        let character = pair.and_then(|(first, second)| char::decode_utf16([first, second]).next()?.ok());
        if let Some(character) = character {
            joined.pop();
            joined.push(character);
            continue;
        }
        first = half.map(|(half, _)| half);
        joined.push(if half.is_some() { LOST } else { c });
    }
    joined
}

/// Applies [`join`] to every text in the value.
pub(crate) fn join_all(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(join(text)),
        Value::Array(items) => items.into_iter().map(join_all).collect(),
        Value::Object(object) => object.into_iter().map(|(key, value)| (join(key), join_all(value))).collect(),
        other => other,
    }
}

/// Returns the half that a mark at the beginning of the text stands for, and the mark's length.
fn mark_at(text: &str) -> Option<(u16, usize)> {
    let digits: Vec<char> = text.strip_prefix(MARK)?.chars().take(3).collect();
    let value = digits.iter().try_fold(0_u32, |value, digit| {
        let digit = u32::from(*digit).checked_sub(ZERO).filter(|digit| *digit < 16)?;
        Some(value * 16 + digit)
    })?;
    let half = u16::try_from(0xd800 + value).ok().filter(|_| digits.len() == 3)?;
    Some((half, MARK.len_utf8() + digits.iter().map(|digit| digit.len_utf8()).sum::<usize>()))
}

/// Copies the JSON text and calls `lone` for each lone half, with its number from 0 to 0x7ff. Borrowed if there is
/// none.
fn with(json: &str, lone: impl Fn(u16, &mut String)) -> Cow<'_, str> {
    let mut copy = String::new();
    let (mut at, mut copied) = (0, 0);
    while let Some(found) = json[at..].find('\\') {
        at += found;
        let Some(unit) = escape(&json[at..]) else {
            // Another escape, whose second character may be a backslash; it is never the end of the text in valid JSON.
            at += 1 + json[at + 1..].chars().next().map_or(0, char::len_utf8);
            continue;
        };
        let pair = escape(&json[at + 6..]).map(|second| [unit, second]);
        if pair.is_some_and(|pair| char::decode_utf16(pair).next().is_some_and(|c| c.is_ok_and(|c| c > '\u{ffff}'))) {
            at += 12;
            continue;
        }
        if (0xd800..=0xdfff).contains(&unit) {
            copy.push_str(&json[copied..at]);
            lone(unit - 0xd800, &mut copy);
            copied = at + 6;
        }
        at += 6;
    }
    if copied == 0 {
        return Cow::Borrowed(json);
    }
    copy.push_str(&json[copied..]);
    Cow::Owned(copy)
}

/// Reads the number of an escape such as `\ud83d` at the beginning of the text.
fn escape(text: &str) -> Option<u16> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    digits.bytes().all(|byte| byte.is_ascii_hexdigit()).then(|| u16::from_str_radix(digits, 16).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lone_halves_are_replaced_and_pairs_stay() {
        for (json, shown) in [
            (r#""a\ud83d""#, "\"a\u{fffd}\""),
            (r#""\ude00b""#, "\"\u{fffd}b\""),
            (r#""\ud83d\ud83d\ude00""#, "\"\u{fffd}\\ud83d\\ude00\""),
            (r#""\ud83d\n""#, "\"\u{fffd}\\n\""),
            (r#""\\ud83d""#, r#""\\ud83d""#),
            (r#""\\\ud83d""#, "\"\\\\\u{fffd}\""),
            (r#""\uD83D\uDE00 \u00e9""#, r#""\uD83D\uDE00 \u00e9""#),
            ("\\", "\\"),
            ("\\u12", "\\u12"),
        ] {
            assert_eq!(replaced(json), shown, "{json}");
        }
    }

    /// Writes a JSON string with an escape for each unit.
    fn json(units: &[u16]) -> String {
        let escapes: Vec<_> = units.iter().map(|unit| format!("\\u{unit:04x}")).collect();
        format!("\"{}\"", escapes.concat())
    }

    proptest! {
        /// Text cut between UTF-16 units and put together again is the text.
        #[test]
        fn halves_find_each_other(text in "\\PC{0,12}", cut in 0_usize..20) {
            let units: Vec<u16> = text.encode_utf16().collect();
            let (left, right) = units.split_at(cut.min(units.len()));
            let read = |units: &[u16]| serde_json::from_str::<String>(&marked(&json(units))).unwrap();
            prop_assert_eq!(join(read(left) + &read(right)), text);
        }

        #[test]
        fn any_halves_are_readable(units in proptest::collection::vec(0xd7f0_u16..0xe010, 0..10)) {
            let json = json(&units);
            let wanted = String::from_utf16_lossy(&units);
            prop_assert_eq!(&serde_json::from_str::<String>(&replaced(&json)).unwrap(), &wanted);
            prop_assert_eq!(join(serde_json::from_str::<String>(&marked(&json)).unwrap()), wanted);
        }
    }
}
