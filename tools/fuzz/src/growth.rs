//! Checks that the time of a decoder grows with the length of its input and no faster.

use std::{fmt, iter, time::Duration};

use rustix::time::{ClockId, clock_gettime};

use crate::targets::{TARGETS, Target};

/// Lengths in bytes that are compared.
const SHORT: usize = 16 * 1024;
const LONG: usize = 8 * SHORT;
/// An input of eight times the length may take 24 times as long, because caches get worse; quadratic time would be 64
/// times as long.
const ALLOWED: u32 = 24;
/// A text that seems to be too slow is measured this often again.
const AGAIN: usize = 4;
/// Less than this is within the error of the clock.
const ALWAYS: Duration = Duration::from_millis(20);

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

/// The time of one decoder for an input and for one of eight times its length.
#[derive(Clone, Debug)]
pub struct Growth {
    /// The decoder.
    pub target: &'static str,
    /// The repeated piece, and whether it stands in a document.
    pub what: String,
    /// Processor time for 16 KiB.
    pub short: Duration,
    /// Processor time for 128 KiB.
    pub long: Duration,
}

impl Growth {
    /// The time grows faster than the input.
    pub fn is_superlinear(&self) -> bool {
        self.long > self.short * ALLOWED + ALWAYS
    }
}

impl fmt::Display for Growth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        let Self { target, what, short, long } = self;
        write!(f, "  {target:<24}{:>10.2} ms{:>10.2} ms   {what}", ms(*short), ms(*long))
    }
}

/// The slowest inputs of every decoder, and all that grow faster than their length.
pub fn growth() -> Vec<Growth> {
    TARGETS.iter().flat_map(grows).collect()
}

/// The slowest input of a decoder, and all that grow faster than their length.
pub fn grows(target: &Target) -> Vec<Growth> {
    let mut found: Vec<Growth> = PIECES.iter().map(|piece| measure(target, piece, &[])).collect();
    for document in (target.corpus)().iter().take(4) {
        found.extend(PIECES.iter().map(|piece| measure(target, piece, document)));
    }
    let slowest = found.iter().map(|growth| growth.long).max().unwrap_or_default();
    found.retain(|growth| growth.is_superlinear() || growth.long == slowest);
    found
}

/// The pieces alone, or in the middle of a document.
fn measure(target: &Target, piece: &str, document: &[u8]) -> Growth {
    let position = if document.is_empty() { "alone" } else { "in a document" };
    let input = |bytes: usize| {
        let (head, tail) = document.split_at(document.len() / 2);
        [head, piece.repeat(bytes / piece.len()).as_bytes(), tail].concat()
    };
    let (short, long) = (input(SHORT), input(LONG));
    let measure = || Growth {
        target: target.name,
        what: format!("{piece:?} {position}"),
        short: fastest(target, &short),
        long: fastest(target, &long),
    };
    // A disturbance of the machine passes; a decoder that is too slow is so every time.
    let mut measurements = iter::repeat_with(measure).take(AGAIN);
    measurements.find(|growth| !growth.is_superlinear()).unwrap_or_else(measure)
}

/// The fastest of three runs: other load on the machine disturbs it least.
fn fastest(target: &Target, input: &[u8]) -> Duration {
    let mut decoder = (target.decoder)();
    let mut once = || {
        let began = processor_time();
        decoder(input);
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
