//! Prints a model's message while the model writes it.

use redial_proto::{Delta, Message};

use crate::{
    output,
    timeline::{Ink, Page, Printed, Wrap},
};

/// A message that a model is writing. Pieces may get lost, so the whole message, once it is on record, is compared with
/// what was printed.
pub(super) struct LiveMessage {
    page: Page,
    thought: Progress,
    text: Progress,
    open: Option<(Part, Wrap)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Thought,
    Text,
}

/// What of one part was printed, and the whitespace after it that is printed only if more follows.
#[derive(Default)]
struct Progress {
    printed: String,
    blank: String,
}

impl LiveMessage {
    pub(super) fn new(page: Page) -> Self {
        Self { page, thought: Progress::default(), text: Progress::default(), open: None }
    }

    /// Takes one more piece; returns what to print.
    pub(super) fn push(&mut self, delta: &Delta) -> String {
        self.write(Part::Thought, &delta.thought) + &self.write(Part::Text, &delta.text)
    }

    /// Ends the message; returns what to print. A part whose start was printed is completed; a part that differs from what
    /// was printed is left to be printed whole.
    pub(super) fn close(mut self, message: Option<&Message>) -> (String, Printed) {
        let mut out = String::new();
        let mut printed = Printed::default();
        if let Some(message) = message {
            let thought = message.thought.as_deref().unwrap_or_default();
            printed.thought = self.complete(Part::Thought, thought, &mut out);
            printed.text = self.complete(Part::Text, &message.content, &mut out);
        }
        out.push_str(&self.end_part());
        (out, printed)
    }

    fn complete(&mut self, part: Part, whole: &str, out: &mut String) -> bool {
        let progress = self.progress(part);
        let Some(rest) = whole.trim().strip_prefix(progress.printed.as_str()).map(str::to_owned) else { return false };
        if progress.printed.is_empty() {
            return false;
        }
        progress.blank.clear();
        let open = self.open.as_ref().is_some_and(|(open, _)| *open == part);
        if !rest.is_empty() && open {
            out.push_str(&self.write(part, &rest));
        }
        rest.is_empty() || open
    }

    fn write(&mut self, part: Part, piece: &str) -> String {
        let progress = self.progress(part);
        let piece = std::mem::take(&mut progress.blank) + piece;
        let piece = if progress.printed.is_empty() { piece.trim_start() } else { piece.as_str() };
        let kept = piece.trim_end();
        piece[kept.len()..].clone_into(&mut progress.blank);
        progress.printed.push_str(kept);
        if kept.is_empty() {
            return String::new();
        }
        let mut out = self.begin_part(part);
        if let Some((_, wrap)) = &mut self.open {
            out.push_str(&wrap.push(&output::plain(kept)));
        }
        out
    }

    fn begin_part(&mut self, part: Part) -> String {
        if self.open.as_ref().is_some_and(|(open, _)| *open == part) {
            return String::new();
        }
        let mut out = self.end_part();
        let (label, ink) = if part == Part::Thought { ("thinks", Ink::Dim) } else { ("says", Ink::Cyan) };
        let (start, wrap) = self.page.begin("", label, ink);
        out.push_str(&start);
        self.open = Some((part, wrap));
        out
    }

    fn end_part(&mut self) -> String {
        self.open.take().map(|(_, mut wrap)| wrap.finish() + "\n").unwrap_or_default()
    }

    fn progress(&mut self, part: Part) -> &mut Progress {
        match part {
            Part::Thought => &mut self.thought,
            Part::Text => &mut self.text,
        }
    }
}

#[cfg(test)]
mod tests {
    use redial_proto::Role;

    use super::*;

    /// Returns what is printed of these pieces of thought and text, and at the end of their turn.
    fn printed(pieces: &[(&str, &str)], message: Option<&Message>) -> (String, Printed) {
        let mut live = LiveMessage::new(Page::test(Some(60), false));
        let mut out = String::new();
        for (thought, text) in pieces {
            let (text, thought) = ((*text).to_owned(), (*thought).to_owned());
            out.push_str(&live.push(&Delta { turn: 1, text, thought, ..Delta::default() }));
        }
        let (rest, printed) = live.close(message);
        (out + &rest, printed)
    }

    fn message(thought: &str, text: &str) -> Message {
        Message { thought: Some(thought.to_owned()), ..Message::text(Role::Assistant, text) }
    }

    #[test]
    fn a_message_in_pieces_is_printed_once() {
        let pieces = [
            ("\nThe user wants ", ""),
            ("a flight.\n", ""),
            ("", "好的，"),
            ("", "我来预订明天从北京到上海的机票。 "),
            ("", "\n"),
        ];
        let whole = message("The user wants a flight.", "好的，我来预订明天从北京到上海的机票。");
        let (out, printed) = printed(&pieces, Some(&whole));
        insta::assert_snapshot!(out);
        assert_eq!(printed, Printed { thought: true, text: true });
    }

    #[test]
    fn a_lost_end_is_printed_when_the_turn_ends() {
        let (out, printed) = printed(&[("", "It is ")], Some(&message("", "It is sunny in Paris.")));
        assert_eq!(out.trim(), "says          It is sunny in Paris.");
        assert!(printed.text && !printed.thought);
    }

    #[test]
    fn a_part_that_differs_is_left_to_be_printed_whole() {
        for pieces in [vec![("", "is sunny")], vec![], vec![("It", "is")]] {
            let (out, printed) = printed(&pieces, Some(&message("It may rain", "It is sunny")));
            assert!(out.is_empty() || out.ends_with('\n'), "{out:?}");
            assert_eq!(printed, Printed::default(), "{pieces:?}");
        }
    }

    #[test]
    fn a_turn_without_a_message_ends_its_line() {
        let (out, printed) = printed(&[("", "\u{1b}[31mIt")], None);
        assert!(out.ends_with("\\u{1b}[31mIt\n"), "{out:?}");
        assert_eq!(printed, Printed::default());
    }
}
