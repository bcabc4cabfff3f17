//! Text from outside in a form that a terminal shows and does not obey.
//!
//! What a model, a tool or a client wrote may hold control characters: an escape sequence rewrites lines that were printed
//! before, sets the clipboard or the window's title, and a bidirectional control makes text read differently from what it is.

use std::{
    borrow::Cow,
    fmt::Write as _,
    io::{self, Write},
};

use tracing_subscriber::fmt::MakeWriter;

/// True for characters that a terminal obeys or that nobody sees: control characters (C0 but newlines and tabs, DEL, C1), and
/// Unicode's categories of format characters (bidirectional controls, tags, zero-width ones), line and paragraph separators.
/// Of these, the joiners U+200C and U+200D are shown as they are: scripts and emoji need them.
pub const fn is_obeyed(c: char) -> bool {
    let is_control = matches!(c, '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}') && !matches!(c, '\n' | '\t');
    is_control || is_invisible(c)
}

/// True for those categories without the signs of Arabic and Syriac, and of hieroglyphs, which are of them and can be
/// seen.
const fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{ad}'
            | '\u{61c}'
            | '\u{180e}'
            | '\u{200b}'
            | '\u{200e}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e007f}'
    )
}

/// Writes each such character of the text as `\u{1b}`.
pub fn visible(text: &str) -> Cow<'_, str> {
    escaped(text, false, |out, c| {
        // Writing to a String cannot fail.
        let _ = write!(out, "{}", c.escape_default());
    })
}

/// Does the same for text that Redial may have coloured: the sequences of colours stay, but those that hide text do
/// not.
pub fn visible_in_colour(text: &str) -> Cow<'_, str> {
    escaped(text, true, |out, c| {
        let _ = write!(out, "{}", c.escape_default());
    })
}

/// Writes each such character of JSON text as `\u001b`: the same value.
pub fn visible_json(json: &str) -> Cow<'_, str> {
    escaped(json, false, |out, c| match c {
        // In strings it is escaped already; between values it is a blank.
        '\r' => out.push(' '),
        c => {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(out, "\\u{unit:04x}");
            }
        }
    })
}

fn escaped(text: &str, colours: bool, escape: impl Fn(&mut String, char)) -> Cow<'_, str> {
    if !text.contains(is_obeyed) {
        return text.into();
    }
    let mut out = String::with_capacity(text.len() + 16);
    let mut rest = text;
    while let Some(at) = rest.find(is_obeyed) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let colour = if colours { colour(rest) } else { 0 };
        if colour > 0 {
            out.push_str(&rest[..colour]);
            rest = &rest[colour..];
        } else if let Some(c) = rest.chars().next() {
            escape(&mut out, c);
            rest = &rest[c.len_utf8()..];
        }
    }
    out.push_str(rest);
    out.into()
}

/// Counts the bytes of the colour sequence at the start, such as `ESC [ 1 ; 31 m`; 0 if there is none.
fn colour(text: &str) -> usize {
    let Some((codes, _)) = text.strip_prefix("\u{1b}[").and_then(|rest| rest.split_once('m')) else { return 0 };
    let is_colour = |code: &str| matches!(code.parse(), Ok(0_u8..=4 | 22..=24 | 30..=37 | 39 | 90..=97));
    if codes.len() <= 12 && codes.split(';').all(is_colour) { codes.len() + 3 } else { 0 }
}

/// Makes writers that show each line as [`visible`], or [`visible_json`]. A line is one write.
pub(crate) struct Visible<M> {
    pub(crate) inner: M,
    pub(crate) json: bool,
    pub(crate) colours: bool,
}

impl<'a, M: MakeWriter<'a>> MakeWriter<'a> for Visible<M> {
    type Writer = VisibleWriter<M::Writer>;

    fn make_writer(&'a self) -> Self::Writer {
        VisibleWriter { inner: self.inner.make_writer(), json: self.json, colours: self.colours }
    }
}

pub(crate) struct VisibleWriter<W> {
    inner: W,
    json: bool,
    colours: bool,
}

impl<W: Write> Write for VisibleWriter<W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(line);
        let text = match (self.json, self.colours) {
            (true, _) => visible_json(&text),
            (false, true) => visible_in_colour(&text),
            (false, false) => visible(&text),
        };
        // Whoever chose a value could write a line of their own otherwise. In JSON a new line is escaped already.
        let end = if text.ends_with('\n') { "\n" } else { "" };
        let text = text.strip_suffix('\n').unwrap_or(&text).replace('\n', "\\n") + end;
        self.inner.write_all(text.as_bytes())?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_obeys_is_written_out() {
        let text = "a\u{1b}[2J\u{7}\r\u{8}b\tc\nd\u{7f}\u{9b}31m\u{202e}e\u{2066}\u{200f}\u{61c}好";
        let shown = "a\\u{1b}[2J\\u{7}\\r\\u{8}b\tc\nd\\u{7f}\\u{9b}31m\\u{202e}e\\u{2066}\\u{200f}\\u{61c}好";
        assert_eq!(visible(text), shown);
        assert_eq!(visible_in_colour(text), shown);
        assert!(matches!(visible("plain 好\n"), Cow::Borrowed(_)));
    }

    #[test]
    fn what_nobody_sees_is_written_out() {
        let hidden =
            "\u{e0001}\u{e0041}\u{e007f}\u{200b}\u{feff}\u{ad}\u{180e}\u{fff9}\u{fffb}\u{2028}\u{2029}\u{2060}";
        let shown = visible(hidden);
        assert!(shown.is_ascii() && shown.starts_with("\\u{e0001}\\u{e0041}"), "{shown}");
        let value = |json: &str| serde_json::from_str::<String>(json).unwrap();
        let json = format!("\"{hidden}\"");
        assert!(visible_json(&json).is_ascii());
        assert_eq!(value(&visible_json(&json)), hidden);
        let seen = "👩\u{200d}🚀 ❤\u{fe0f} می\u{200c}خواهم \u{600}١";
        assert_eq!(visible(seen), seen, "what scripts and emoji need stays");
    }

    #[test]
    fn only_colours_stay_where_there_are_colours() {
        let own = "\u{1b}[1;31mred\u{1b}[0m";
        assert_eq!(visible_in_colour(own), own);
        assert_eq!(visible(own), "\\u{1b}[1;31mred\\u{1b}[0m");
        for hidden in ["\u{1b}[8mhidden", "\u{1b}[m", "\u{1b}[31", "\u{1b}[38;5;1m", "\u{1b}]0;title\u{7}", "\u{1b}"] {
            assert!(!visible_in_colour(hidden).contains('\u{1b}'), "{hidden:?}");
        }
    }

    #[test]
    fn json_keeps_its_value() {
        let json = "{\"a\u{7f}\":\r\n \"\u{9b}\u{202e}\\u001b\"}";
        let shown = visible_json(json);
        assert!(!shown.contains(is_obeyed), "{shown}");
        let value = |json: &str| serde_json::from_str::<serde_json::Value>(json).unwrap();
        assert_eq!(value(&shown), value(json));
    }
}
