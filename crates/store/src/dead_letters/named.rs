//! What a message that could not be processed names: calls, conversations. It may be any bytes, so what cannot be read is
//! searched for as text. Pure, and linear in the size of the message.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::value::RawValue;
use uuid::Uuid;

/// How the field with a call's id begins, in every form of a report.
const CALL: &[u8] = b"\"call";

/// What a submission, or one of a batch, says about where it belongs.
#[derive(Deserialize)]
struct Entry {
    conversation: Option<serde_json::Value>,
}

/// A batch has nothing else that matters here.
#[derive(Deserialize)]
struct Batch<'a> {
    #[serde(borrow, default)]
    calls: Option<Vec<&'a RawValue>>,
}

/// Returns the calls that a message of reports names: the ids in fields whose name begins with `call`.
pub(crate) fn calls_named(payload: &[u8]) -> Vec<Uuid> {
    let mut calls = BTreeSet::new();
    let mut rest = payload;
    while let Some(at) = find(rest, CALL) {
        rest = &rest[at + CALL.len()..];
        calls.extend(id_of_field(rest));
    }
    calls.into_iter().collect()
}

/// Reads the id behind the name of a field, of which the beginning was read: `_id": "…"`.
fn id_of_field(rest: &[u8]) -> Option<Uuid> {
    let name = rest.iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_').count();
    let value = rest.get(name..)?.strip_prefix(b"\"")?.trim_ascii_start().strip_prefix(b":")?.trim_ascii_start();
    let id = value.strip_prefix(b"\"")?;
    let end = id.iter().take(64).position(|byte| *byte == b'"')?;
    Uuid::try_parse_ascii(&id[..end]).ok()
}

/// True if a rejected message of the intake stream is of this tenant, and it or one of its batch is of this conversation. One that
/// cannot be read is of the conversation if it holds the name. `sender`: its tenant; of a message without one, nothing but the
/// names in it can tell.
pub(crate) fn is_of(tenant: &str, conversation: Option<&str>, sender: Option<&str>, payload: &[u8]) -> bool {
    let is_tenants = sender.map_or_else(|| holds(payload, tenant), |sender| sender == tenant);
    is_tenants && conversation.is_none_or(|conversation| names(conversation, payload))
}

fn names(conversation: &str, payload: &[u8]) -> bool {
    match entries(payload) {
        Some(entries) => entries.iter().any(|entry| entry.conversation() == Some(conversation)),
        None => holds(payload, conversation),
    }
}

impl Entry {
    fn conversation(&self) -> Option<&str> {
        self.conversation.as_ref().and_then(serde_json::Value::as_str)
    }
}

/// Reads the submissions of a message; `None` if one of them cannot be read.
fn entries(payload: &[u8]) -> Option<Vec<Entry>> {
    if payload.trim_ascii_start().first() != Some(&b'{') {
        return None;
    }
    let batch: Batch<'_> = serde_json::from_slice(payload).ok()?;
    match batch.calls {
        Some(calls) => calls.iter().map(|call| serde_json::from_str(call.get()).ok()).collect(),
        None => Some(vec![serde_json::from_slice(payload).ok()?]),
    }
}

/// True if the message holds this text as a string of JSON.
fn holds(payload: &[u8], text: &str) -> bool {
    serde_json::to_string(text).is_ok_and(|text| find(payload, text.as_bytes()).is_some())
}

/// Finds where a text begins; names are short, so each byte is looked at a few times.
fn find(text: &[u8], wanted: &[u8]) -> Option<usize> {
    text.windows(wanted.len()).position(|part| part == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "01936b1c-0000-7000-8000-000000000001";
    const OTHER: &str = "01936b1c-0000-7000-8000-000000000002";

    #[test]
    fn calls_are_found_in_every_form_of_a_report() {
        let texts = [
            format!(r#"{{"worker":"w","reports":[{{"call":"{ID}","attempt":1}},{{"call" : "{OTHER}"}}]}}"#),
            format!(r#"{{"reports":[{{"call_id": "{ID}","claim":"{OTHER}"}}, {{"callId":"{OTHER}"}}, {{"call":7}}"#),
            format!("\u{0}\"call\":\"{ID}\" \"call\" \"callx\":\"no id\" \"call\":\"{OTHER}\" \"call"),
        ];
        let ids: Vec<Uuid> = [ID, OTHER].map(|id| id.parse().unwrap()).to_vec();
        for text in texts {
            assert_eq!(calls_named(text.as_bytes()), ids, "{text}");
        }
        assert!(calls_named(format!(r#"{{"claim":"{ID}","caller":"x"}}"#).as_bytes()).is_empty());
        assert!(calls_named(&CALL.repeat(100_000)).is_empty());
    }

    #[test]
    fn a_submission_is_of_its_sender_and_its_conversation() {
        let (acme, lie) =
            (Some("acme"), br#"{"tool":"x","tenant":"other","conversation":"c1","arguments":{"n":1e999999}}"#);
        let batch = br#"{"calls":[{"tool":"x","conversation":"c2"},{"tool":"x","conversation":"c1"}]}"#.as_slice();
        for payload in [lie.as_slice(), batch] {
            assert!(is_of("acme", None, acme, payload) && is_of("acme", Some("c1"), acme, payload));
            assert!(!is_of("acme", Some("c"), acme, payload));
            assert!(!is_of("other", None, acme, payload) && !is_of("other", Some("c1"), acme, payload));
        }
        assert!(is_of("acme", Some("c2"), acme, batch) && !is_of("acme", Some("c2"), acme, lie));
        // Only what nobody is known to have sent is searched for the tenant.
        assert!(is_of("other", Some("c1"), None, lie) && !is_of("acme", Some("c1"), None, lie));
        assert!(!is_of("acme", None, None, batch));
    }

    #[test]
    fn what_cannot_be_read_is_searched() {
        let (acme, cut) = (Some("acme"), br#"{"tool":"x","conversation":"c1","argu"#);
        assert!(is_of("acme", None, acme, cut) && is_of("acme", Some("c1"), acme, cut));
        assert!(!is_of("acme", Some("c"), acme, cut) && !is_of("acme", None, None, cut));
        assert!(is_of("acme", None, acme, b"\xff garbage") && !is_of("acme", Some("c1"), acme, b"\xff garbage"));
        assert!(is_of("acme", Some("c1"), acme, br#"{"conversation":"c0","conversation":"c1"}"#));
        let deep = [b"{\"a\":".repeat(100_000), br#""conversation":"c1""#.to_vec()].concat();
        assert!(is_of("acme", Some("c1"), acme, &deep));
    }
}
