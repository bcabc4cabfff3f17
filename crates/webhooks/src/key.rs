//! The key that the secrets of all webhooks are derived from.

use std::fmt::{self, Write as _};

use base64::{Engine, engine::general_purpose::STANDARD};
use hmac::{Hmac, KeyInit, Mac};
use secrecy::{ExposeSecret, SecretSlice, SecretString};
use sha2::Sha256;
use uuid::Uuid;

/// Fewest bytes of a key.
const MIN_KEY: usize = 32;
/// Most bytes of a key.
const MAX_KEY: usize = 1024;
/// Bytes of [`WebhookKey::id`], before they are written as hexadecimal digits.
const ID: usize = 6;

/// Why a text is no key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it has {found} bytes; allowed: {MIN_KEY} to {MAX_KEY}, such as the output of `openssl rand -base64 32`")]
pub struct KeyError {
    /// In bytes.
    pub found: usize,
}

/// The key that the secrets of all webhooks are derived from. Whoever has it can sign for every tenant.
#[derive(Clone)]
pub struct WebhookKey(SecretSlice<u8>);

impl fmt::Debug for WebhookKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WebhookKey({})", self.id())
    }
}

impl WebhookKey {
    /// Takes the bytes of a text as a key.
    pub fn new(text: &str) -> Result<Self, KeyError> {
        let text = text.trim();
        if (MIN_KEY..=MAX_KEY).contains(&text.len()) {
            Ok(Self(text.as_bytes().to_vec().into()))
        } else {
            Err(KeyError { found: text.len() })
        }
    }

    /// Returns what tells one key from another and nothing else about it: on record with each webhook, so that a worker
    /// with another key says so, and does not send signatures that nobody can verify.
    pub fn id(&self) -> String {
        let digest = mac(self.0.expose_secret(), &[b"redial webhook key id"]);
        digest[..ID].iter().fold(String::with_capacity(2 * ID), |mut id, byte| {
            // Writing to a String cannot fail.
            let _ = write!(id, "{byte:02x}");
            id
        })
    }

    /// Returns the secret of a version of a webhook, as its receiver gets it: `whsec_` and Base64.
    pub fn secret(&self, tenant: &str, webhook: Uuid, version: u32) -> SecretString {
        format!("whsec_{}", STANDARD.encode(self.secret_bytes(tenant, webhook, version))).into()
    }

    /// Returns the secret as bytes, which sign.
    pub(crate) fn secret_bytes(&self, tenant: &str, webhook: Uuid, version: u32) -> [u8; 32] {
        // No part can run into the next one: a tenant's name has no '|', and the others have a fixed form.
        let parts: [&[u8]; 5] = [tenant.as_bytes(), b"|", webhook.as_bytes(), b"|", &version.to_be_bytes()];
        mac(self.0.expose_secret(), &parts)
    }
}

/// Computes HMAC-SHA256 of the parts, one behind the other.
pub(crate) fn mac(key: &[u8], parts: &[&[u8]]) -> [u8; 32] {
    // Shorter and longer keys are padded and hashed (RFC 2104), so every length is allowed.
    let Ok(mac) = Hmac::<Sha256>::new_from_slice(key) else { return [0; 32] };
    parts.iter().fold(mac, Mac::chain_update).finalize().into_bytes().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(letter: &str) -> WebhookKey {
        WebhookKey::new(&letter.repeat(32)).unwrap()
    }

    /// RFC 4231, test case 2.
    #[test]
    fn the_mac_is_that_of_the_rfc() {
        let digest = mac(b"Jefe", &[b"what do ya want ", b"for nothing?"]);
        let hex = digest.map(|byte| format!("{byte:02x}")).concat();
        assert_eq!(hex, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    }

    #[test]
    fn every_tenant_webhook_version_and_key_has_a_secret_of_its_own() {
        let (one, other) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let secret = |key: &WebhookKey, tenant, webhook, version| {
            key.secret(tenant, webhook, version).expose_secret().to_owned()
        };
        let all = [
            secret(&key("a"), "acme", one, 1),
            secret(&key("a"), "globex", one, 1),
            secret(&key("a"), "acme", other, 1),
            secret(&key("a"), "acme", one, 2),
            secret(&key("b"), "acme", one, 1),
        ];
        let distinct: std::collections::BTreeSet<_> = all.iter().collect();
        assert_eq!(distinct.len(), all.len());
        assert!(all.iter().all(|secret| secret.starts_with("whsec_") && secret.len() == 50), "{all:?}");
        assert_eq!(all[0], secret(&key("a"), "acme", one, 1), "it can be derived again");
    }

    #[test]
    fn a_short_key_is_refused_and_a_key_is_never_shown() {
        let error = WebhookKey::new("short").unwrap_err();
        assert!(error.to_string().starts_with("it has 5 bytes; allowed: 32 to 1024"), "{error}");
        let shown = format!("{:?}", key("a"));
        assert!(!shown.contains("aaaa") && shown.contains(&key("a").id()), "{shown}");
        assert_ne!(key("a").id(), key("b").id());
    }
}
