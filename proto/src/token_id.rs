//! Ids of tokens.

use std::{fmt, str::FromStr};

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

/// Characters of a token's id: 60 random bits.
const ID: usize = 12;
/// Characters of ids and secrets: base32 (RFC 4648, 6) in lower case.
const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// Identifies a token; no secret. It is part of the token, and made by whoever asks for it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct TokenId(String);

impl TokenId {
    /// An id of these 8 bytes, which must be random.
    pub(crate) fn of_random(random: &[u8]) -> Self {
        Self(base32(random, ID))
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for TokenId {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.len() == ID && is_base32(text) {
            return Ok(Self(text.to_owned()));
        }
        let text = crate::limits::shorten(text, 20);
        Err(format!("token id {text:?}: {ID} of the characters a to z and 2 to 7 are allowed"))
    }
}

impl<'de> Deserialize<'de> for TokenId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

impl fmt::Display for TokenId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

pub(crate) fn is_base32(text: &str) -> bool {
    text.bytes().all(|byte| ALPHABET.contains(&byte))
}

/// The first characters of these bytes in base32, without padding.
pub(crate) fn base32(bytes: &[u8], characters: usize) -> String {
    let bit = |n: usize| bytes.get(n / 8).is_some_and(|byte| byte >> (7 - n % 8) & 1 == 1);
    let index = |n: usize| (5 * n..5 * n + 5).fold(0, |index, n| index << 1 | usize::from(bit(n)));
    (0..characters).map(|n| char::from(ALPHABET[index(n)])).collect()
}
