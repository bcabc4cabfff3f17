//! What a model says, while it says it.

use redial_proto::{Delta, Message};

use crate::{
    commands::story::{Ink, Page, Seen, Wrap},
    output,
};

/// A turn that is being written. Pieces may be missing, because hints get lost; the whole message, once it is there,
/// is compared with what was shown.
pub(super) struct Live {
    page: Page,
    thought: Written,
    text: Written,
    open: Option<(Part, Wrap)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Thought,
    Text,
}

/// What of one part was shown, and the blank end that is shown only if more follows.
#[derive(Default)]
struct Written {
    shown: String,
    blank: String,
}

impl Live {
    pub(super) fn new(page: Page) -> Self {
        Self { page, thought: Written::default(), text: Written::default(), open: None }
    }

    /// One more piece; returns what is to be written.
    pub(super) fn push(&mut self, delta: &Delta) -> String {
        self.write(Part::Thought, &delta.thought) + &self.write(Part::Text, &delta.text)
    }

    /// The turn is over. If what was shown is the start of what was said, the rest is written; what does not fit is
    /// left to be told whole.
    pub(super) fn close(mut self, said: Option<&Message>) -> (String, Seen) {
        let mut out = String::new();
        let mut seen = Seen::default();
        if let Some(message) = said {
            let thought = message.thought.as_deref().unwrap_or_default();
            seen.thought = self.complete(Part::Thought, thought, &mut out);
            seen.text = self.complete(Part::Text, &message.content, &mut out);
        }
        out.push_str(&self.end_part());
        (out, seen)
    }

    fn complete(&mut self, part: Part, whole: &str, out: &mut String) -> bool {
        let written = self.written(part);
        let Some(rest) = whole.trim().strip_prefix(written.shown.as_str()).map(str::to_owned) else { return false };
        if written.shown.is_empty() {
            return false;
        }
        written.blank.clear();
        let open = self.open.as_ref().is_some_and(|(open, _)| *open == part);
        if !rest.is_empty() && open {
            out.push_str(&self.write(part, &rest));
        }
        rest.is_empty() || open
    }

    fn write(&mut self, part: Part, piece: &str) -> String {
        let written = self.written(part);
        let piece = std::mem::take(&mut written.blank) + piece;
        let piece = if written.shown.is_empty() { piece.trim_start() } else { piece.as_str() };
        let kept = piece.trim_end();
        piece[kept.len()..].clone_into(&mut written.blank);
        written.shown.push_str(kept);
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

    fn written(&mut self, part: Part) -> &mut Written {
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

    fn live(pieces: &[(&str, &str)]) -> (Live, String) {
        let mut live = Live::new(Page { width: Some(60), colours: false });
        let delta =
            |&(thought, text): &(&str, &str)| Delta { turn: 1, text: text.to_owned(), thought: thought.to_owned() };
        let out = pieces.iter().map(|piece| live.push(&delta(piece))).collect();
        (live, out)
    }

    fn said(thought: &str, text: &str) -> Message {
        Message { thought: Some(thought.to_owned()), ..Message::text(Role::Assistant, text) }
    }

    #[test]
    fn what_was_written_piece_by_piece_is_not_told_again() {
        let pieces = [
            ("\nThe user wants ", ""),
            ("a flight.\n", ""),
            ("", "好的，"),
            ("", "我来预订明天从北京到上海的机票。 "),
            ("", "\n"),
        ];
        let (live, mut out) = live(&pieces);
        let (rest, seen) =
            live.close(Some(&said("The user wants a flight.", "好的，我来预订明天从北京到上海的机票。")));
        out.push_str(&rest);
        insta::assert_snapshot!(out);
        assert_eq!(seen, Seen { thought: true, text: true });
    }

    #[test]
    fn a_lost_end_is_written_when_the_turn_is_over() {
        let (live, mut out) = live(&[("", "It is ")]);
        let (rest, seen) = live.close(Some(&said("", "It is sunny in Paris.")));
        out.push_str(&rest);
        assert_eq!(out.trim(), "says          It is sunny in Paris.");
        assert!(seen.text && !seen.thought);
    }

    #[test]
    fn what_does_not_fit_is_left_to_be_told_whole() {
        for pieces in [vec![("", "is sunny")], vec![], vec![("It", "is")]] {
            let (live, mut out) = live(&pieces);
            let (rest, seen) = live.close(Some(&said("It may rain", "It is sunny")));
            out.push_str(&rest);
            assert!(out.is_empty() || out.ends_with('\n'), "{out:?}");
            assert_eq!(seen, Seen::default(), "{pieces:?}");
        }
    }

    #[test]
    fn a_turn_that_said_nothing_ends_its_line() {
        let (live, out) = live(&[("", "\u{1b}[31mIt")]);
        let (rest, seen) = live.close(None);
        assert!((out.clone() + &rest).ends_with("\\u{1b}[31mIt\n"), "{out:?}{rest:?}");
        assert_eq!(seen, Seen::default());
    }
}
