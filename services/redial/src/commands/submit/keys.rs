//! Keys of lines that have none of their own.

use std::collections::HashMap;

use sha2::{Digest, Sha256};
use uuid::Uuid;

/// Makes a key of the file's name, the line's text, and how many equal lines came before it. So other lines that are
/// inserted, deleted or moved change no key, and two equal lines are two calls.
#[derive(Debug)]
pub(super) struct Keys {
    name: String,
    /// How often each text occurred, by its digest: 20 bytes for each text.
    seen: HashMap<[u8; 16], u32>,
}

impl Keys {
    /// `name` is the same in each run with the file.
    pub(super) fn new(name: String) -> Self {
        Self { name, seen: HashMap::new() }
    }

    pub(super) fn next(&mut self, line: &[u8]) -> String {
        let text = digest(&[self.name.as_bytes(), &[0], line]);
        let before = self.seen.entry(text).or_default();
        let key = digest(&[&text, &before.to_le_bytes()]);
        *before = before.saturating_add(1);
        format!("file-{}", Uuid::from_bytes(key).simple())
    }
}

fn digest(parts: &[&[u8]]) -> [u8; 16] {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part);
    }
    let whole: [u8; 32] = hash.finalize().into();
    let mut half = [0; 16];
    half.copy_from_slice(&whole[..16]);
    half
}
