//! How values are written: times, durations, numbers, ids, and texts that come from outside.

use std::fmt;

use askama::filters::HtmlSafe;
use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};

/// Text that is HTML already.
#[derive(Clone, Debug, Default)]
pub(crate) struct Html(pub(crate) String);

impl fmt::Display for Html {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl HtmlSafe for Html {}

pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// Shows a text from a model, a tool or a user: characters that cannot be seen, or that turn the order of others
/// around, are replaced by their names, so that nobody is shown another text than what is on record.
pub(crate) fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\t' => out.push(c),
            '\u{0}'..='\u{1f}' => out.push(char::from_u32(0x2400 + u32::from(c)).unwrap_or('\u{fffd}')),
            '\u{7f}' => out.push('\u{2421}'),
            '\u{80}'..='\u{9f}'
            | '\u{ad}'
            | '\u{34f}'
            | '\u{61c}'
            | '\u{115f}'
            | '\u{1160}'
            | '\u{17b4}'
            | '\u{17b5}'
            | '\u{180e}'
            | '\u{200b}'
            | '\u{200e}'
            | '\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{3164}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e0fff}' => {
                out.push_str(&format!("\u{27e8}U+{:04X}\u{27e9}", u32::from(c)));
            }
            c => out.push(c),
        }
    }
    out
}

/// Shows the same in one line of at most `most` characters.
pub(crate) fn line(text: &str, most: usize) -> String {
    let mut words = String::new();
    for (n, word) in text.split_whitespace().enumerate() {
        if words.len() > most * 4 {
            break;
        }
        if n > 0 {
            words.push(' ');
        }
        words.push_str(word);
    }
    clip(&plain(&words), most)
}

/// Cuts a text to `most` characters.
pub(crate) fn clip(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some((at, _)) => format!("{}\u{2026}", text[..at].trim_end()),
    }
}

/// Says how long ago a time was, with the exact time beside it.
pub(crate) fn ago(at: &DateTime<Utc>) -> Html {
    let now = Utc::now();
    let words = match now - *at {
        span if span < TimeDelta::zero() => format!("in {}", about(-span)),
        span if span < TimeDelta::seconds(1) => "now".to_owned(),
        span => format!("{} ago", about(span)),
    };
    let (machine, exact) = (at.to_rfc3339_opts(SecondsFormat::Millis, true), exact(at));
    Html(format!("<time datetime=\"{machine}\" title=\"{exact}\" data-ago>{words}</time>"))
}

/// Writes a duration in its largest unit.
fn about(span: TimeDelta) -> String {
    match span.num_seconds() {
        s @ ..60 => format!("{s} s"),
        s @ ..3_600 => format!("{} min", s / 60),
        s @ ..86_400 => format!("{} h", s / 3_600),
        s => format!("{} d", s / 86_400),
    }
}

/// Does the same for a time that may be unknown.
pub(crate) fn maybe_ago(at: Option<&DateTime<Utc>>) -> Html {
    at.map_or_else(|| Html("<span class=\"none\">\u{2013}</span>".to_owned()), ago)
}

pub(crate) fn exact(at: &DateTime<Utc>) -> String {
    at.format("%Y-%m-%d %H:%M:%S%.3f UTC").to_string()
}

/// Writes the time of day, exact, as an element.
pub(crate) fn clock(at: &DateTime<Utc>) -> Html {
    let (machine, exact) = (at.to_rfc3339_opts(SecondsFormat::Millis, true), exact(at));
    Html(format!("<time datetime=\"{machine}\" title=\"{exact}\">{}</time>", at.format("%H:%M:%S%.3f")))
}

/// Writes a duration in two units at most.
pub(crate) fn span(ms: i64) -> String {
    span_words(TimeDelta::milliseconds(ms))
}

fn span_words(span: TimeDelta) -> String {
    let ms = span.num_milliseconds();
    let seconds = span.num_seconds();
    match seconds {
        i64::MIN..1 => format!("{ms} ms"),
        1..10 => format!("{seconds}.{} s", ms % 1000 / 100),
        10..60 => format!("{seconds} s"),
        60..3_600 => two(seconds / 60, "min", seconds % 60, "s"),
        3_600..86_400 => two(seconds / 3_600, "h", seconds % 3_600 / 60, "min"),
        _ => two(seconds / 86_400, "d", seconds % 86_400 / 3_600, "h"),
    }
}

fn two(large: i64, unit: &str, small: i64, smaller: &str) -> String {
    if small == 0 || large >= 10 { format!("{large} {unit}") } else { format!("{large} {unit} {small} {smaller}") }
}

fn whole(number: &impl fmt::Display) -> i128 {
    number.to_string().parse().unwrap_or(i128::MAX)
}

/// Writes a number with thin spaces between its thousands.
pub(crate) fn count(number: impl fmt::Display) -> String {
    let number = whole(&number);
    let digits = number.unsigned_abs().to_string();
    let mut out = String::new();
    for (n, digit) in digits.chars().enumerate() {
        if n > 0 && (digits.len() - n).is_multiple_of(3) {
            out.push('\u{202f}');
        }
        out.push(digit);
    }
    if number < 0 { format!("\u{2212}{out}") } else { out }
}

