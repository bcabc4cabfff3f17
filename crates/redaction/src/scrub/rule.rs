//! One rule about what is taken out of a text.

use regex::Regex;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Secret,
    Host,
    Path,
}

impl Kind {
    pub(super) const fn mark(self) -> &'static str {
        match self {
            Self::Secret => "[removed]",
            Self::Host => "[host]",
            Self::Path => "[path]",
        }
    }
}

/// A pattern whose group `x` is taken out if it is meant.
pub(super) struct Rule {
    pub(super) kind: Kind,
    pub(super) pattern: Regex,
    pub(super) is_meant: fn(&Hit<'_>) -> bool,
}

impl Rule {
    /// Compiles a pattern whose `\b` is the border of an ASCII word: Chinese has no blanks between words.
    #[expect(
        clippy::expect_used,
        reason = "the patterns are constants, which every test uses, or a name that was escaped"
    )]
    pub(super) fn new(kind: Kind, pattern: &str, is_meant: fn(&Hit<'_>) -> bool) -> Self {
        let pattern = pattern.replace(r"\b", r"(?-u:\b)");
        Self { kind, pattern: Regex::new(&pattern).expect("a pattern of this folder"), is_meant }
    }
}

pub(super) struct Hit<'a> {
    pub(super) text: &'a str,
    pub(super) start: usize,
    pub(super) end: usize,
}

impl<'a> Hit<'a> {
    pub(super) fn piece(&self) -> &'a str {
        &self.text[self.start..self.end]
    }

    pub(super) fn before(&self) -> &'a str {
        &self.text[..self.start]
    }

    pub(super) fn after(&self) -> &'a str {
        &self.text[self.end..]
    }

    /// True if it is no part of a longer word, nor of a longer name with dots.
    pub(super) fn stands_alone(&self) -> bool {
        let before = self.before().chars().next_back();
        let mut after = self.after().chars();
        let (next, then) = (after.next(), after.next());
        let is_word = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
        let goes_on_before = is_word(before) || matches!(before, Some('.' | '@'));
        let goes_on_after = is_word(next) || (next == Some('.') && is_word(then));
        !goes_on_before && !goes_on_after
    }
}

pub(super) fn any(_: &Hit<'_>) -> bool {
    true
}
