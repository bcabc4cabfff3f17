//! The proxies of the environment.

use std::{fmt, net::IpAddr};

use hyper_util::client::proxy::matcher::Matcher;
use reqwest::{Proxy, Url};

use crate::route::Way;

/// The variables that name a proxy, in the order in which they are looked for.
const HTTP: [&str; 4] = ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"];
const HTTPS: [&str; 4] = ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];
/// The variables that name hosts without a proxy.
const NO: [&str; 2] = ["NO_PROXY", "no_proxy"];

type Variable = (&'static str, String);

/// What the environment says about proxies.
pub(crate) struct Proxies {
    http: Option<Variable>,
    https: Option<Variable>,
    /// The same for reqwest's own rules. A value that names no proxy of a known kind counts as none.
    rules: Matcher,
}

impl fmt::Debug for Proxies {
    /// Omits values, which may have a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |variable: &Option<Variable>| variable.as_ref().map(|(name, _)| *name);
        f.debug_struct("Proxies")
            .field("http", &name(&self.http))
            .field("https", &name(&self.https))
            .finish_non_exhaustive()
    }
}

impl Proxies {
    pub(crate) fn read(variable: impl Fn(&str) -> Option<String>) -> Self {
        let first = |names: &[&'static str]| {
            let mut set = names.iter().filter_map(|name| Some((*name, variable(name)?)));
            set.find(|(_, value)| !value.is_empty())
        };
        let (http, https) = (first(&HTTP), first(&HTTPS));
        let value = |variable: Option<&Variable>| variable.map(|(_, value)| value.clone()).unwrap_or_default();
        let rules = Matcher::builder()
            .http(value(http.as_ref()))
            .https(value(https.as_ref()))
            .no(value(first(&NO).as_ref()))
            .build();
        Self { http, https, rules }
    }

    /// Decides how a request gets to the host of this address.
    pub(crate) fn way(&self, url: &Url, has_secret: bool) -> Way {
        let is_encrypted = url.scheme() == "https";
        let named = if is_encrypted { &self.https } else { &self.http };
        let is_proxied = url.as_str().parse().is_ok_and(|uri| self.rules.intercept(&uri).is_some());
        match named {
            Some((variable, _)) if is_proxied && !url.host_str().is_some_and(is_loopback) => {
                match (is_encrypted, has_secret) {
                    (true, _) => Way::Tunnel(variable),
                    (false, true) => Way::KeptFrom(variable),
                    (false, false) => Way::Through(variable),
                }
            }
            _ => Way::Direct,
        }
    }

    /// Returns the proxies for a client. Only requests that [`Self::way`] sends to a proxy may use it, because it knows
    /// no exceptions.
    pub(crate) fn list(&self) -> reqwest::Result<Vec<Proxy>> {
        let usable = |scheme: &str, value: &str| {
            let rules = Matcher::builder().all(value.to_owned()).build();
            format!("{scheme}://host/").parse().is_ok_and(|uri| rules.intercept(&uri).is_some())
        };
        let http = self.http.iter().filter(|(_, value)| usable("http", value)).map(|(_, value)| Proxy::http(value));
        let https = self.https.iter().filter(|(_, value)| usable("https", value)).map(|(_, value)| Proxy::https(value));
        http.chain(https).collect()
    }
}

/// True for a host that only this machine can be: `localhost`, 127.0.0.0/8 and `::1`. What is sent there crosses no network.
#[must_use]
pub fn is_loopback(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host.strip_suffix('.').unwrap_or(host).eq_ignore_ascii_case("localhost")
        || host.parse::<IpAddr>().is_ok_and(|address| address.to_canonical().is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn way(variables: &[(&str, &str)], url: &str, has_secret: bool) -> Way {
        let read = |name: &str| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
        let proxies = Proxies::read(read);
        let way = proxies.way(&url.parse().unwrap(), has_secret);
        let used = usize::from(matches!(way, Way::Through(_) | Way::Tunnel(_)));
        assert!(proxies.list().unwrap().len() >= used, "a client has the proxy that is to be used");
        way
    }

    const BOTH: [(&str, &str); 3] = [
        ("HTTP_PROXY", "http://proxy:3128"),
        ("HTTPS_PROXY", "http://proxy:3128"),
        ("NO_PROXY", "a.example,10.0.0.0/8"),
    ];

    #[test]
    fn neither_this_machine_nor_a_secret_in_clear_text_goes_to_a_proxy() {
        for host in ["127.0.0.1:18799", "127.8.9.1", "localhost", "LOCALHOST.", "[::1]:1", "[::ffff:127.0.0.1]"] {
            for (scheme, secret) in [("http", true), ("http", false), ("https", true), ("https", false)] {
                assert_eq!(way(&BOTH, &format!("{scheme}://{host}/x"), secret), Way::Direct, "{scheme}://{host}");
            }
        }
        assert_eq!(way(&BOTH, "http://b.example/x", true), Way::KeptFrom("HTTP_PROXY"));
    }

    #[test]
    fn other_requests_follow_the_environment() {
        assert_eq!(way(&BOTH, "http://b.example/x", false), Way::Through("HTTP_PROXY"));
        for secret in [true, false] {
            assert_eq!(way(&BOTH, "https://b.example/x", secret), Way::Tunnel("HTTPS_PROXY"));
            for url in ["https://a.example/x", "https://www.a.example", "http://a.example", "http://10.1.2.3"] {
                assert_eq!(way(&BOTH, url, secret), Way::Direct, "{url}");
            }
        }
        let all = [("HTTPS_PROXY", ""), ("all_proxy", "user:word@proxy")];
        assert_eq!(way(&all, "https://b.example", true), Way::Tunnel("all_proxy"));
        assert_eq!(way(&all, "http://b.example", false), Way::Through("all_proxy"));
    }

    #[test]
    fn what_names_no_proxy_of_a_known_kind_counts_as_none() {
        for value in ["", "ftp://proxy", "http://", "not a proxy"] {
            assert_eq!(way(&[("ALL_PROXY", value)], "http://b.example", false), Way::Direct, "{value:?}");
        }
        assert_eq!(way(&[], "http://b.example", false), Way::Direct);
    }

    #[test]
    fn a_password_is_not_shown() {
        let proxies = Proxies::read(|name| Some(format!("http://me:hunter2@{}", name.to_lowercase())));
        assert_eq!(format!("{proxies:?}"), r#"Proxies { http: Some("HTTP_PROXY"), https: Some("HTTPS_PROXY"), .. }"#);
    }

    #[test]
    fn only_this_machine_is_loopback() {
        for host in
            ["localhost", "LOCALHOST", "localhost.", "127.0.0.1", "127.9.9.9", "::1", "[::1]", "[::ffff:127.0.0.1]"]
        {
            assert!(is_loopback(host), "{host}");
        }
        for host in
            ["localhost.example.com", "127.0.0.1.example.com", "10.0.0.1", "0.0.0.0", "[::]", "vllm", "128.0.0.1"]
        {
            assert!(!is_loopback(host), "{host}");
        }
    }
}
