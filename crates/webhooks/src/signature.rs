//! Signatures as in Standard Webhooks 1.0.0.

use base64::{Engine, engine::general_purpose::STANDARD};
use uuid::Uuid;

use crate::key::{WebhookKey, mac};

/// What is signed, and for whom.
#[derive(Clone, Copy, Debug)]
pub struct Signed<'a> {
    pub tenant: &'a str,
    pub webhook: Uuid,
    /// The header `webhook-id`: the same for every try of an event.
    pub id: &'a str,
    /// The header `webhook-timestamp`: when this try was made, in seconds since 1970.
    pub timestamp: i64,
    /// The body, byte for byte.
    pub body: &'a [u8],
}

/// Writes the header `webhook-signature`: a signature for each version of the secret, separated by spaces.
pub fn signed(key: &WebhookKey, what: &Signed<'_>, versions: &[u32]) -> String {
    let timestamp = what.timestamp.to_string();
    let parts: [&[u8]; 5] = [what.id.as_bytes(), b".", timestamp.as_bytes(), b".", what.body];
    let one = |version: &u32| {
        let secret = key.secret_bytes(what.tenant, what.webhook, *version);
        format!("v1,{}", STANDARD.encode(mac(&secret, &parts)))
    };
    versions.iter().map(one).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret;

    use super::*;

    #[test]
    fn each_version_signs_id_time_and_body() {
        let key = WebhookKey::new(&"k".repeat(32)).unwrap();
        let what = Signed { tenant: "acme", webhook: Uuid::from_u128(7), id: "evt_1", timestamp: 17, body: b"{}" };
        let secret = key.secret("acme", Uuid::from_u128(7), 3);
        let secret = STANDARD.decode(secret.expose_secret().strip_prefix("whsec_").unwrap()).unwrap();
        let wanted = format!("v1,{}", STANDARD.encode(mac(&secret, &[b"evt_1.17.{}"])));
        assert_eq!(signed(&key, &what, &[3]), wanted);
        let two = signed(&key, &what, &[3, 2]);
        assert!(two.starts_with(&format!("{wanted} v1,")) && two.split(' ').count() == 2, "{two}");
        for other in [
            Signed { id: "evt_2", ..what },
            Signed { timestamp: 18, ..what },
            Signed { body: b"[]", ..what },
            Signed { tenant: "globex", ..what },
        ] {
            assert_ne!(signed(&key, &other, &[3]), wanted, "{other:?}");
        }
    }
}
