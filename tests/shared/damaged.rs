//! Damaged documents for decoders of what comes from outside, as a strategy of proptest. Included by path beside each
//! decoder; `PROPTEST_CASES` says how many documents are tried, and `./dev fuzz` tries many.

use std::{iter, time::Duration};

use proptest::{collection::vec, prelude::*, sample::Index};
use rustix::time::{ClockId, clock_gettime};

/// Pieces that decoders often get wrong.
const STRANGE: [&str; 43] = [
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

/// One damage to a document.
#[derive(Clone, Debug)]
enum Damage {
    Remove {
        at: Index,
        length: usize,
    },
    Repeat {
        at: Index,
        length: usize,
        to: Index,
    },
    CutOff {
        at: Index,
    },
    Replace {
        at: Index,
        byte: u8,
    },
    Flip {
        at: Index,
        bit: u8,
    },
    Insert {
        at: Index,
        length: usize,
        what: &'static str,
    },
    /// Deeper than any limit on the nesting of a document.
    Nest {
        at: Index,
        open: &'static str,
        levels: usize,
    },
    /// A piece of another document.
    Borrow {
        at: Index,
        other: Index,
        from: Index,
        length: usize,
    },
}

/// A document of the corpus with up to five damages, or now and then random bytes.
pub(crate) fn damaged<T: AsRef<[u8]>>(corpus: impl IntoIterator<Item = T>) -> impl Strategy<Value = Vec<u8>> {
    let corpus: Vec<Vec<u8>> = corpus.into_iter().map(|document| document.as_ref().to_vec()).collect();
    let of_corpus = (any::<Index>(), vec(damage(), 0..6)).prop_map(move |(nth, damages)| {
        let mut document = nth.get(&corpus).clone();
        for damage in damages {
            damage.apply(&mut document, &corpus);
        }
        document
    });
    prop_oneof![24 => of_corpus, 1 => vec(any::<u8>(), 0..200)]
}

/// Mostly of a short piece, so that something is left.
fn damage() -> impl Strategy<Value = Damage> {
    let at = any::<Index>;
    let length = || prop_oneof![3 => 0..12_usize, 1 => 0..2_000_usize];
    let byte = prop_oneof![any::<u8>(), proptest::sample::select(b" \"\\{}[],:0a-".as_slice())];
    let strange = || proptest::sample::select(STRANGE.as_slice());
    let open = proptest::sample::select(["[", "{\"a\":", "(", "\"\\\""].as_slice());
    prop_oneof![
        2 => (at(), length()).prop_map(|(at, length)| Damage::Remove { at, length }),
        1 => (at(), length(), at()).prop_map(|(at, length, to)| Damage::Repeat { at, length, to }),
        1 => at().prop_map(|at| Damage::CutOff { at }),
        3 => (at(), byte).prop_map(|(at, byte)| Damage::Replace { at, byte }),
        1 => (at(), 0..8_u8).prop_map(|(at, bit)| Damage::Flip { at, bit }),
        4 => (at(), strange()).prop_map(|(at, what)| Damage::Insert { at, length: 0, what }),
        1 => (at(), length(), strange()).prop_map(|(at, length, what)| Damage::Insert { at, length, what }),
        1 => (at(), open, 1..200_usize).prop_map(|(at, open, levels)| Damage::Nest { at, open, levels }),
        2 => (at(), at(), at(), length())
            .prop_map(|(at, other, from, length)| Damage::Borrow { at, other, from, length }),
    ]
}

impl Damage {
    fn apply(&self, out: &mut Vec<u8>, corpus: &[Vec<u8>]) {
        let place = |at: &Index, in_: &[u8]| at.index(in_.len() + 1);
        let piece = |at: &Index, length: usize, of: &[u8]| {
            let from = place(at, of);
            from..(from + length).min(of.len())
        };
        match self {
            Self::Remove { at, length } => drop(out.drain(piece(at, *length, out))),
            Self::Repeat { at, length, to } => {
                let (copy, to) = (out[piece(at, *length, out)].to_vec(), place(to, out));
                out.splice(to..to, copy);
            }
            Self::CutOff { at } => out.truncate(place(at, out)),
            Self::Replace { .. } | Self::Flip { .. } if out.is_empty() => {}
            Self::Replace { at, byte } => *at.get_mut(out) = *byte,
            Self::Flip { at, bit } => *at.get_mut(out) ^= 1 << bit,
            Self::Insert { at, length, what } => drop(out.splice(piece(at, *length, out), what.bytes())),
            Self::Nest { at, open, levels } => {
                let at = place(at, out);
                out.splice(at..at, open.repeat(*levels).into_bytes());
            }
            Self::Borrow { at, other, from, length } => {
                let (other, at) = (other.get(corpus), place(at, out));
                out.splice(at..at, other[piece(from, *length, other)].to_vec());
            }
        }
    }
}

/// Pieces of which many are costly for some decoder.
const PIECES: [&str; 28] = [
    "[",
    "{\"a\":",
    "{\"a\":[",
    "\"",
    "\\",
    "\\\\\"",
    "(",
    " ",
    "\n",
    ",",
    "a",
    "\"a\",",
    "\"a\":1,",
    "{}",
    "'",
    "`",
    "```json\n{",
    "//",
    "/*",
    "Action: a\nAction Input: {\n",
    "Thought:\n",
    "Action Input ",
    "*_#> -`",
    "data: {}\n\n",
    "data: x\n",
    "[a]\n",
    "a.",
    "好",
];
/// Lengths in bytes that are compared.
const SHORT: usize = 16 * 1024;
const LONG: usize = 8 * SHORT;
/// An input of eight times the length may take 24 times the processor time, because caches get worse; quadratic time would
/// be 64 times as long.
const ALLOWED: u32 = 24;
/// Less than this is within the error of the clock.
const ALWAYS: Duration = Duration::from_millis(20);

/// Fails if the processor time of a decoder grows faster than its input. A disturbance of the machine passes; a decoder
/// that is too slow is so every time.
pub(crate) fn assert_linear(mut decode: impl FnMut(&[u8]) -> bool) {
    for piece in PIECES {
        let [short, long] = [SHORT, LONG].map(|bytes| piece.repeat(bytes / piece.len()));
        let mut measure = || (fastest(&mut decode, &short), fastest(&mut decode, &long));
        let mut measured = iter::repeat_with(&mut measure).take(5);
        let is_linear = measured.any(|(short, long)| long <= short * ALLOWED + ALWAYS);
        assert!(is_linear, "{piece:?}, many times: (16 KiB, 128 KiB) took {:?}", measure());
    }
}

/// The fastest of three runs: other load on the machine disturbs it least.
fn fastest(decode: &mut impl FnMut(&[u8]) -> bool, input: &str) -> Duration {
    let mut once = || {
        let began = processor_time();
        decode(input.as_bytes());
        processor_time().saturating_sub(began)
    };
    let first = once();
    if first < ALWAYS / 4 { first } else { first.min(once()).min(once()) }
}

/// Processor time of this thread.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let (seconds, nanos) = (u64::try_from(time.tv_sec), u32::try_from(time.tv_nsec));
    Duration::new(seconds.unwrap_or(0), nanos.unwrap_or(0))
}
