//! Limits on external data. All sizes are bytes of UTF-8 JSON.

use std::ops::RangeInclusive;

use chrono::{DateTime, Datelike as _, Utc};

/// Arguments of one call, and the output of one attempt, unless a dispatcher is set to less.
pub const MAX_PAYLOAD: usize = 16 * 1024 * 1024;
/// What a dispatcher may be set to instead.
pub const PAYLOADS: RangeInclusive<usize> = 64 * 1024..=MAX_PAYLOAD;
/// Arguments that an answer to a claim carries. Larger ones are fetched apart.
pub const MAX_INLINE: usize = 256 * 1024;
/// A body that travels in pieces: the record of a call with the largest arguments and output, and what is around them.
pub const MAX_BODY: usize = 2 * MAX_PAYLOAD + 8 * 1024 * 1024;
/// One piece of a body. As a JSON string in a message it takes less than twice as much.
pub const MAX_PIECE: usize = 400 * 1024;
/// Pieces of one body: on average they have 64 KiB at least.
pub const MAX_PIECES: u32 = 640;
/// What a model answers in one turn.
pub const MAX_REPLY: usize = 512 * 1024;
/// One NATS message that Redial sends. nats-server's own default `max_payload` is 1 MiB, headers included.
pub const MAX_MESSAGE: usize = 1000 * 1024;
/// Calls in one submission batch.
pub const MAX_BATCH: usize = 1000;
/// Jobs in one claim, or reports in one message.
pub const MAX_CLAIM: usize = 256;
/// Jobs in one pack: a message of less than 8 KiB.
pub const MAX_PACK: usize = 64;
/// Calls that a worker says it can run at once, in one pool or in all: ten times what a worker may be set to, because each model and
/// each pool has its own.
pub const MAX_SLOTS: u32 = 1_000_000;
/// The text of a task: about a million tokens.
pub const MAX_INPUT: usize = 4 * 1024 * 1024;
/// Nesting of arrays and objects, in arguments and outputs. Deeper text could overflow the stack of a reader.
pub const MAX_DEPTH: usize = 64;
/// An idempotency key or conversation id.
pub const MAX_KEY: usize = 200;
/// Entries of the metadata of a task.
pub const MAX_METADATA: usize = 16;
/// Characters of a key of the metadata.
pub const MAX_METADATA_KEY: usize = 64;
/// Characters of a value of the metadata.
pub const MAX_METADATA_VALUE: usize = 512;
/// Values in the arguments of a call, as [`json_values`] counts them: each may take 200 bytes of memory while they are checked.
pub const MAX_VALUES: usize = 500_000;
/// Message of an error that is stored and shown.
pub const MAX_ERROR_MESSAGE: usize = 4096;
/// Details of an error that are stored and shown.
pub const MAX_DETAILS: usize = 100;

/// The years that a time in a question may be in. The database and the libraries reach further, but not equally far.
pub const YEARS: RangeInclusive<i32> = 1970..=9999;

/// Checks a time that a user chose. The error says what is allowed.
pub fn check_time(name: &str, time: Option<DateTime<Utc>>) -> Result<(), String> {
    match time.map(|time| time.year()) {
        Some(year) if !YEARS.contains(&year) => {
            Err(format!("{name} is in the year {year}; allowed: {} to {}", YEARS.start(), YEARS.end()))
        }
        _ => Ok(()),
    }
}

/// How many of these sizes, up to `most`, are together at most so many bytes; at least one.
pub fn fitting(sizes: impl Iterator<Item = usize>, most: usize, bytes: usize) -> usize {
    let mut sum = 0_usize;
    let fits = |size: &usize| {
        sum = sum.saturating_add(*size);
        sum <= bytes
    };
    sizes.take(most).take_while(fits).count().max(1)
}

/// How deep valid JSON nests. Takes linear time and a constant amount of stack.
pub fn json_depth(json: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0_usize);
    for byte in structure(json) {
        match byte {
            b'[' | b'{' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// About how many values valid JSON holds, and not fewer: one, one more for each comma, and one for each object and array.
pub fn json_values(json: &str) -> usize {
    1 + structure(json).filter(|byte| matches!(byte, b',' | b'[' | b'{')).count()
}

/// The bytes of JSON outside of its strings.
fn structure(json: &str) -> impl Iterator<Item = u8> {
    let (mut in_string, mut escaped) = (false, false);
    json.bytes().filter(move |byte| {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            _ => return !in_string,
        }
        false
    })
}

/// The start of a text, at most `max` bytes, cut between characters; marks the cut.
pub fn shorten(text: &str, max: usize) -> String {
    if text.len() <= max {
        return text.to_owned();
    }
    let mark = "… (cut)";
    let end = text.floor_char_boundary(max.saturating_sub(mark.len()));
    format!("{}{mark}", &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_ignores_brackets_in_strings() {
        assert_eq!(json_depth("1"), 0);
        assert_eq!(json_depth(r#"{"a":[1,{"b":"[[[\"{{"}]}"#), 3);
        assert_eq!(json_depth(&"[".repeat(100_000)), 100_000);
    }

    #[test]
    fn values_are_counted_outside_of_strings() {
        let count = |json| json_values(json);
        assert_eq!((count("1"), count("[]"), count("[1,2]"), count(r#"{"a":[1,",[{\",["]}"#)), (1, 2, 3, 4));
    }

    #[test]
    fn shorten_cuts_between_characters() {
        assert_eq!(shorten("short", 10), "short");
        let cut = shorten(&"好".repeat(100), 50);
        assert!(cut.len() <= 50 && cut.ends_with("(cut)"), "{cut}");
    }
}
