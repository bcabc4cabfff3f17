//! What was changed in a model's arguments before they were run.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::{VariantArray, VariantNames};

use crate::names::named;

/// Repairs recorded for one call; arguments that need more are refused.
pub const MAX_REPAIRS: usize = 1000;
/// Bytes of the text before and after a repair that are kept.
pub const MAX_QUOTED: usize = 200;

/// What a repair changed. Every kind is lossless: it writes the same value in the form that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, VariantArray, VariantNames)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum RepairKind {
    /// A Markdown fence around the object, with the text outside it.
    CodeFence,
    /// Words, a call's name or an end marker around the only object.
    SurroundingText,
    /// A JSON string that held the object, array or whole arguments; also one that lost its outer quotes.
    DoubleEncoded,
    /// White space that JSON does not know: byte order mark, no-break space.
    Whitespace,
    /// A comment.
    Comment,
    /// A comma that nothing followed.
    TrailingComma,
    /// A full-width colon or comma.
    Punctuation,
    /// Quotes other than `"`.
    Quotes,
    /// A key without quotes.
    UnquotedKey,
    /// A line break or another control character in a string, not escaped.
    ControlCharacter,
    /// A backslash that escaped nothing, kept as a backslash.
    Backslash,
    /// `True`, `False` or `None`.
    PythonLiteral,
    /// `TRUE`, `FALSE`, `Null` or `NULL`.
    LiteralCase,
    /// A number such as `.5` or `+1`.
    Number,
    /// The same member twice, with the same value.
    DuplicateKey,
    /// A tool's name in another case or with other separators.
    ToolName,
    /// A key in another case or with other separators.
    KeyName,
    /// The same value as another type: `"2"` for `2`, `2.0` for `2`.
    Type,
    /// An allowed value in another case or with other separators.
    EnumValue,
}

named!(RepairKind, "a kind of repair");

/// One lossless change, as the audit keeps it: where, the text before and the text after.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Repair {
    /// What kind of change.
    pub kind: RepairKind,
    /// Where a name or value was changed: JSON pointer (RFC 6901) into the final arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Where the text was changed: bytes from its start. After a `double_encoded` repair without a path, from the
    /// start of the text that it unwrapped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<u32>,
    /// The text before, at most 200 bytes of it.
    pub before: String,
    /// The text after, at most 200 bytes of it; empty if it was removed.
    pub after: String,
}

impl fmt::Display for Repair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.kind)?;
        match (&self.path, self.offset) {
            (Some(path), _) => write!(f, " at {path}")?,
            (None, Some(offset)) => write!(f, " at byte {offset}")?,
            (None, None) => {}
        }
        if self.after.is_empty() {
            return write!(f, ": {} left out", in_one_line(&self.before));
        }
        write!(f, ": {} → {}", in_one_line(&self.before), in_one_line(&self.after))
    }
}

/// The text with every invisible character escaped.
fn in_one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '"' | '\'' | '\\') {
            line.push(c);
        } else {
            line.extend(c.escape_debug());
        }
    }
    line
}
