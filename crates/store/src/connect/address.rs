//! The address of a database: one host or several, as libpq writes them. The library knows one only.

use sqlx::postgres::PgConnectOptions;

use crate::StoreError;

/// What stands in an error instead of a part of the address, which may be a part of a password.
const ENCODE: &str = "a password with one of `:/?#@,` in it must be percent-encoded";

#[derive(Clone, Debug)]
pub(crate) struct Address {
    /// Its hosts, at least one, in the order of the address.
    pub(crate) hosts: Vec<PgConnectOptions>,
    /// Any of them may be used, also a standby.
    pub(crate) any: bool,
}

impl Address {
    /// Reads `postgres://user:password@a:5432,b:5433/name?…`. The hosts and ports may also be the parameters `host` and
    /// `port`. Errors contain no part of the address.
    pub(crate) fn parse(url: &str) -> Result<Self, StoreError> {
        let rest = rest(url)?;
        let parts = Parts::split(rest);
        let mut any = false;
        let mut given = Given::default();
        let mut parameters = Vec::new();
        for pair in parts.query.split('&').filter(|pair| !pair.is_empty()) {
            match pair.split_once('=').unwrap_or((pair, "")) {
                ("target_session_attrs", value) => any = accepts_any(value)?,
                ("host", value) if is_list(value) => given.hosts = Some(value),
                ("port", value) if is_list(value) => given.ports = Some(value),
                _ => parameters.push(pair),
            }
        }
        let mut hosts = Vec::new();
        for (host, port) in places(&parts, &given)? {
            let parameters = parameters.iter().map(|&pair| pair.to_owned());
            let host_of_list = given.hosts.map(|_| format!("host={host}"));
            let query: Vec<String> = parameters.chain(host_of_list).collect();
            let authority = if given.hosts.is_some() { "" } else { host };
            let port = port.map(|port| format!(":{port}")).unwrap_or_default();
            let login = parts.login.map(|login| format!("{login}@")).unwrap_or_default();
            // The library takes no login or port without a host; the parameter `host` overrides this one.
            let stands_alone = authority.is_empty() && !(port.is_empty() && login.is_empty());
            let authority = if stands_alone { "localhost" } else { authority };
            let url = format!("postgres://{login}{authority}{port}{}?{}", parts.path, query.join("&"));
            // Not the library's own parameter, which poolers refuse: numbers travel in binary.
            hosts.push(url.parse::<PgConnectOptions>()?.extra_float_digits(None));
        }
        Ok(Self { hosts, any })
    }
}

/// An address behind its scheme.
struct Parts<'a> {
    /// `user:password`.
    login: Option<&'a str>,
    hosts: &'a str,
    /// With its slash.
    path: &'a str,
    query: &'a str,
}

impl<'a> Parts<'a> {
    fn split(rest: &'a str) -> Self {
        let rest = rest.split('#').next().unwrap_or_default();
        let (before, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = before.split_at(before.find('/').unwrap_or(before.len()));
        let (login, hosts) = match authority.rsplit_once('@') {
            Some((login, hosts)) => (Some(login), hosts),
            None => (None, authority),
        };
        Self { login, hosts, path, query }
    }
}

/// Lists among the parameters.
#[derive(Default)]
struct Given<'a> {
    hosts: Option<&'a str>,
    ports: Option<&'a str>,
}

/// Returns what follows the scheme. The library would take any scheme for its own.
fn rest(url: &str) -> Result<&str, StoreError> {
    match url.split_once("://") {
        Some((scheme, rest)) if ["postgres", "postgresql"].contains(&scheme.to_ascii_lowercase().as_str()) => Ok(rest),
        // What stands before :// is no secret if it is one word.
        Some((other, _)) if other.chars().all(|c| c.is_ascii_alphanumeric()) => {
            wrong(format!("it begins with {}://", other.to_ascii_lowercase()))
        }
        _ => wrong("it does not begin with postgres://".to_owned()),
    }
}

fn wrong<T>(what: String) -> Result<T, StoreError> {
    Err(StoreError::BadAddress(what))
}

fn accepts_any(value: &str) -> Result<bool, StoreError> {
    match value {
        "any" => Ok(true),
        "read-write" | "primary" => Ok(false),
        _ => wrong("target_session_attrs: allowed are read-write and primary, which mean the same, and any".to_owned()),
    }
}

fn is_list(value: &str) -> bool {
    value.contains(',') || value.to_ascii_lowercase().contains("%2c")
}

fn list(value: &str) -> Vec<&str> {
    let mut found = vec![value];
    for separator in [",", "%2C", "%2c"] {
        found = found.into_iter().flat_map(|part| part.split(separator)).collect();
    }
    found
}

/// Lists each host with its port.
fn places<'a>(parts: &Parts<'a>, given: &Given<'a>) -> Result<Vec<(&'a str, Option<&'a str>)>, StoreError> {
    let hosts = list(given.hosts.unwrap_or(parts.hosts));
    let numbers = given.ports.map(list).unwrap_or_default();
    if numbers.len() > 1 && numbers.len() != hosts.len() {
        return wrong(format!("{} hosts and {} ports", hosts.len(), numbers.len()));
    }
    let several = hosts.len() > 1;
    let mut places = Vec::new();
    for (n, host) in hosts.into_iter().enumerate() {
        if several && host.is_empty() {
            return wrong(format!("host {} of the list is empty", n + 1));
        }
        let (host, port) = if given.hosts.is_some() { (host, None) } else { host_and_port(host, n + 1)? };
        let port = numbers.get(n).copied().or(port);
        if !port.is_none_or(|port| port.parse::<u16>().is_ok_and(|port| port > 0)) {
            return wrong(format!("the port of host {} is no number from 1 to 65535; {ENCODE}", n + 1));
        }
        places.push((host, port));
    }
    Ok(places)
}

