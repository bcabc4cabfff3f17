//! The built-in tool that reads on in a result that was shortened.

use redial_proto::ToolOffer;
use serde_json::json;

/// The name of the built-in tool that reads on in a shortened result.
pub const READ_RESULT: &str = "read_result";

/// Bytes of the answer around the piece.
const AROUND: usize = 120;

/// Returns the built-in tool as it is offered to models.
pub fn read_result_offer() -> ToolOffer {
    ToolOffer {
        name: READ_RESULT.to_owned(),
        description: "Reads on in the result of an earlier call that was shortened in this conversation. Gives the \
                      text from the offset on, and the offset of the next piece if there is more."
            .to_owned(),
        parameters: json!({
            "type": "object",
            "properties": {
                "call_id": {"type": "string", "description": "The call whose result to read, as the note in it says."},
                "offset": {"type": "integer", "minimum": 0, "description": "Where to begin, in bytes."}
            },
            "required": ["call_id", "offset"],
            "additionalProperties": false
        }),
        version: "1".to_owned(),
        polling: false,
        sequential: false,
        repairs: true,
    }
}

/// Returns a piece of a call's whole result, as the JSON text
/// `{"call_id":…,"offset":…,"total_bytes":…,"content":…,"next_offset":…}` of about `limit` bytes; `next_offset` is
/// missing in the last piece. An offset inside of a character counts from its start. The error is for the model: there
/// is not a result of this call, or it ends before the offset.
pub fn read_result(call_id: &str, result: Option<&str>, offset: u64, limit: usize) -> Result<String, String> {
    let Some(text) = result else {
        return Err(format!("no result of a call {call_id:?} is in this conversation"));
    };
    let Some(start) = usize::try_from(offset).ok().filter(|offset| *offset <= text.len()) else {
        return Err(format!("offset is {offset}; the result of {call_id} has {} bytes", text.len()));
    };
    let start = text.floor_char_boundary(start);
    let end = start + fitting(&text[start..], limit.saturating_sub(AROUND + call_id.len()));
    let mut piece = json!({
        "call_id": call_id,
        "offset": start,
        "total_bytes": text.len(),
        "content": &text[start..end],
    });
    if end < text.len() {
        piece["next_offset"] = end.into();
    }
    Ok(piece.to_string())
}

/// Counts the bytes of a text that take at most so many in a JSON string; never less than one character.
fn fitting(text: &str, most: usize) -> usize {
    let mut taken = 0;
    for (at, c) in text.char_indices() {
        taken += match c {
            '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
            c if c < ' ' => 6,
            c => c.len_utf8(),
        };
        if taken > most && at > 0 {
            return at;
        }
    }
    text.len()
}
