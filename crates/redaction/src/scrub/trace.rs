//! Stack traces → the message in them.

/// The first line of a trace of Python.
const PYTHON: &str = "Traceback (most recent call last)";

/// Removes the frames of stack traces of Python, Java, JavaScript, Rust, Go, .NET, Ruby and PHP from a text.
pub(super) fn reduce(text: &str) -> String {
    let text = unescaped(text);
    let mut kept: Vec<&str> = Vec::new();
    let mut inside = Inside::Nothing;
    for line in text.lines() {
        let plain = line.trim();
        inside = inside.after(line, plain);
        if inside.hides(line) || is_frame(line, plain) {
            continue;
        }
        if is_marker(plain) {
            // It points into the line above, which is source code.
            kept.pop();
            continue;
        }
        let message = without_prefix(plain);
        if !message.is_empty() {
            kept.push(message);
        }
    }
    kept.join("\n")
}

/// Unescapes a trace in a JSON string, which is one line with `\n` in it.
fn unescaped(text: &str) -> String {
    let signs = [PYTHON, "\\n\\tat ", "\\n    at ", "\\ngoroutine ", "stack backtrace:"];
    if text.contains("\\n") && signs.iter().any(|sign| text.contains(sign)) {
        return text.replace("\\r\\n", "\n").replace("\\n", "\n").replace("\\t", "\t").replace("\\\"", "\"");
    }
    text.to_owned()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Inside {
    Nothing,
    /// Indented lines are frames.
    Python,
    /// Every line up to an empty one is a frame.
    Go,
    /// Lines that are indented or begin with a number are frames.
    Rust,
}

impl Inside {
    fn after(self, line: &str, plain: &str) -> Self {
        let is_indented = line.starts_with([' ', '\t']);
        if plain.contains(PYTHON) {
            return Self::Python;
        }
        if plain.starts_with("goroutine ") && plain.ends_with("]:") {
            return Self::Go;
        }
        if plain == "stack backtrace:" {
            return Self::Rust;
        }
        match self {
            Self::Python | Self::Rust if is_indented || plain.is_empty() => self,
            Self::Go if !plain.is_empty() => self,
            _ => Self::Nothing,
        }
    }

    /// True for a line that is part of a trace and not of a message.
    fn hides(self, line: &str) -> bool {
        match self {
            Self::Nothing => false,
            Self::Python => line.starts_with([' ', '\t']) || line.contains(PYTHON) || line.is_empty(),
            Self::Go | Self::Rust => true,
        }
    }
}

fn is_frame(line: &str, plain: &str) -> bool {
    const WHOLE: [&str; 4] = [
        "During handling of the above exception, another exception occurred:",
        "The above exception was the direct cause of the following exception:",
        "stack backtrace:",
        "Stack trace:",
    ];
    const STARTS: [&str; 4] =
        ["note: run with `RUST_BACKTRACE", "note: Some details are omitted", "[signal ", "Node.js v"];
    let is_indented = line.starts_with([' ', '\t']);
    let numbered = plain.trim_start_matches('#').trim_start_matches(|c: char| c.is_ascii_digit());
    let is_numbered = plain.len() > numbered.len();
    WHOLE.contains(&plain)
        || STARTS.iter().any(|start| plain.starts_with(start))
        || (plain.starts_with("at ") && (has_line_number(plain) || (is_indented && plain.contains(['(', '.', '/']))))
        || (is_indented && plain.starts_with("from ") && has_line_number(plain))
        || (plain.starts_with("... ") && plain.ends_with(" more"))
        || (is_numbered && plain.starts_with('#') && numbered.starts_with(' '))
        || (plain.starts_with("File \"") && plain.contains("\", line "))
        || (!plain.contains(' ') && plain.contains('/') && has_line_number(plain))
}

/// True if it ends like `main.js:12:5` or holds `main.rb:12:in`.
fn has_line_number(plain: &str) -> bool {
    let mut parts = plain.trim_end_matches(')').split(':').skip(1);
    parts.any(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))
}

/// True for a line of carets or tildes under source code.
fn is_marker(plain: &str) -> bool {
    plain.contains('^') && plain.bytes().all(|byte| matches!(byte, b'^' | b'~' | b' '))
}

/// Removes the prefix in the first line of a trace.
fn without_prefix(plain: &str) -> &str {
    if let Some(thrown) = plain.strip_prefix("Exception in thread ") {
        return thrown.split_once("\" ").map_or(thrown, |(_, message)| message);
    }
    if plain.starts_with("thread '")
        && let Some((_, place)) = plain.split_once(" panicked at ")
    {
        // Until 2023 the message stood here in quotes, before the position; now it is the next line.
        let quoted = place.strip_prefix('\'').and_then(|rest| rest.rsplit_once("', "));
        return quoted.map_or("", |(message, _)| message);
    }
    if let Some(message) = plain.strip_prefix("panic: ") {
        return message;
    }
    plain.strip_prefix("Caused by: ").unwrap_or(plain)
}
