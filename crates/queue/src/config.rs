//! The settings of a connection.

use std::{fmt, path::PathBuf};

use async_nats::ServerAddr;
use redial_proto::{Tenant, User};

use crate::QueueError;

#[derive(Clone, Default)]
pub struct QueueConfig {
    /// `nats://host:port` or `tls://host:port`; several are separated by commas. May hold `user:password@`.
    pub url: String,
    /// Name of the connection in the server's monitoring.
    pub name: String,
    /// A `.creds` file.
    pub credentials: Option<PathBuf>,
    /// Prefix of reply subjects, for users that may not subscribe to `_INBOX.>`.
    pub inbox_prefix: Option<String>,
    /// The tenant of the requests of a user, part of their subjects. Default: `default`.
    pub tenant: Tenant,
    /// The user, part of these subjects. Default: `local`.
    pub user: User,
    /// The version of the messages that this process sends. Default: that of this program; tests run neighbours side by side.
    pub contract: Option<u32>,
}

impl QueueConfig {
    /// Returns the server addresses, or which part of the URL is wrong. Without user and password, because the client
    /// library would log them and does not use them.
    pub(crate) fn servers(&self) -> Result<Vec<ServerAddr>, QueueError> {
        self.parse(redact)
    }

    /// Returns the first user and password in the URL; a user alone is a token.
    pub(crate) fn login(&self) -> Result<Option<(String, Option<String>)>, QueueError> {
        let login = |server: &ServerAddr| Some((decode(server.username()?), server.password().map(decode)));
        Ok(self.parse(str::to_owned)?.iter().find_map(login))
    }

    /// Returns what must not be shown: passwords and tokens of the URL, encoded and not, and the lines of the
    /// credentials file.
    pub fn secrets(&self) -> Vec<String> {
        let urls = self.url.split(',');
        let logins =
            urls.filter_map(|url| url.split_once("://")?.1.rsplit_once('@').map(|(login, _)| login.to_owned()));
        let mut secrets: Vec<String> = logins
            .map(|login| login.split_once(':').map_or(login.clone(), |(_, password)| password.to_owned()))
            .flat_map(|password| [decode(&password), password])
            .collect();
        let file = self.credentials.as_ref().and_then(|file| std::fs::read_to_string(file).ok()).unwrap_or_default();
        // The lines between them are a token and a seed.
        let is_text = |line: &&str| line.starts_with("---") || line.starts_with('*') || line.contains(' ');
        secrets.extend(file.lines().map(str::trim).filter(|line| !is_text(line)).map(str::to_owned));
        secrets.retain(|secret| !secret.is_empty());
        secrets
    }

    fn parse(&self, prepare: impl Fn(&str) -> String) -> Result<Vec<ServerAddr>, QueueError> {
        let parse = |url: &str| {
            let wrong = |error: std::io::Error| QueueError::Url { url: redact(url), reason: error.to_string() };
            if !has_scheme(url) {
                let reason = "it does not begin with nats:// or tls://".to_owned();
                return Err(QueueError::Url { url: redact(url), reason });
            }
            prepare(url).parse().map_err(wrong)
        };
        self.url.split(',').map(|url| parse(url.trim())).collect()
    }

    /// Returns the URL without user and password, for logs and errors.
    pub fn address(&self) -> String {
        self.url.split(',').map(|url| redact(url.trim())).collect::<Vec<_>>().join(",")
    }
}

/// Never shows the password.
impl fmt::Debug for QueueConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QueueConfig")
            .field("url", &self.address())
            .field("name", &self.name)
            .field("credentials", &self.credentials)
            .field("inbox_prefix", &self.inbox_prefix)
            .field("tenant", &self.tenant)
            .field("user", &self.user)
            .field("contract", &self.contract)
            .finish()
    }
}

/// True if it has a scheme of NATS. The library takes anything else for the name of a host, and would look for it
/// without end.
fn has_scheme(url: &str) -> bool {
    let scheme = url.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
    matches!(scheme.as_deref(), Some("nats" | "tls"))
}

/// Removes the part of a URL before its last `@`.
fn redact(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").map_or(("", url), |(scheme, rest)| (scheme, rest));
    let host = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
    if scheme.is_empty() { host.to_owned() } else { format!("{scheme}://{host}") }
}

/// Decodes percent encoding (RFC 3986, 2.1); an invalid encoding stays as it is.
fn decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        let hex = tail.get(..2).and_then(|pair| str::from_utf8(pair).ok());
        let byte = hex.and_then(|pair| u8::from_str_radix(pair, 16).ok()).filter(|_| first == b'%');
        bytes.push(byte.unwrap_or(first));
        rest = if byte.is_some() { &tail[2..] } else { tail };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_never_shown() {
        let config = QueueConfig { url: "nats://me:s3cr@t@a:1, b:2,me:s3cr@c".into(), ..QueueConfig::default() };
        assert_eq!(config.address(), "nats://a:1,b:2,c");
        assert!(!format!("{config:?}").contains("s3cr"));
    }

    #[test]
    fn the_login_is_taken_from_the_url() {
        let login = |url: &str| QueueConfig { url: url.into(), ..QueueConfig::default() }.login().unwrap();
        assert_eq!(login("nats://host:1"), None);
        assert_eq!(login("nats://to%2Fken@host:1"), Some(("to/ken".into(), None)));
        assert_eq!(login("nats://a:1,nats://me:p%40s%C3%A9%@b:2"), Some(("me".into(), Some("p@sé%".into()))));
    }

    #[test]
    fn secrets_are_the_passwords_and_the_lines_of_a_credentials_file() {
        let file = std::env::temp_dir().join(format!("redial-{}.creds", std::process::id()));
        let text = "-----BEGIN NATS USER JWT-----\neyJ0.eyJq.c2-_ln\n------END NATS USER JWT------\n\n*** IMPORTANT ***\n\
                    -----BEGIN USER NKEY SEED-----\nSUACANARY\n------END USER NKEY SEED------\n";
        std::fs::write(&file, text).unwrap();
        let url = "nats://me:p%40s@a:1, nats://token@b:2,nats://c:3".to_owned();
        let config = QueueConfig { url, credentials: Some(file.clone()), ..QueueConfig::default() };
        assert_eq!(config.secrets(), ["p@s", "p%40s", "token", "token", "eyJ0.eyJq.c2-_ln", "SUACANARY"]);
        std::fs::remove_file(file).unwrap();
    }

    #[test]
    fn a_wrong_url_is_named_without_its_password() {
        let wrong = [
            ("http://me:s3cret@host:1", "http://host:1"),
            ("me:s3cret@foo", "foo"),
            ("nats://a:1,me:s3cret@b:2", "b:2"),
            ("", ""),
        ];
        for (url, shown) in wrong {
            let config = QueueConfig { url: url.into(), ..QueueConfig::default() };
            let error = config.servers().unwrap_err().to_string();
            assert!(error.starts_with(&format!("NATS URL {shown:?}: it does not begin with nats://")), "{error}");
            assert!(error.contains("; allowed: nats://host:port") && !error.contains("s3cret"), "{error}");
        }
    }
}
