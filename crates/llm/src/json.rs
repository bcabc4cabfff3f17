//! JSON of providers and in texts of models.

pub(crate) mod extent;
pub(crate) mod halves;

use std::borrow::Cow;

use serde_json::Value;

/// Reads a provider's JSON. Invalid UTF-8 and lone halves of a surrogate pair become U+FFFD: the rest is readable.
pub(crate) fn read(bytes: &[u8]) -> serde_json::Result<Value> {
    parse(&String::from_utf8_lossy(bytes), halves::replaced)
}

/// Reads one event of a stream. The other half of a pair may be in the next event, so [`halves::join`] must read every
/// text that was put together from events.
pub(crate) fn read_event(data: &str) -> serde_json::Result<Value> {
    parse(data, halves::marked)
}

fn parse(text: &str, repair: fn(&str) -> Cow<'_, str>) -> serde_json::Result<Value> {
    serde_json::from_str(text).or_else(|error| match repair(text) {
        Cow::Borrowed(_) => Err(error),
        Cow::Owned(repaired) => serde_json::from_str(&repaired),
    })
}
