//! Ways to cut a reply into pieces.

/// How texts are cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// Each field and each part is one piece.
    Field,
    /// Each text is two pieces.
    Half,
    /// Each character is a piece.
    Character,
    /// As `Character`; the names of tools too, and the pieces of calls have no id after the first one.
    Names,
    /// As `Half`; the pieces of calls have no index.
    WithoutIndex,
    /// As `Field`; every call has index 0, as Ollama sends it.
    SameIndex,
    /// As `Half`; each piece of a call repeats its name and its id.
    Repeated,
    /// As `Half`; lists of parts come as one list.
    Together,
    /// The whole message is in one chunk.
    Message,
    /// Thoughts are streamed; then the whole message is in one chunk.
    MessageAfterThoughts,
    /// Everything is streamed, as `Half`; then the whole message is in one chunk.
    MessageAtEnd,
}

pub(crate) const ALL: [Cut; 11] = [
    Cut::Field,
    Cut::Half,
    Cut::Character,
    Cut::Names,
    Cut::WithoutIndex,
    Cut::SameIndex,
    Cut::Repeated,
    Cut::Together,
    Cut::Message,
    Cut::MessageAfterThoughts,
    Cut::MessageAtEnd,
];

impl Cut {
    pub(crate) fn text(self, text: &str) -> Vec<String> {
        match self {
            Self::Field | Self::SameIndex | Self::Message | Self::MessageAfterThoughts => vec![text.to_owned()],
            Self::Half | Self::WithoutIndex | Self::Repeated | Self::Together | Self::MessageAtEnd => {
                let (left, right) = text.split_at(text.floor_char_boundary(text.len() / 2));
                vec![left.to_owned(), right.to_owned()]
            }
            Self::Character | Self::Names => text.chars().map(String::from).collect(),
        }
    }
}
