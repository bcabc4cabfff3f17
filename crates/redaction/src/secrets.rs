//! Removes known secrets, in every form in which a service may return them.

use std::{
    fmt,
    ops::Range,
    sync::{Arc, OnceLock},
};

use redial_proto::{ErrorClass, Failure};
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, value::RawValue};

use crate::{find::Finder, keys};

const MARK: &str = "[secret]";

/// Values that must not be stored or shown, in each form in which a service may return them. Cheap to clone.
#[derive(Clone, Default)]
pub struct Secrets(Arc<Inner>);

#[derive(Default)]
struct Inner {
    values: Vec<SecretString>,
    /// Made when it is needed first: a worker uses only the set of all its secrets.
    finder: OnceLock<Option<Finder>>,
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secrets({})", self.0.values.len())
    }
}

impl Secrets {
    /// Holds these secrets: each as it is, as JSON, percent-encoded, as HTML, and from 6 bytes on as Base64 and
    /// hexadecimal. Ignores blank ones.
    pub fn new<'a>(values: impl IntoIterator<Item = &'a SecretString>) -> Self {
        let mut values: Vec<SecretString> =
            values.into_iter().filter(|value| !value.expose_secret().trim().is_empty()).cloned().collect();
        values.sort_by(|one, other| one.expose_secret().cmp(other.expose_secret()));
        values.dedup_by(|one, other| one.expose_secret() == other.expose_secret());
        Self(Arc::new(Inner { values, finder: OnceLock::new() }))
    }

    #[must_use]
    pub fn and(&self, value: &SecretString) -> Self {
        Self::new(self.0.values.iter().chain([value]))
    }

    #[must_use]
    pub fn union(&self, others: &Self) -> Self {
        Self::new(self.0.values.iter().chain(&others.0.values))
    }

    pub fn are_within(&self, others: &Self) -> bool {
        let is_known = |value: &SecretString| {
            let found = others.0.values.binary_search_by(|other| other.expose_secret().cmp(value.expose_secret()));
            found.is_ok()
        };
        self.0.values.iter().all(is_known)
    }

    /// Keeps those of at least so many bytes. Shorter ones would be found in texts that have nothing to do with them.
    #[must_use]
    pub fn at_least(&self, bytes: usize) -> Self {
        Self::new(self.0.values.iter().filter(|value| value.expose_secret().len() >= bytes))
    }

    /// Returns the length of the longest form, in bytes.
    pub fn longest(&self) -> usize {
        self.finder().map_or(0, Finder::longest)
    }

    /// Puts `[secret]` in place of each secret.
    pub fn redact(&self, text: &str) -> String {
        keys::replaced(text, self.find(text.as_bytes()), MARK)
    }

    pub fn redact_bytes(&self, bytes: &[u8]) -> Vec<u8> {
        let mut shown = Vec::with_capacity(bytes.len());
        let mut at = 0;
        for range in self.find(bytes) {
            shown.extend_from_slice(&bytes[at..range.start]);
            shown.extend_from_slice(MARK.as_bytes());
            at = range.end;
        }
        shown.extend_from_slice(&bytes[at..]);
        shown
    }

    /// Overwrites every occurrence with `*`, byte by byte, so that offsets do not change.
    pub fn mask(&self, bytes: &mut [u8]) {
        for range in self.find(bytes) {
            bytes[range].fill(b'*');
        }
    }

    fn find(&self, text: &[u8]) -> Vec<Range<usize>> {
        self.finder().map(|finder| finder.find(text)).unwrap_or_default()
    }

    fn finder(&self) -> Option<&Finder> {
        let inner = &self.0;
        inner.finder.get_or_init(|| Finder::new(inner.values.iter().map(ExposeSecret::expose_secret))).as_ref()
    }

    /// Removes secrets from a failure's message, diagnostics and details. The message may still be over the limit.
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

    /// Removes secrets from an output; a service that echoes its request would otherwise have them recorded.
    pub fn redact_output(&self, output: Box<RawValue>) -> Result<Box<RawValue>, Failure> {
        let found = self.find(output.get().as_bytes());
        if found.is_empty() {
            return Ok(output);
        }
        RawValue::from_string(keys::replaced(output.get(), found, MARK)).or_else(|_| self.redact_values(&output))
    }

    /// Redacts value by value, for a secret that is a number or a part of JSON's own syntax.
    fn redact_values(&self, output: &RawValue) -> Result<Box<RawValue>, Failure> {
        let failed = || {
            let message = "the output contains a secret of the worker and is not valid JSON without it";
            Failure::new(ErrorClass::OutputInvalid, message)
        };
        let value: Value = serde_json::from_str(output.get()).map_err(|_| failed())?;
        let redacted = self.redact_value(value).to_string();
        if !self.find(redacted.as_bytes()).is_empty() {
            return Err(failed());
        }
        RawValue::from_string(redacted).map_err(|_| failed())
    }

    /// Removes secrets from the text of an error, also where only a part of one is shown.
    fn redact_error(&self, text: &str) -> String {
        let known = self.0.values.iter().map(ExposeSecret::expose_secret);
        keys::without_parts(&self.redact(text), known, MARK)
    }

    fn redact_value(&self, value: Value) -> Value {
        if self.0.values.is_empty() {
            return value;
        }
        match value {
            Value::String(text) => Value::String(self.redact(&text)),
            Value::Array(items) => items.into_iter().map(|item| self.redact_value(item)).collect(),
            Value::Object(object) => {
                object.into_iter().map(|(key, value)| (self.redact(&key), self.redact_value(value))).collect()
            }
            Value::Number(number) if !self.find(number.to_string().as_bytes()).is_empty() => Value::from(MARK),
            other => other,
        }
    }
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
        let number = RawValue::from_string(r#"{"pin": 123456, "more": [1, true]}"#.to_owned()).unwrap();
        let redacted = secrets(&["123456"]).redact_output(number).unwrap();
        assert_eq!(redacted.get(), r#"{"pin":"[secret]","more":[1,true]}"#);
    }

    #[test]
    fn masks_keep_offsets() {
        let mut bytes = b"xx abc abcabc y".to_vec();
        secrets(&["abc"]).mask(&mut bytes);
        assert_eq!(bytes, b"xx *** ****** y");
    }

    #[test]
    fn sets_are_joined_and_short_secrets_left_out() {
        let all = secrets(&["ab", "canary-1"]).union(&secrets(&["canary-2", " "]));
        assert_eq!(all.redact("ab canary-1 canary-2"), "[secret] [secret] [secret]");
        assert!(all.at_least(6).are_within(&all) && !all.are_within(&all.at_least(6)));
        assert_eq!(all.redact_bytes(b"\xffcanary-1ab\xff"), b"\xff[secret][secret]\xff");
        assert_eq!(all.at_least(6).redact("ab canary-1 canary-2"), "ab [secret] [secret]");
        assert_eq!(Secrets::default().redact("ab"), "ab");
    }
}
