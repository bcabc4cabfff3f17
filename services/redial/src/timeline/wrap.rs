//! Wraps text in a column, whether it arrives whole or piece by piece while a model writes it.

use unicode_width::UnicodeWidthChar;

/// Wraps a text. Lines break at spaces and around wide characters, such as those of Chinese; a word that is longer than a
/// line is broken where the line ends.
pub(crate) struct Wrap {
    /// Columns of a line; `None`: lines are never broken.
    width: Option<usize>,
    /// Empty columns at the start of each further line.
    indent: usize,
    /// Columns of the current line that are in use.
    column: usize,
    /// True until something is written on the current line, its indent included.
    fresh: bool,
    /// Held back, because more may follow.
    spaces: usize,
    word: String,
    word_width: usize,
}

impl Wrap {
    /// Starts at this column of a line.
    pub(crate) fn new(width: Option<usize>, indent: usize, column: usize) -> Self {
        Self { width, indent, column, fresh: false, spaces: 0, word: String::new(), word_width: 0 }
    }

    /// Takes more of the text; returns what can be written now.
    pub(crate) fn push(&mut self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        for c in text.chars() {
            match c {
                '\n' => {
                    self.end_word(&mut out);
                    self.new_line(&mut out);
                }
                ' ' => {
                    self.end_word(&mut out);
                    self.spaces += 1;
                }
                c if c.width() == Some(2) => {
                    self.end_word(&mut out);
                    self.add(c);
                    self.end_word(&mut out);
                }
                c => self.add(c),
            }
        }
        out
    }

    /// Ends the text; returns the rest of it.
    pub(crate) fn finish(&mut self) -> String {
        let mut out = String::new();
        self.end_word(&mut out);
        self.spaces = 0;
        out
    }

    fn add(&mut self, c: char) {
        self.word.push(c);
        self.word_width += c.width().unwrap_or(0);
    }

    fn end_word(&mut self, out: &mut String) {
        if self.word.is_empty() {
            return;
        }
        let start = if self.fresh { self.indent } else { self.column };
        let room = self.width.map_or(usize::MAX, |width| width.saturating_sub(start + self.word_width));
        if self.spaces > room || self.width.is_some_and(|width| start + self.word_width > width) {
            if start > self.indent {
                self.new_line(out);
            }
            self.spaces = 0;
        }
        self.begin_line(out);
        out.extend(std::iter::repeat_n(' ', self.spaces));
        self.column += std::mem::take(&mut self.spaces);
        for c in std::mem::take(&mut self.word).chars() {
            let wide = c.width().unwrap_or(0);
            if self.width.is_some_and(|width| self.column + wide > width && self.column > self.indent) {
                self.new_line(out);
                self.begin_line(out);
            }
            out.push(c);
            self.column += wide;
        }
        self.word_width = 0;
    }

    fn new_line(&mut self, out: &mut String) {
        out.push('\n');
        (self.fresh, self.column, self.spaces) = (true, 0, 0);
    }

    fn begin_line(&mut self, out: &mut String) {
        if std::mem::take(&mut self.fresh) {
            out.extend(std::iter::repeat_n(' ', self.indent));
            self.column = self.indent;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use unicode_width::UnicodeWidthStr;

    use super::*;

    fn wrap(text: &str, width: Option<usize>) -> String {
        let mut wrap = Wrap::new(width, 2, 2);
        wrap.push(text) + &wrap.finish()
    }

    #[test]
    fn breaks_between_words_and_chinese_characters() {
        let shown = [
            wrap("the quick brown fox", Some(12)),
            wrap("订明天从北京到上海 of course", Some(12)),
            wrap("a 0123456789012345 b", Some(12)),
            wrap("first\n\n  second   third ", Some(12)),
            wrap("never broken, however long it may be", None),
        ];
        insta::assert_snapshot!(shown.join("\n----\n"));
    }

    proptest! {
        #[test]
        fn pieces_make_the_same_text(pieces in prop::collection::vec("[a-d订票 \n]{0,9}", 0..6), width in 5..40_usize) {
            let whole = wrap(&pieces.concat(), Some(width));
            let mut wrapping = Wrap::new(Some(width), 2, 2);
            let mut piecewise: String = pieces.iter().map(|piece| wrapping.push(piece)).collect();
            piecewise.push_str(&wrapping.finish());
            prop_assert_eq!(&piecewise, &whole);
            for line in whole.lines() {
                prop_assert!(line.width() <= width, "{:?} in {} columns", line, width);
            }
            let letters = |text: &str| text.split_whitespace().collect::<String>();
            prop_assert_eq!(letters(&whole), letters(&pieces.concat()));
        }
    }
}
