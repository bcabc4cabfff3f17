//! The URLs of webhooks.

use std::net::IpAddr;

use url::{Host, Url};

use crate::address::Allowed;

/// In bytes.
pub const MAX_URL: usize = 2_000;

/// Why nothing is delivered to a URL.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// It is not encrypted.
    #[error("the scheme of the URL is http; https is needed, unless an operator allows the host with webhook_allow")]
    Plain,
    /// Its host is not on the public internet.
    #[error("the host of the URL is not on the public internet; an operator may allow it with webhook_allow")]
    Private,
    /// It cannot be read any more.
    #[error("{0}")]
    Invalid(String),
}

/// Checks a URL that a user gives; the error says what is allowed. Where its host is, and whether it may be reached, is checked
/// whenever something is delivered.
pub fn check_url(text: &str) -> Result<(), String> {
    read(text).map(|_| ())
}

fn read(text: &str) -> Result<Url, String> {
    let allowed = "allowed: https://host/path, or http:// for a host that an operator allows";
    if text.len() > MAX_URL {
        return Err(format!("url takes {} bytes; allowed: {MAX_URL}", text.len()));
    }
    let url = Url::parse(text).map_err(|error| format!("url cannot be read ({error}); {allowed}"))?;
    if !["http", "https"].contains(&url.scheme()) {
        return Err(format!("url has the scheme {:?}; {allowed}", url.scheme()));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(format!("url contains a user or password, which would be on record; {allowed}"));
    }
    if url.fragment().is_some() {
        return Err(format!("url has a fragment (#…), which is never sent; {allowed}"));
    }
    match url.host() {
        Some(_) if url.port() != Some(0) => Ok(url),
        Some(_) => Err(format!("url has the port 0; {allowed}")),
        None => Err(format!("url has no host; {allowed}")),
    }
}

/// Checks, before anything is sent, what can be known without asking for the addresses of the host: the scheme, and a host that
/// is an address. The addresses of a name must be checked when the connection is made.
pub fn check_target(text: &str, allowed: &Allowed) -> Result<Url, Refused> {
    let url = read(text).map_err(Refused::Invalid)?;
    let address = match url.host() {
        Some(Host::Ipv4(address)) => Some(IpAddr::V4(address)),
        Some(Host::Ipv6(address)) => Some(IpAddr::V6(address)),
        Some(Host::Domain(_)) | None => None,
    };
    if address.is_some_and(|address| !allowed.may_reach(address)) {
        return Err(Refused::Private);
    }
    let is_allowed = match address {
        Some(address) => allowed.contains(address),
        None => url.host_str().is_some_and(|host| allowed.names(host)),
    };
    if url.scheme() == "http" && !is_allowed {
        return Err(Refused::Plain);
    }
    Ok(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_url_says_what_is_allowed() {
        assert_eq!(check_url("https://example.com/hooks?x=1"), Ok(()));
        assert_eq!(check_url("http://[::1]:8080/"), Ok(()), "an operator may allow it");
        for (url, says) in [
            ("ftp://example.com", "the scheme \"ftp\""),
            ("example.com", "cannot be read"),
            ("https://", "cannot be read"),
            ("https://me:pass@example.com", "user or password"),
            ("https://example.com/#x", "fragment"),
            ("https://example.com:0/", "port 0"),
            ("file:///etc/passwd", "the scheme \"file\""),
            ("data:text/plain,x", "the scheme \"data\""),
        ] {
            let error = check_url(url).unwrap_err();
            assert!(error.contains(says) && error.contains("allowed: https://host/path"), "{url}: {error}");
        }
        let long = check_url(&format!("https://example.com/{}", "x".repeat(2_000))).unwrap_err();
        assert_eq!(long, "url takes 2020 bytes; allowed: 2000");
    }

    #[test]
    fn only_encrypted_targets_on_the_internet_unless_allowed() {
        let none = Allowed::default();
        for (url, refused) in [
            ("http://example.com/", true),
            ("https://example.com/", false),
            ("https://127.0.0.1/", true),
            ("https://2130706433/", true),
            ("https://0x7f.1/", true),
            ("https://[::ffff:127.0.0.1]/", true),
            ("https://[::1]/", true),
            ("https://169.254.169.254/latest", true),
            ("https://8.8.8.8/", false),
            ("http://8.8.8.8/", true),
        ] {
            assert_eq!(check_target(url, &none).is_err(), refused, "{url}");
        }
        let some: Allowed = "127.0.0.0/8,hooks.internal".parse().unwrap();
        for url in ["http://127.0.0.1:9/", "http://hooks.internal/x", "https://127.1/"] {
            assert!(check_target(url, &some).is_ok(), "{url}");
        }
        assert_eq!(check_target("http://10.0.0.1/", &some), Err(Refused::Private));
        assert_eq!(check_target("http://localhost/", &some), Err(Refused::Plain), "a name is allowed by its name");
    }
}