/// Splits a host and its port. An IPv6 address is in brackets, which stay.
fn host_and_port(text: &str, n: usize) -> Result<(&str, Option<&str>), StoreError> {
    let end = if text.starts_with('[') {
        match text.find(']') {
            Some(end) => end + 1,
            None => return wrong(format!("host {n} has a [ without its ]")),
        }
    } else {
        text.find(':').unwrap_or(text.len())
    };
    let (host, rest) = text.split_at(end);
    match rest.strip_prefix(':') {
        None if rest.is_empty() => Ok((host, None)),
        // libpq takes an empty one for the default.
        Some("") => Ok((host, None)),
        Some(port) if port.contains(':') => {
            wrong(format!("host {n} has several colons; an IPv6 address is written in brackets; {ENCODE}"))
        }
        Some(port) => Ok((host, Some(port))),
        None => wrong(format!("host {n} goes on after its ]; allowed: [address]:port")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places_of(url: &str) -> Vec<(String, u16)> {
        let address = Address::parse(url).unwrap();
        address.hosts.iter().map(|host| (host.get_host().to_owned(), host.get_port())).collect()
    }

    fn refused(url: &str) -> String {
        Address::parse(url).unwrap_err().to_string()
    }

    #[test]
    fn hosts_are_read_as_libpq_writes_them() {
        let two = [("a".to_owned(), 5432), ("b".to_owned(), 5433)];
        assert_eq!(places_of("postgres://me:pw@a,b:5433/db"), two);
        assert_eq!(places_of("postgresql://me@a:,b:5433/db?sslmode=disable"), two);
        assert_eq!(places_of("postgres://me@/db?host=a,b&port=5432,5433"), two);
        assert_eq!(places_of("postgres://me@/db?host=a%2Cb&port=5432%2c5433"), two);
        assert_eq!(places_of("postgres://me@a,b/db?port=5432,5433"), two);
        assert_eq!(places_of("postgres://me@a/db"), [("a".to_owned(), 5432)]);
        assert_eq!(places_of("postgres://me@a/db?host=b&port=7"), [("b".to_owned(), 7)]);
        assert_eq!(places_of("postgres://[::1]:7,[fe80::2]/db").len(), 2);
        assert_eq!(places_of("postgres://[::1]:7,b/db")[0].1, 7);
    }

    #[test]
    fn every_host_has_the_login_and_the_parameters() {
        let address = Address::parse("postgres://m%40e:p%40%2Cw@a,b/d%20b?application_name=x&sslmode=require").unwrap();
        for host in &address.hosts {
            assert_eq!((host.get_username(), host.get_database()), ("m@e", Some("d b")));
            assert_eq!(host.get_application_name(), Some("x"));
            assert!(matches!(host.get_ssl_mode(), sqlx::postgres::PgSslMode::Require));
        }
        // An unencoded comma or @ in the password is told from those of the hosts.
        assert_eq!(places_of("postgres://me:p,w@rd@a:1,b:2/db"), [("a".to_owned(), 1), ("b".to_owned(), 2)]);
    }

    #[test]
    fn a_standby_is_only_used_if_any_host_may_be() {
        let any = |attributes: &str| Address::parse(&format!("postgres://a,b/db?target_session_attrs={attributes}"));
        assert!(any("any").unwrap().any);
        assert!(!any("read-write").unwrap().any && !any("primary").unwrap().any);
        assert!(!Address::parse("postgres://a,b/db").unwrap().any);
        assert!(any("standby").unwrap_err().to_string().contains("allowed are read-write and primary"));
    }

    #[test]
    fn mistakes_are_named_without_any_part_of_the_address() {
        for (url, told) in [
            ("mysql://me:s3cret@a/db", "it begins with mysql://"),
            ("me:s3cret@a/db", "it does not begin with postgres://"),
            ("postgres://me:s3cret@a,,b/db", "host 2 of the list is empty"),
            ("postgres://me:s3cret@a,b:x/db", "the port of host 2 is no number from 1 to 65535"),
            ("postgres://me:s3cret@a:0/db", "the port of host 1 is no number"),
            ("postgres://me:s3cret@a:65536/db", "the port of host 1 is no number"),
            // The authority ends at the first slash, so that this password looks like a port.
            ("postgres://me:s3cret/w0rd@a:1/db", "the port of host 1 is no number"),
            ("postgres://me:s3cret@::1/db", "host 1 has several colons"),
            ("postgres://me:s3cret@[::1/db", "host 1 has a [ without its ]"),
            ("postgres://me:s3cret@[::1]x/db", "host 1 goes on after its ]"),
            ("postgres://me:s3cret@a,b,c/db?port=1,2", "3 hosts and 2 ports"),
        ] {
            let error = refused(url);
            assert!(error.contains(told) && !error.contains("s3cret") && !error.contains("w0rd"), "{url}: {error}");
        }
    }
}
