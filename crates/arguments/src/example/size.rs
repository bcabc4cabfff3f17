//! The size of a value.

use std::io;

use serde_json::Value;

/// Longest example, in bytes of JSON.
pub(super) const MAX_EXAMPLE: usize = 2_000;

/// True if an example can hold the value.
pub(super) fn is_small(value: &Value) -> bool {
    json_size(value, MAX_EXAMPLE).is_some()
}

/// Counts the bytes of a value's JSON; `None` if there are more than `max`.
pub(super) fn json_size(value: &Value, max: usize) -> Option<usize> {
    struct Room(usize);
    impl io::Write for Room {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 = self.0.checked_sub(bytes.len()).ok_or(io::ErrorKind::WriteZero)?;
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut room = Room(max);
    serde_json::to_writer(&mut room, value).ok().map(|()| max - room.0)
}
