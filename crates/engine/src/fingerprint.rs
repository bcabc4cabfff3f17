//! Fingerprints of JSON values.

use serde_json::Value;
use sha2::{Digest, Sha256};
use uuid::Uuid;

/// The first 16 bytes of the SHA-256 of a value's text. Order the keys of objects first where their order must not
/// matter.
pub fn fingerprint(content: &Value) -> Uuid {
    let digest = Sha256::digest(content.to_string());
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest[..16]);
    Uuid::from_bytes(bytes)
}
