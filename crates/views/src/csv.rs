//! Cells of comma-separated values (RFC 4180).

use std::borrow::Cow;

/// Writes a text as a cell: in quotes if it must be. Models write such texts, so one that a spreadsheet would take for
/// a formula gets a `'` before it. A number is none, and no other JSON begins like one.
pub fn csv_cell(text: &str) -> Cow<'_, str> {
    let is_number = || serde_json::from_str::<serde_json::Number>(text).is_ok();
    let is_formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']) && !is_number();
    let text = if is_formula { Cow::Owned(format!("'{text}")) } else { Cow::Borrowed(text) };
    if text.contains(['"', ',', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")).into() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_quoted_where_they_must_be_and_no_formula_is_one() {
        let cells = ["", "a b", "a,b", "say \"hi\"", "a\nb", "订", "=1+1", "-1,5", "-1.5e3", "-1+1", "@sum", "\rx"]
            .map(csv_cell);
        let expected = [
            "",
            "a b",
            "\"a,b\"",
            "\"say \"\"hi\"\"\"",
            "\"a\nb\"",
            "订",
            "'=1+1",
            "\"'-1,5\"",
            "-1.5e3",
            "'-1+1",
            "'@sum",
            "\"'\rx\"",
        ];
        assert_eq!(cells, expected);
    }
}
