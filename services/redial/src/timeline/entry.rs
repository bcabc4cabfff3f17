//! What a timeline is made of.

/// Everything that happened at one time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    /// When, as the reader sees it; may be empty.
    pub(crate) time: String,
    pub(crate) entries: Vec<Entry>,
}

/// One thing that happened: a line, or several if its text has line breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) label: String,
    pub(crate) ink: Ink,
    pub(crate) text: String,
    pub(crate) drawing: Drawing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ink {
    /// Background information.
    Dim,
    /// A user's input and Redial's calls.
    Bold,
    Green,
    /// A repair, a retry, a change of plan.
    Yellow,
    Red,
    Cyan,
}

/// How a diagram shows an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Drawing {
    Hidden,
    Note,
    To(Party),
    From(Party),
    /// As a broken arrow from this party.
    Failed(Party),
}

/// Whom Redial exchanges messages with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Party {
    User,
    Model(String),
    Tool(String),
}

impl Ink {
    /// Colours the text, as terminals understand it.
    pub(crate) fn paint(self, text: &str) -> String {
        let code = match self {
            Self::Dim => "2",
            Self::Bold => "1",
            Self::Green => "32",
            Self::Yellow => "33",
            Self::Red => "31",
            Self::Cyan => "36",
        };
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    }
}

impl Entry {
    pub(crate) fn new(label: impl Into<String>, ink: Ink, text: impl Into<String>) -> Self {
        Self { label: label.into(), ink, text: text.into(), drawing: Drawing::Hidden }
    }

    pub(crate) fn drawn(self, drawing: Drawing) -> Self {
        Self { drawing, ..self }
    }
}
