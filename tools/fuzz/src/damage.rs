//! Damages documents.

use crate::random::Random;

/// Pieces that decoders stumble over.
const STRANGE: [&str; 44] = [
    "\"",
    "\\",
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "=",
    "\n",
    "\r\n",
    "'",
    "`",
    "```json\n",
    "null",
    "true",
    "-1",
    "1e999",
    "0.1",
    "\\ud800",
    "\\u0000",
    "\u{0}",
    "\u{feff}",
    "99999999999999999999",
    "-9223372036854775809",
    "\\",
    "\\x",
    "//",
    "/*",
    "#",
    "“",
    "：",
    "好",
    "😀",
    "\u{202e}",
    "data: ",
    "\n\n",
    "event: ",
    "Action:",
    "Action Input:",
    "Answer:",
    "Observation:",
    "{{arguments.a}}",
    "**",
];
/// Longer than any limit on the nesting of a document.
const DEEP: usize = 200;

/// Fills `out` with a damaged document; `others` lend pieces.
pub(crate) fn damage(random: &mut Random, document: &[u8], others: &[Vec<u8>], out: &mut Vec<u8>) {
    out.clear();
    if random.below(24) == 0 {
        let length = random.below(200);
        out.extend((0..length).map(|_| random.byte()));
        return;
    }
    out.extend_from_slice(document);
    for _ in 0..random.below(6) {
        one(random, others, out);
    }
}

fn one(random: &mut Random, others: &[Vec<u8>], out: &mut Vec<u8>) {
    let (from, to) = piece(random, out.len());
    let at = random.below(out.len() + 1);
    match random.below(16) {
        0 | 1 => drop(out.drain(from..to)),
        2 => {
            let copy = out[from..to].to_vec();
            out.splice(at..at, copy);
        }
        3 => out.truncate(at),
        4..=6 => replace(random, out, at),
        7..=10 => insert(out, at, STRANGE[random.below(STRANGE.len())].as_bytes()),
        11 => {
            let strange = STRANGE[random.below(STRANGE.len())].as_bytes().to_vec();
            out.splice(from..to, strange);
        }
        12 => flip(random, out, at),
        13 => nest(random, out, at),
        _ => {
            let other = &others[random.below(others.len())];
            let (from, to) = piece(random, other.len());
            insert(out, at, &other[from..to]);
        }
    }
}

/// Mostly a short one, so that something is left.
fn piece(random: &mut Random, length: usize) -> (usize, usize) {
    let longest = if random.below(4) == 0 { length } else { 12 };
    let from = random.below(length + 1);
    (from, (from + random.below(longest + 1)).min(length))
}

fn insert(out: &mut Vec<u8>, at: usize, what: &[u8]) {
    out.splice(at..at, what.iter().copied());
}

fn replace(random: &mut Random, out: &mut [u8], at: usize) {
    if let Some(byte) = out.get_mut(at) {
        *byte = if random.below(2) == 0 { random.byte() } else { b" \"\\{}[],:0a-"[random.below(12)] };
    }
}

fn flip(random: &mut Random, out: &mut [u8], at: usize) {
    if let Some(byte) = out.get_mut(at) {
        *byte ^= 1 << random.below(8);
    }
}

fn nest(random: &mut Random, out: &mut Vec<u8>, at: usize) {
    let open = [&b"["[..], b"{\"a\":", b"(", b"\"\\\""][random.below(4)];
    let deep = open.repeat(1 + random.below(DEEP));
    insert(out, at, &deep);
}
