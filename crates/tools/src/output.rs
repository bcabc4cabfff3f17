//! Turns a tool's output into JSON text, and checks its limits.

use redial_proto::{
    ErrorClass, Failure,
    limits::{self, MAX_DEPTH, MAX_PAYLOAD},
};
use serde_json::value::RawValue;

use crate::handler::ToolResult;

/// Bytes of an output beyond the limits that the error quotes.
const PREVIEW: usize = 500;

/// Reads the output as JSON text of any size: JSON is kept byte for byte; any other text becomes a JSON string; empty
/// output becomes `null`.
///
/// In text, invalid UTF-8 and U+0000 become U+FFFD, because Postgres accepts neither.
pub(crate) fn from_bytes(bytes: &[u8]) -> ToolResult {
    let text = String::from_utf8_lossy(bytes);
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    if text.trim().is_empty() {
        return Ok(RawValue::NULL.to_owned());
    }
    if let Ok(json) = serde_json::from_str::<&RawValue>(text)
        && std::str::from_utf8(bytes).is_ok()
    {
        return Ok(json.to_owned());
    }
    serde_json::value::to_raw_value(&text.replace('\0', "\u{fffd}")).map_err(|error| {
        Failure::new(ErrorClass::Internal, format!("the output cannot be written as a JSON string: {error}"))
    })
}

/// Returns the output, unless it is too large or nested too deep.
pub(crate) fn within_limits(output: Box<RawValue>) -> ToolResult {
    if output.get().len() > MAX_PAYLOAD {
        return Err(too_large(output.get()));
    }
    if limits::json_depth(output.get()) > MAX_DEPTH {
        let start = limits::shorten(output.get(), PREVIEW);
        let message = format!("the output is nested deeper than {MAX_DEPTH} levels; it starts: {start}");
        return Err(Failure::new(ErrorClass::OutputInvalid, message));
    }
    Ok(output)
}

/// Makes the failure for an output over the size limit; `start` is at least its start.
pub(crate) fn too_large(start: &str) -> Failure {
    let start = limits::shorten(start, PREVIEW);
    let message = format!("the output is over {MAX_PAYLOAD} bytes; it starts: {start}");
    Failure::new(ErrorClass::OutputTooLarge, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepted(bytes: &[u8]) -> String {
        from_bytes(bytes).unwrap().get().to_owned()
    }

    #[test]
    fn json_is_kept_and_text_is_quoted() {
        assert_eq!(accepted(b" {\"a\" : 1e400000, \"b\":\"\\u0000\"}\n"), "{\"a\" : 1e400000, \"b\":\"\\u0000\"}");
        assert_eq!(accepted(b"17"), "17");
        assert_eq!(accepted(b"\xef\xbb\xbf[1]"), "[1]");
        assert_eq!(accepted("两 lines\n".as_bytes()), "\"两 lines\\n\"");
        assert_eq!(accepted(b"{\"a\":"), "\"{\\\"a\\\":\"");
        assert_eq!(accepted(b" \n"), "null");
        assert_eq!(accepted(b""), "null");
    }

    #[test]
    fn text_that_postgres_refuses_is_replaced() {
        assert_eq!(accepted(b"a\0b\xff"), "\"a\u{fffd}b\u{fffd}\"");
        assert_eq!(accepted(b"\"\xff\""), "\"\\\"\u{fffd}\\\"\"");
    }

    #[test]
    fn outputs_within_the_limits_are_kept() {
        let output = |text: String| within_limits(RawValue::from_string(text).unwrap());
        let text = |bytes: usize| format!("\"{}\"", "x".repeat(bytes - 2));
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(output(text(MAX_PAYLOAD)).is_ok());
        assert!(output(nested(MAX_DEPTH)).is_ok());
        let large = output(text(MAX_PAYLOAD + 1)).unwrap_err();
        assert_eq!(large.class, ErrorClass::OutputTooLarge);
        assert!(
            large.message.len() < 700
                && large.message.starts_with("the output is over 16777216 bytes; it starts: \"xx")
        );
        let deep = output(nested(MAX_DEPTH + 1)).unwrap_err();
        assert_eq!(deep.class, ErrorClass::OutputInvalid);
        assert!(large.effect_possible && deep.effect_possible);
        assert_eq!(output(nested(200_000)).unwrap_err().class, ErrorClass::OutputInvalid);
    }
}
