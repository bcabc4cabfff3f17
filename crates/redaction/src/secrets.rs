//! Removes known secrets, in every form in which a service may return them.

use std::fmt;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use redial_proto::{ErrorClass, Failure};
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, value::RawValue};

use crate::keys;

/// The replacement for a secret.
const MARK: &str = "[secret]";

/// Values that must not be stored or shown, in each form in which a service may return them. Longest first.
#[derive(Clone, Default)]
pub struct Secrets(Vec<SecretString>);

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secrets({} forms)", self.0.len())
    }
}

impl Secrets {
    /// These secrets: each as it is, as JSON, and percent-encoded. Empty ones are ignored.
    pub fn new<'a>(values: impl IntoIterator<Item = &'a SecretString>) -> Self {
        let mut forms: Vec<String> = values.into_iter().flat_map(forms_of).filter(|form| !form.is_empty()).collect();
        forms.sort_by_key(|form| std::cmp::Reverse(form.len()));
        forms.dedup();
        Self(forms.into_iter().map(SecretString::from).collect())
    }

    /// These, and one more.
    #[must_use]
    pub fn and(self, value: &SecretString) -> Self {
        Self::new(self.0.iter().chain([value]))
    }

    /// Length of the longest form, in bytes.
    pub fn longest(&self) -> usize {
        self.0.first().map_or(0, |secret| secret.expose_secret().len())
    }

    /// The text with `[secret]` in place of each secret.
    pub fn redact(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, secret| text.replace(secret.expose_secret(), MARK))
    }

    /// Overwrites every occurrence with `*`, byte by byte, so that offsets do not change; occurrences may overlap.
    pub fn mask(&self, bytes: &mut [u8]) {
        let mut found = Vec::new();
        for secret in &self.0 {
            let secret = secret.expose_secret().as_bytes();
            let windows = bytes.windows(secret.len()).enumerate();
            found.extend(windows.filter(|(_, window)| *window == secret).map(|(start, _)| start..start + secret.len()));
        }
        for range in found {
            bytes[range].fill(b'*');
        }
    }

    /// The failure without secrets, in its message, diagnostics and details. The message may still be over the limit.
    #[must_use]
    pub fn redact_failure(&self, mut failure: Failure) -> Failure {
        failure.message = self.redact_error(&failure.message);
        failure.diagnostics = failure.diagnostics.map(|text| self.redact_error(&text));
        for error in &mut failure.details {
            error.path = self.redact(&error.path);
            error.allowed = self.redact_error(&error.allowed);
            error.hint = error.hint.take().map(|hint| self.redact_error(&hint));
            error.sent = error.sent.take().map(|sent| self.redact_value(sent));
        }
        failure
    }

    /// The output without secrets; a service that echoes its request would otherwise have them recorded.
    pub fn redact_output(&self, output: Box<RawValue>) -> Result<Box<RawValue>, Failure> {
        if !self.0.iter().any(|secret| output.get().contains(secret.expose_secret())) {
            return Ok(output);
        }
        RawValue::from_string(self.redact(output.get())).map_err(|_| {
            Failure::new(
                ErrorClass::OutputInvalid,
                "the output contains a secret of the tool and is not valid JSON without it",
            )
        })
    }

    /// The text of an error without secrets, also where only a part of one is shown, and without keys of others.
    fn redact_error(&self, text: &str) -> String {
        let known = self.0.iter().map(ExposeSecret::expose_secret);
        keys::without_keys(&keys::without_parts(&self.redact(text), known, MARK), MARK)
    }

    fn redact_value(&self, value: Value) -> Value {
        if self.0.is_empty() {
            return value;
        }
        match value {
            Value::String(text) => Value::String(self.redact(&text)),
            Value::Array(items) => items.into_iter().map(|item| self.redact_value(item)).collect(),
            Value::Object(object) => {
                object.into_iter().map(|(key, value)| (self.redact(&key), self.redact_value(value))).collect()
            }
            other => other,
        }
    }
}

fn forms_of(secret: &SecretString) -> [String; 3] {
    let plain = secret.expose_secret();
    let quoted = Value::from(plain).to_string();
    let in_json = quoted[1..quoted.len() - 1].to_owned();
    [plain.to_owned(), in_json, utf8_percent_encode(plain, NON_ALPHANUMERIC).to_string()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secrets(values: &[&str]) -> Secrets {
        let values: Vec<SecretString> = values.iter().map(|value| SecretString::from(*value)).collect();
        Secrets::new(&values)
    }

    #[test]
    fn every_form_is_replaced() {
        let secrets = secrets(&["pa\"ss/wörd", "pa"]);
        let text = r#"a pa"ss/wörd b pa\"ss/wörd c pa%22ss%2Fw%C3%B6rd d"#;
        assert_eq!(secrets.redact(text), "a [secret] b [secret] c [secret] d");
        assert!(!format!("{secrets:?}").contains("pa\""));
    }

    #[test]
    fn errors_lose_parts_of_keys() {
        let secrets = secrets(&["sk-proj-abcdefGH1234567890wxyz"]);
        for (text, shown) in [
            ("Incorrect API key provided: sk-proj-abc***wxyz.", "Incorrect API key provided: [secret]."),
            ("key=sk-pr**************xyz, sorry", "key=[secret], sorry"),
            ("your api key ****wxyz is invalid", "your api key [secret] is invalid"),
            ("sk-proj-abc…wxyz and sk-proj-ab...", "[secret] and [secret]"),
            ("'sk-proj-xxxxxxxxwxyz'", "'[secret]'"),
            ("cut at sk-proj-abcdef… (cut)", "cut at [secret] (cut)"),
            ("a key that begins with sk-proj-abcdefG", "a key that begins with [secret]"),
            ("sk-proj-abcdefGH1234567890wxyz", "[secret]"),
            ("**bold** text ... of 3 * 4", "**bold** text ... of 3 * 4"),
            // Keys of others, such as those of a proxy.
            ("upstream key sk-ant-api03-9876543210abcdefgh failed", "upstream key [secret] failed"),
            ("gsk_***9876 and AIzaSyA1234567890abcdefg", "[secret] and [secret]"),
            ("Authorization: Bearer abc123def456ghi", "Authorization: Bearer [secret]"),
            ("Bearer authentication is needed; see sk-learn", "Bearer authentication is needed; see sk-learn"),
        ] {
            let failure = Failure::new(ErrorClass::Auth, text);
            assert_eq!(secrets.redact_failure(failure).message, shown);
        }
    }

    #[test]
    fn outputs_stay_json() {
        let output = RawValue::from_string(r#"{"headers":{"authorization":"Bearer abc"}}"#.to_owned()).unwrap();
        let redacted = secrets(&["abc"]).redact_output(output.clone()).unwrap();
        assert_eq!(redacted.get(), r#"{"headers":{"authorization":"Bearer [secret]"}}"#);
        assert_eq!(secrets(&["\"headers\":"]).redact_output(output).unwrap_err().class, ErrorClass::OutputInvalid);
    }

    #[test]
    fn masks_keep_offsets() {
        let mut bytes = b"xx abc abcabc y".to_vec();
        secrets(&["abc"]).mask(&mut bytes);
        assert_eq!(bytes, b"xx *** ****** y");
    }
}
