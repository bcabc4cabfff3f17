//! Tokens: how a program that comes over HTTP says who it is. Each stands for a user of a tenant in some roles.
//!
//! A token is `rdl_<id>_<secret>`. Its secret is made by whoever asks for the token and is shown once: requests carry its
//! SHA-256 only, and so does the database. 256 random bits cannot be guessed, so a slow hash would protect nothing more.

use std::{fmt, str::FromStr};

use chrono::{DateTime, Utc};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest as _, Sha256};
use strum::{VariantArray, VariantNames};

use crate::{
    Tenant, TokenId, User, UserRole,
    names::named,
    token_id::{base32, is_base32},
};

/// What every token begins with.
pub const TOKEN_PREFIX: &str = "rdl_";
/// Characters of its secret: 256 random bits.
const SECRET: usize = 52;
/// Bytes of a hash.
const HASH: usize = 32;
/// The longest label, in characters.
pub const MAX_TOKEN_LABEL: usize = 100;
/// How long a token is valid unless something else is asked for, in seconds: 90 days.
pub const TOKEN_VALID_FOR_S: u64 = 90 * 24 * 3600;
/// The shortest and the longest that a token can be valid, in seconds: a minute, and ten years.
pub const TOKEN_VALIDITY_S: std::ops::RangeInclusive<u64> = 60..=3650 * 24 * 3600;

/// A whole token, with its secret. It is shown to whoever asked for it, once, and kept nowhere.
#[derive(Clone)]
pub struct ApiToken {
    /// Its id.
    pub id: TokenId,
    secret: String,
}

impl ApiToken {
    /// A token of these bytes, which must be random and secret.
    pub fn of_random(random: &[u8; 40]) -> Self {
        let (id, secret) = random.split_at(8);
        Self { id: TokenId::of_random(id), secret: base32(secret, SECRET) }
    }

    /// The token as its user sends it.
    pub fn text(&self) -> String {
        format!("{TOKEN_PREFIX}{}_{}", self.id, self.secret)
    }

    /// What is kept of its secret.
    pub fn hash(&self) -> TokenHash {
        TokenHash(Sha256::digest(&self.secret).into())
    }
}

/// The error does not repeat the text.
impl FromStr for ApiToken {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || format!("this is not a token; allowed: {TOKEN_PREFIX}<id>_<secret>");
        let (id, secret) = text.strip_prefix(TOKEN_PREFIX).and_then(|rest| rest.split_once('_')).ok_or_else(wrong)?;
        if secret.len() != SECRET || !is_base32(secret) {
            return Err(wrong());
        }
        Ok(Self { id: id.parse().map_err(|_| wrong())?, secret: secret.to_owned() })
    }
}

/// Never shows the secret.
impl fmt::Debug for ApiToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApiToken").field("id", &self.id).finish_non_exhaustive()
    }
}

/// The SHA-256 of a token's secret; 64 hexadecimal digits on the wire.
#[derive(Clone, Copy, Eq)]
pub struct TokenHash(pub [u8; HASH]);

/// Takes the same time wherever two hashes differ.
impl PartialEq for TokenHash {
    fn eq(&self, other: &Self) -> bool {
        let difference = self.0.iter().zip(&other.0).fold(0, |found, (a, b)| found | (a ^ b));
        std::hint::black_box(difference) == 0
    }
}

impl fmt::Debug for TokenHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenHash")
    }
}

impl Serialize for TokenHash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let digit = |nibble: u8| char::from(b"0123456789abcdef"[usize::from(nibble)]);
        let digits: String = self.0.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect();
        serializer.serialize_str(&digits)
    }
}

impl<'de> Deserialize<'de> for TokenHash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let digits = String::deserialize(deserializer)?;
        let wrong = || serde::de::Error::custom("the SHA-256 of a secret has 64 hexadecimal digits");
        let mut hash = [0; HASH];
        if digits.len() != 2 * HASH || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return Err(wrong());
        }
        for (byte, pair) in hash.iter_mut().zip(digits.as_bytes().chunks(2)) {
            let pair = str::from_utf8(pair).map_err(|_| wrong())?;
            *byte = u8::from_str_radix(pair, 16).map_err(|_| wrong())?;
        }
        Ok(Self(hash))
    }
}

impl JsonSchema for TokenHash {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "TokenHash".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "The SHA-256 of a token's secret, in hexadecimal digits.",
            "type": "string",
            "pattern": "^[0-9a-fA-F]{64}$"
        })
    }
}

/// How long a token is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TokenExpiry {
    /// For so many seconds from its creation.
    AfterSeconds(u64),
    /// Until it is revoked.
    Never,
}

impl Default for TokenExpiry {
    /// 90 days.
    fn default() -> Self {
        Self::AfterSeconds(TOKEN_VALID_FOR_S)
    }
}

impl TokenExpiry {
    /// The seconds; `None` if it does not expire.
    pub const fn seconds(self) -> Option<u64> {
        match self {
            Self::AfterSeconds(seconds) => Some(seconds),
            Self::Never => None,
        }
    }
}

