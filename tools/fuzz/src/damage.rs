//! Damages documents.

use redial_simulation::Random;

/// Pieces that decoders often get wrong.
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
    if below(random, 24) == 0 {
        let length = below(random, 200);
        out.extend((0..length).map(|_| random_byte(random)));
        return;
    }
    out.extend_from_slice(document);
    for _ in 0..below(random, 6) {
        one(random, others, out);
    }
}

fn one(random: &mut Random, others: &[Vec<u8>], out: &mut Vec<u8>) {
    let (from, to) = piece(random, out.len());
    let at = below(random, out.len() + 1);
    match below(random, 16) {
        0 | 1 => drop(out.drain(from..to)),
        2 => {
            let copy = out[from..to].to_vec();
            out.splice(at..at, copy);
        }
        3 => out.truncate(at),
        4..=6 => replace(random, out, at),
        7..=10 => insert(out, at, STRANGE[below(random, STRANGE.len())].as_bytes()),
        11 => {
            let strange = STRANGE[below(random, STRANGE.len())].as_bytes().to_vec();
            out.splice(from..to, strange);
        }
        12 => flip(random, out, at),
        13 => nest(random, out, at),
        _ => {
            let other = &others[below(random, others.len())];
            let (from, to) = piece(random, other.len());
            insert(out, at, &other[from..to]);
        }
    }
}

/// Mostly a short one, so that something is left.
fn piece(random: &mut Random, length: usize) -> (usize, usize) {
    let longest = if below(random, 4) == 0 { length } else { 12 };
    let from = below(random, length + 1);
    (from, (from + below(random, longest + 1)).min(length))
}

fn insert(out: &mut Vec<u8>, at: usize, what: &[u8]) {
    out.splice(at..at, what.iter().copied());
}

fn replace(random: &mut Random, out: &mut [u8], at: usize) {
    if let Some(byte) = out.get_mut(at) {
        *byte = if below(random, 2) == 0 { random_byte(random) } else { b" \"\\{}[],:0a-"[below(random, 12)] };
    }
}

fn flip(random: &mut Random, out: &mut [u8], at: usize) {
    if let Some(byte) = out.get_mut(at) {
        *byte ^= 1 << below(random, 8);
    }
}

fn nest(random: &mut Random, out: &mut Vec<u8>, at: usize) {
    let open = [&b"["[..], b"{\"a\":", b"(", b"\"\\\""][below(random, 4)];
    let deep = open.repeat(1 + below(random, DEEP));
    insert(out, at, &deep);
}

/// A number below `limit`, which is at least 1.
pub(crate) fn below(random: &mut Random, limit: usize) -> usize {
    random.below(u32::try_from(limit).unwrap_or(u32::MAX)) as usize
}

fn random_byte(random: &mut Random) -> u8 {
    random.next().to_be_bytes()[0]
}
