//! Fingerprints of JSON values.

use serde_json::Value;
use sha2::{Digest, Sha256};
use uuid::Uuid;

/// Returns the first 16 bytes of the SHA-256 of a value's text; [`with_sorted_keys`] where the order of keys must not
/// matter.
pub fn fingerprint(content: &Value) -> Uuid {
    let digest = Sha256::digest(content.to_string());
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest[..16]);
    Uuid::from_bytes(bytes)
}

/// Sorts the keys of all objects of a value.
pub fn with_sorted_keys(value: Value) -> Value {
    match value {
        Value::Array(items) => items.into_iter().map(with_sorted_keys).collect(),
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.into_iter().map(|(key, value)| (key, with_sorted_keys(value))).collect();
            fields.sort_by(|a, b| a.0.cmp(&b.0));
            Value::Object(fields.into_iter().collect())
        }
        other => other,
    }
}
