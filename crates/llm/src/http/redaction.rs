//! Removes keys, header values and host names from failures.

use std::fmt;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use redial_proto::{Failure, limits};
use secrecy::{ExposeSecret, SecretString};

const SECRET: &str = "[secret]";
const HOST: &str = "[host]";
/// Suffixes of names that exist only inside a network.
const INTERNAL_SUFFIXES: [&str; 6] = [".internal", ".local", ".lan", ".corp", ".svc", ".intranet"];

/// Secrets in each form in which a provider may return them, longest first, and the provider's own host.
pub(crate) struct Redaction {
    secrets: Vec<SecretString>,
    host: String,
}

impl fmt::Debug for Redaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Redaction({} forms)", self.secrets.len())
    }
}

impl Redaction {
    pub(crate) fn new(secrets: &[String], host: &str) -> Self {
        let mut forms: Vec<String> = secrets.iter().flat_map(|secret| forms_of(secret)).collect();
        forms.retain(|form| !form.is_empty());
        forms.sort_by_key(|form| std::cmp::Reverse(form.len()));
        forms.dedup();
        Self { secrets: forms.into_iter().map(SecretString::from).collect(), host: host.to_ascii_lowercase() }
    }

    /// The failure as it may be stored and shown.
    pub(crate) fn redact(&self, mut failure: Failure) -> Failure {
        let message =
            self.secrets.iter().fold(failure.message, |text, form| text.replace(form.expose_secret(), SECRET));
        failure.message = limits::shorten(&self.without_hosts(&message), limits::MAX_ERROR_MESSAGE);
        failure
    }

    fn without_hosts(&self, text: &str) -> String {
        let in_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':');
        let mut shown = String::with_capacity(text.len());
        let mut rest = text;
        while !rest.is_empty() {
            let between = rest.find(in_name).unwrap_or(rest.len());
            shown.push_str(&rest[..between]);
            rest = &rest[between..];
            let word = &rest[..rest.find(|c| !in_name(c)).unwrap_or(rest.len())];
            let name = word.trim_matches(['.', ':', '-']);
            shown.push_str(&if self.is_host(name) { word.replacen(name, HOST, 1) } else { word.to_owned() });
            rest = &rest[word.len()..];
        }
        shown
    }

    /// Whether a word is the provider's own host, an address, an internal name, or a name with a port.
    fn is_host(&self, word: &str) -> bool {
        let lower = word.to_ascii_lowercase();
        let (name, port) = match lower.rsplit_once(':') {
            Some((name, port)) if !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()) => {
                (name, Some(port))
            }
            _ => (lower.as_str(), None),
        };
        if name.is_empty() {
            return false;
        }
        let dotted = name.contains('.') && name.contains(|c: char| c.is_ascii_alphabetic());
        name == self.host
            || name == "localhost"
            || name.parse::<std::net::Ipv4Addr>().is_ok()
            || INTERNAL_SUFFIXES.iter().any(|suffix| name.ends_with(suffix))
            || port.is_some_and(|port| dotted || port.len() >= 4)
    }
}

/// The secret unchanged, as JSON, and percent-encoded.
fn forms_of(secret: &str) -> [String; 3] {
    let quoted = serde_json::Value::from(secret).to_string();
    let in_json = quoted[1..quoted.len() - 1].to_owned();
    [secret.to_owned(), in_json, utf8_percent_encode(secret, NON_ALPHANUMERIC).to_string()]
}

#[cfg(test)]
mod tests {
    use redial_proto::ErrorClass;

    use super::*;

    #[test]
    fn secrets_and_hosts_are_removed_and_other_words_stay() {
        let redaction = Redaction::new(&["k\"ey/1".to_owned(), "k".to_owned()], "API.example.com");
        for (told, shown) in [
            (r#"bad keys: k"ey/1, k\"ey/1, k%22ey%2F1"#, "bad [secret]eys: [secret], [secret], [secret]"),
            ("https://api.Example.com/v1 said no", "https://[host]/v1 said no"),
            ("dial 10.1.2.3:443: refused", "dial [host]: refused"),
            ("upstream gpu-7.prod.svc. gone", "upstream [host]. gone"),
            ("vllm:8000 timed out at 10:30", "[host] timed out at 10:30"),
            ("see platform.openai.com/docs; error: 4.5 of 10", "see platform.openai.com/docs; error: 4.5 of 10"),
            ("主机 localhost：没有回答", "主机 [host]：没有回答"),
        ] {
            assert_eq!(redaction.redact(Failure::new(ErrorClass::Internal, told)).message, shown);
        }
        assert_eq!(format!("{redaction:?}"), "Redaction(4 forms)");
    }
}
