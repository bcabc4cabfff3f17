//! How fields of messages are read that are missing or `null`.

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// The default of fields that are true unless a message says otherwise.
pub(crate) const fn yes() -> bool {
    true
}

/// A field that is there is there, even if it is `null`: that is a result like any other.
pub(crate) fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Box<RawValue>>, D::Error> {
    Box::<RawValue>::deserialize(deserializer).map(Some)
}
