//! How much a message takes.

use std::io;

use redial_proto::Message;

/// What a provider adds to each message: its role and separators. Measured counts are 3 to 7.
const TOKENS_PER_MESSAGE: usize = 8;
/// What a provider adds to each call: its form and its id.
const TOKENS_PER_CALL: usize = 24;

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
        let mut others = 0;
        let texts = [Some(&message.content), message.thought.as_ref(), message.call_id.as_ref(), message.tool.as_ref()];
        let mut spoken: usize = texts.into_iter().flatten().map(|text| tokens(text)).sum();
        for call in &message.calls {
            spoken += tokens(&call.tool) + tokens(&call.arguments);
            others += TOKENS_PER_CALL;
        }
        if let Some(provider) = &message.provider {
            others += json_length(provider) / 3;
        }
        Self { tokens: TOKENS_PER_MESSAGE + spoken + others, bytes: json_length(message) + 1 }
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

/// About 1 for a CJK character, 2 for an emoji or another rare character, and 1 for each 3.5 bytes of anything else.
fn tokens(text: &str) -> usize {
    let (mut whole, mut bytes) = (0, 0);
    for c in text.chars() {
        match u32::from(c) {
            0x1_0000.. => whole += 2,
            0x2e80.. => whole += 1,
            _ => bytes += c.len_utf8(),
        }
    }
    whole + (bytes * 2).div_ceil(7)
}

/// Bytes of a value's JSON.
pub(super) fn json_length(value: &impl serde::Serialize) -> usize {
    let mut counter = Counter(0);
    // The counter takes everything, and messages have text keys only: this cannot fail.
    let _ = serde_json::to_writer(&mut counter, value);
    counter.0
}

/// Counts what is written.
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

#[cfg(test)]
mod tests {
    use redial_proto::Role;

    use super::*;

    #[test]
    fn tokens_are_estimated_by_script() {
        for (text, estimate) in [("", 0), ("a", 1), ("seven b", 2), ("明天去北京", 5), ("明天 ok", 3), ("👍", 2)]
        {
            assert_eq!(tokens(text), estimate, "{text}");
        }
    }

    #[test]
    fn bytes_are_those_of_the_json() {
        let messages = [Message::text(Role::User, "a \"quoted\"\n text"), Message::text(Role::Assistant, "好")];
        let sum: usize = messages.iter().map(|message| Size::of(message).bytes).sum();
        assert_eq!(serde_json::to_string(&messages).unwrap().len(), sum + 1);
    }
}
