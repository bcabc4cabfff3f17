//! Server-sent events: the data of each event. Other fields are skipped, because providers do not need them.

/// Parses a stream of events whose bytes arrive in chunks, split anywhere.
#[derive(Debug, Default)]
pub(crate) struct Events {
    /// Bytes of the current line.
    line: Vec<u8>,
    /// Data of the current event.
    data: Option<String>,
    /// The last byte was a carriage return, so a line feed right after it belongs to the same line end.
    after_return: bool,
    started: bool,
}

impl Events {
    /// Takes the next bytes and returns the data of completed events; invalid UTF-8 becomes U+FFFD.
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> Vec<String> {
        let mut events = Vec::new();
        for byte in bytes {
            match byte {
                b'\n' if self.after_return => {}
                b'\n' | b'\r' => events.extend(self.line_ended()),
                other => self.line.push(*other),
            }
            self.after_return = *byte == b'\r';
        }
        events
    }

    /// Counts the bytes of the current, incomplete event.
    pub(crate) fn pending(&self) -> usize {
        self.line.len() + self.data.as_ref().map_or(0, String::len)
    }

    /// Handles the end of a line; an empty line ends an event.
    fn line_ended(&mut self) -> Option<String> {
        let line = std::mem::take(&mut self.line);
        let line = String::from_utf8_lossy(&line);
        let line = if self.started { &line } else { line.strip_prefix('\u{feff}').unwrap_or(&line) };
        self.started = true;
        if line.is_empty() {
            return self.data.take();
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        if field == "data" {
            let value = value.strip_prefix(' ').unwrap_or(value);
            match &mut self.data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
                None => self.data = Some(value.to_owned()),
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const STREAM: &str =
        "\u{feff}data: one\n\n: comment\nevent: x\ndata:two\r\ndata: lines 好\r\n\r\nid: 4\n\ndata\r\rdata: cut";

    proptest! {
        #[test]
        fn bytes_may_be_split_anywhere(cuts in proptest::collection::vec(1_usize..9, 1..80)) {
            let (mut events, mut rest, mut found) = (Events::default(), STREAM.as_bytes(), Vec::new());
            for cut in cuts.into_iter().cycle() {
                let (now, later) = rest.split_at(cut.min(rest.len()));
                found.extend(events.feed(now));
                rest = later;
                if rest.is_empty() {
                    break;
                }
            }
            prop_assert_eq!(found, ["one", "two\nlines 好", ""], "events end with an empty line");
            prop_assert_eq!(events.pending(), "data: cut".len());
        }
    }
}