/// Counts things: `1 call`, `2 calls`.
pub(crate) fn things(number: impl fmt::Display, one: &str) -> String {
    match (whole(&number), one.strip_suffix("ry")) {
        (1, _) => format!("1 {one}"),
        (_, Some(stem)) => format!("{} {stem}ries", count(number)),
        (_, None) => format!("{} {one}s", count(number)),
    }
}

pub(crate) fn percent(part: u64, whole: u64) -> String {
    if whole == 0 {
        return "\u{2013}".to_owned();
    }
    let tenths = part.saturating_mul(1000).div_ceil(whole).min(1000);
    match tenths {
        1000 if part < whole => "99.9 %".to_owned(),
        _ if tenths >= 100 || tenths.is_multiple_of(10) => format!("{} %", (part * 100 + whole / 2) / whole),
        _ => format!("{}.{} %", tenths / 10, tenths % 10),
    }
}

/// Writes a price in millionths of a US dollar.
pub(crate) fn dollars(micros: u64) -> String {
    match micros {
        0 => "$0".to_owned(),
        1..10_000 => format!("${}.{:06}", micros / 1_000_000, micros % 1_000_000),
        _ => format!("${}.{:02}", micros / 1_000_000, micros % 1_000_000 / 10_000),
    }
}

/// Writes the end of an id, which tells it apart from its neighbours, with a button that copies the whole.
pub(crate) fn id(id: &impl fmt::Display) -> Html {
    let whole = escape(&id.to_string());
    Html(format!("<span class=\"id\" title=\"{whole}\" data-copy=\"{whole}\">{}</span>", short_id(&whole)))
}

pub(crate) fn short_id(id: &impl fmt::Display) -> String {
    let id = id.to_string();
    id.get(id.len().saturating_sub(8)..).unwrap_or(&id).to_owned()
}

/// Encodes a part of a path or a query.
pub(crate) fn url(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => out.push(char::from(byte)),
            byte => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

/// Writes a state or an error class as people read it.
pub(crate) fn words(name: &str) -> String {
    name.replace('_', " ")
}

pub(crate) fn glyph(state: &str) -> &'static str {
    match state {
        "succeeded" | "done" | "valid" | "alive" | "once" => "succeeded",
        "failed" | "gone" | "revoked" => "failed",
        "refused" => "refused",
        "unknown" => "unknown",
        "running" | "counting" => "running",
        "retry_wait" | "warn" | "draining" | "again" => "retry_wait",
        "client_wait" => "client_wait",
        "cancelled" | "expired" => "cancelled",
        _ => "waiting",
    }
}

pub(crate) fn bytes(bytes: impl fmt::Display) -> String {
    let bytes = whole(&bytes);
    match bytes {
        ..1_024 => format!("{bytes} B"),
        1_024..1_048_576 => format!("{}.{} KiB", bytes / 1_024, bytes % 1_024 * 10 / 1_024),
        _ => format!("{}.{} MiB", bytes / 1_048_576, bytes % 1_048_576 * 10 / 1_048_576),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_have_two_units_at_most() {
        for (ms, words) in [
            (0, "0 ms"),
            (999, "999 ms"),
            (1_250, "1.2 s"),
            (59_999, "59 s"),
            (61_000, "1 min 1 s"),
            (3_600_000, "1 h"),
            (7_500_000, "2 h 5 min"),
            (90_000_000, "1 d 1 h"),
            (36_000_000, "10 h"),
        ] {
            assert_eq!(span(ms), words);
        }
    }

    #[test]
    fn what_cannot_be_seen_is_named() {
        let shown = plain("a\u{1b}[31mb\u{202e}c\u{200b}");
        assert_eq!(shown, "a\u{241b}[31mb\u{27e8}U+202E\u{27e9}c\u{27e8}U+200B\u{27e9}");
        let (family, arabic) = ("\u{1f469}\u{200d}\u{1f467}", "\u{645}\u{631}\u{62d}\u{628}\u{627}");
        assert_eq!(plain(family), family, "joined emoji stay whole");
        assert_eq!(plain(arabic), arabic);
    }

    #[test]
    fn numbers_are_grouped() {
        assert_eq!(count(0), "0");
        assert_eq!(count(1_234_567), "1\u{202f}234\u{202f}567");
        assert_eq!(things(1_u32, "call"), "1 call");
        assert_eq!(things(2_u32, "call"), "2 calls");
        assert_eq!(things(2_u32, "retry"), "2 retries");
        assert_eq!(percent(1, 3), "33 %");
        assert_eq!(percent(1, 1000), "0.1 %");
        assert_eq!(percent(9_999, 10_000), "99.9 %");
        assert_eq!(percent(1, 0), "\u{2013}");
    }
}
