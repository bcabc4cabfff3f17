//! How much a message takes.

use std::io;

use redial_proto::{Message, estimate};

/// The size of one message or of many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Size {
    /// Estimated, rather too many than too few.
    pub(super) tokens: usize,
    /// As JSON, with the comma that follows.
    pub(super) bytes: usize,
}

impl Size {
    pub(super) fn of(message: &Message) -> Self {
        Self { tokens: estimate::of_message(message), bytes: json_length(message) + 1 }
    }

    pub(super) fn add(&mut self, other: Self) {
        self.tokens += other.tokens;
        self.bytes += other.bytes;
    }

    pub(super) fn subtract(&mut self, other: Self) {
        self.tokens = self.tokens.saturating_sub(other.tokens);
        self.bytes = self.bytes.saturating_sub(other.bytes);
    }
}

/// Counts the bytes of a value's JSON.
pub(super) fn json_length(value: &impl serde::Serialize) -> usize {
    let mut counter = Counter(0);
    // The counter takes everything, and messages have text keys only: this cannot fail.
    let _ = serde_json::to_writer(&mut counter, value);
    counter.0
}

struct Counter(usize);

impl io::Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