/// Creates a token. Sent again with the same id and content it creates nothing, and its reply is the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TokenCreate {
    /// Its id, which you make at random: 12 of the characters a to z and 2 to 7.
    pub id: TokenId,
    /// The SHA-256 of its secret, which stays with you.
    pub sha256: TokenHash,
    /// The tenant that it is of. Only an admin of the tenant `default` may name another one than its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<Tenant>,
    /// The user that it stands for. Default: the one who asks, if the token is of the same tenant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<User>,
    /// What it may do; at least one. If there is an access file, the user must have these roles there. A token that asks must have
    /// them, too, unless it asks in the role `tokens`.
    pub roles: Vec<UserRole>,
    /// What it is for, in up to 100 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// How long it is valid: a minute to ten years, or until it is revoked. Default: 90 days. One that a token asks for ends with that
    /// one at the latest, unless the role `tokens` asks.
    #[serde(default)]
    pub expiry: TokenExpiry,
}

/// The answer to [`TokenCreate`]: what is on record of the token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TokenCreateReply {
    /// Its id.
    pub id: TokenId,
    /// The tenant that it is of.
    pub tenant: Tenant,
    /// The user that it stands for.
    pub user: User,
    /// What it may do.
    pub roles: Vec<UserRole>,
    /// When it was created.
    pub created_at: DateTime<Utc>,
    /// When it ends; none if it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<DateTime<Utc>>,
    /// The token that asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<TokenId>,
}

/// Revokes a token, and every token that was created with it, or with one of those: they are refused from then on, by a gateway that
/// knew them already within seconds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TokenRevoke {
    /// Its id. An admin of the tenant `default` may revoke the tokens of every tenant, others those of their own.
    pub id: TokenId,
    /// Revoke only this one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keep_descendants: bool,
}

/// The answer to [`TokenRevoke`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TokenRevokeReply {
    /// When it was revoked.
    pub revoked_at: DateTime<Utc>,
    /// False if it was revoked before, and so was what was to be revoked with it.
    pub changed: bool,
    /// The tokens that were created with it, or with one of those, as they are now; the oldest first.
    #[serde(default)]
    pub descendants: Vec<TokenDescendant>,
}

/// A token that was created with another one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TokenDescendant {
    /// Its id.
    pub id: TokenId,
    /// Whether it is still accepted.
    #[serde(deserialize_with = "crate::names::shown")]
    pub state: TokenState,
}

/// Whether a token is accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, VariantArray, VariantNames)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum TokenState {
    /// It is.
    Valid,
    /// Its time is over.
    Expired,
    /// It was revoked.
    Revoked,
    /// A state that this version does not know: a newer one said it.
    #[serde(skip_deserializing)]
    Other,
}

named!(TokenState, "a state of a token", other);

#[cfg(test)]
mod tests {
    use super::*;

    fn token() -> ApiToken {
        ApiToken::of_random(&std::array::from_fn(|n| u8::try_from(n * 7).unwrap_or(u8::MAX)))
    }

    #[test]
    fn a_token_is_read_as_it_was_written_and_never_shown() {
        let token = token();
        let text = token.text();
        assert_eq!(text.len(), 4 + 12 + 1 + 52);
        let read: ApiToken = text.parse().unwrap();
        assert_eq!((read.text(), read.hash()), (text.clone(), token.hash()));
        let (_, secret) = text.rsplit_once('_').unwrap();
        assert!(!format!("{token:?} {:?}", token.hash()).contains(secret));
    }

    #[test]
    fn ids_and_secrets_are_base32() {
        // The examples of RFC 4648, 10, in lower case and without padding.
        for (bytes, wanted) in [("f", "my"), ("fo", "mzxq"), ("foo", "mzxw6"), ("foobar", "mzxw6ytboi")] {
            assert_eq!(base32(bytes.as_bytes(), wanted.len()), wanted);
        }
    }

    #[test]
    fn what_is_no_token_is_refused_without_repeating_it() {
        let good = token().text();
        for text in [
            "",
            "rdl_",
            "Bearer x",
            &good[..good.len() - 1],
            &format!("{good}a"),
            &good.replace("rdl_", "rdl"),
            &good.to_uppercase(),
        ] {
            let told = text.parse::<ApiToken>().unwrap_err();
            assert_eq!(told, "this is not a token; allowed: rdl_<id>_<secret>");
        }
        for id in ["", "abcdefghijk", "abcdefghijk1", "abcdefghijkL", "abcdefghijklm"] {
            assert!(id.parse::<TokenId>().unwrap_err().contains("are allowed"), "{id}");
        }
    }

    #[test]
    fn a_hash_is_64_digits_on_the_wire() {
        let hash = token().hash();
        let json = serde_json::to_string(&hash).unwrap();
        assert_eq!(json.len(), 66);
        assert_eq!(serde_json::from_str::<TokenHash>(&json).unwrap(), hash);
        let mut other = hash;
        other.0[31] ^= 1;
        assert_ne!(other, hash);
        for wrong in [json.replace('"', "\"0"), json[..65].to_owned() + "g\"", "\"é\"".to_owned(), "3".to_owned()] {
            assert!(serde_json::from_str::<TokenHash>(&wrong).is_err(), "{wrong}");
        }
    }
}
