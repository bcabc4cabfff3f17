//! Damaged documents for decoders of what comes from outside, as a strategy of proptest. Included by path beside each
//! decoder; `PROPTEST_CASES` says how many documents are tried, and `./dev fuzz` tries many.

use std::{iter, time::Duration};

use proptest::{
    collection::vec,
    prelude::*,
    sample::{Index, select},
};
use rustix::time::{ClockId, clock_gettime};

/// Single bytes that decoders often get wrong.
const BYTES: &[u8] = b" \"\\{}[],:=\n'`#\x000a-";

/// The same of longer pieces.
const STRANGE: [&str; 30] = [
    "\r\n",
    "```json\n",
    "null",
    "true",
    "-1",
    "1e999",
    "0.1",
    "\\ud800",
    "\\u0000",
    "\u{feff}",
    "99999999999999999999",
    "-9223372036854775809",
    "\\x",
    "//",
    "/*",
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
    "{}",
];

/// One damage to a document: a piece of it is replaced.
#[derive(Clone, Debug)]
struct Damage {
    at: Index,
    /// Of the piece; it ends with the document.
    length: usize,
    by: Replacement,
}

#[derive(Clone, Debug)]
enum Replacement {
    Bytes(Vec<u8>),
    /// A piece of another document.
    Borrowed {
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
    let length = || prop_oneof![3 => 0..12_usize, 1 => 0..2_000_usize];
    let byte = prop_oneof![any::<u8>(), select(BYTES)].prop_map(|byte| Replacement::Bytes(vec![byte]));
    let strange = || select(STRANGE.as_slice()).prop_map(|text| Replacement::Bytes(text.into()));
    // Deeper than any limit on the nesting of a document.
    let nested = (select(["[", "{\"a\":", "(", "\"\\\""].as_slice()), 1..200_usize)
        .prop_map(|(open, levels)| Replacement::Bytes(open.repeat(levels).into_bytes()));
    let borrowed = (any::<Index>(), any::<Index>(), length()).prop_map(|(other, from, length)| Replacement::Borrowed {
        other,
        from,
        length,
    });
    let nothing = || Just(Replacement::Bytes(Vec::new()));
    let replaced = prop_oneof![
        2 => (length(), nothing()),
        1 => (Just(usize::MAX), nothing()),
        6 => (0..2_usize, byte),
        3 => (Just(0), strange()),
        1 => (length(), strange()),
        1 => (Just(0), nested),
        3 => (Just(0), borrowed),
    ];
    (any::<Index>(), replaced).prop_map(|(at, (length, by))| Damage { at, length, by })
}

impl Damage {
    fn apply(&self, out: &mut Vec<u8>, corpus: &[Vec<u8>]) {
        let piece = |at: &Index, length: usize, of: &[u8]| {
            let from = at.index(of.len() + 1);
            from..from.saturating_add(length).min(of.len())
        };
        let by = match &self.by {
            Replacement::Bytes(bytes) => bytes.clone(),
            Replacement::Borrowed { other, from, length } => {
                let other = other.get(corpus);
                other[piece(from, *length, other)].to_vec()
            }
        };
        drop(out.splice(piece(&self.at, self.length, out), by));
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
