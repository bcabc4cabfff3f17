//! The settings of a connection.

use std::{fmt, path::PathBuf};

use async_nats::ServerAddr;
use redial_proto::{Tenant, User};

use crate::QueueError;

/// How to reach NATS.
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
}

impl QueueConfig {
    /// The server addresses, or which part of the URL is wrong. Without user and password, because the client library
    /// would log them and does not use them.
    pub(crate) fn servers(&self) -> Result<Vec<ServerAddr>, QueueError> {
        self.parse(redact)
    }

    /// The first user and password in the URL; a user alone is a token.
    pub(crate) fn login(&self) -> Result<Option<(String, Option<String>)>, QueueError> {
        let login = |server: &ServerAddr| Some((decode(server.username()?), server.password().map(decode)));
        Ok(self.parse(str::to_owned)?.iter().find_map(login))
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

    /// The URL without user and password, for logs and errors.
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
            .finish()
    }
}

/// The library takes anything else for the name of a host, and would look for it without end.
fn has_scheme(url: &str) -> bool {
    let scheme = url.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
    matches!(scheme.as_deref(), Some("nats" | "tls"))
}

/// A URL without the part before its last `@`.
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
