//! Events as they are written: the format of the HTML standard, 9.2.

use std::io::Write as _;

use redial_proto::Code;
use serde::Serialize;

use crate::problem::Problem;

pub(crate) const END: &str = "end";
/// How long a client waits before it connects again, in ms.
const RETRY: &[u8] = b"retry: 1000\n\n";

#[derive(Default)]
pub(crate) struct Page(Vec<u8>);

impl Page {
    pub(crate) fn first() -> Self {
        Self(RETRY.to_vec())
    }

    /// Adds an event. `id`: the stream can be resumed after it.
    pub(crate) fn event(&mut self, id: Option<&str>, name: &str, data: &impl Serialize) -> Result<(), Problem> {
        if let Some(id) = id {
            self.line("id", id);
        }
        self.line("event", name);
        self.0.extend_from_slice(b"data: ");
        let from = self.0.len();
        serde_json::to_writer(&mut self.0, data)
            .map_err(|error| Problem::new(Code::Internal, format!("an event cannot be written: {error}")))?;
        // A result is kept as its tool wrote it. A line break in JSON is between its tokens, where a blank is the same.
        for byte in self.0[from..].iter_mut().filter(|byte| matches!(byte, b'\n' | b'\r')) {
            *byte = b' ';
        }
        self.0.extend_from_slice(b"\n\n");
        Ok(())
    }

    /// Makes a line that clients ignore: it says that the connection lives, and why nothing comes.
    pub(crate) fn comment(text: &str) -> Self {
        Self(format!(": {text}\n\n").into_bytes())
    }

    /// Adds an event that was written before.
    pub(crate) fn raw(&mut self, event: &[u8]) {
        self.0.extend_from_slice(event);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn into_bytes(self) -> bytes::Bytes {
        self.0.into()
    }

    fn line(&mut self, field: &str, value: &str) {
        // Writing to memory does not fail.
        let _ = writeln!(self.0, "{field}: {value}");
    }
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;

    use super::*;

    #[test]
    fn an_event_has_one_line_of_data() {
        let mut page = Page::default();
        let raw = RawValue::from_string("{\"a\":\r\n\"b\\nc\"}".to_owned()).unwrap();
        page.event(Some("3.1"), "message", &raw).unwrap();
        page.event(None, "delta", &1).unwrap();
        let text = String::from_utf8(page.into_bytes().to_vec()).unwrap();
        assert_eq!(text, "id: 3.1\nevent: message\ndata: {\"a\":  \"b\\nc\"}\n\nevent: delta\ndata: 1\n\n");
    }
}
