//! Removes names of internal hosts from errors, because errors of services often quote them.

use redial_proto::Failure;

/// The replacement for a host name.
const MARK: &str = "[host]";

/// Suffixes of names that exist only inside a network.
const INTERNAL_SUFFIXES: [&str; 9] =
    [".internal", ".local", ".lan", ".corp", ".svc", ".localdomain", ".intranet", ".private", ".home.arpa"];

/// The failure without host names; values that were sent stay unchanged.
pub(crate) fn redact_failure(mut failure: Failure, own: Option<&str>) -> Failure {
    failure.message = redact(&failure.message, own);
    for error in &mut failure.details {
        error.allowed = redact(&error.allowed, own);
        error.hint = error.hint.take().map(|hint| redact(&hint, own));
    }
    failure
}

/// The text without IPv4 addresses, internal names, names with a port, and `own`, the host that the tool sends requests
/// to. Public names without a port stay.
pub(crate) fn redact(text: &str, own: Option<&str>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut word = String::new();
    for c in text.chars() {
        if c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':') {
            word.push(c);
        } else {
            out.push_str(&without_host(&word, own));
            word.clear();
            out.push(c);
        }
    }
    out.push_str(&without_host(&word, own));
    out
}

fn without_host(word: &str, own: Option<&str>) -> String {
    let core = word.trim_matches(['.', ':', '-']);
    if core.is_empty() || !is_host(core, own) {
        return word.to_owned();
    }
    word.replacen(core, MARK, 1)
}

fn is_host(word: &str, own: Option<&str>) -> bool {
    let (name, port) = match word.rsplit_once(':') {
        Some((name, port)) if !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()) => (name, Some(port)),
        _ => (word, None),
    };
    let lower = name.to_ascii_lowercase();
    let named = lower.contains(|c: char| c.is_ascii_alphabetic());
    let dotted = named && lower.contains('.');
    lower == "localhost"
        || own.is_some_and(|own| own.eq_ignore_ascii_case(name))
        || lower.parse::<std::net::Ipv4Addr>().is_ok()
        || INTERNAL_SUFFIXES.iter().any(|suffix| lower.ends_with(suffix))
        || port.is_some_and(|port| dotted || (named && (1000..=65535).contains(&port.parse().unwrap_or(0_u32))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_removed_and_other_words_stay() {
        for (text, shown) in [
            ("dial tcp 10.0.3.17:5432: refused", "dial tcp [host]: refused"),
            ("could not reach http://db-7.prod.internal:5432/x", "could not reach http://[host]/x"),
            ("upstream payments-v2:8080 timed out", "upstream [host] timed out"),
            ("getaddrinfo redis.default.svc.cluster.local.", "getaddrinfo [host]."),
            ("localhost refused", "[host] refused"),
            ("host \"Shop.Example.org\" said no", "host \"[host]\" said no"),
            ("see https://docs.example.com/errors", "see https://docs.example.com/errors"),
            ("at 10:30 line 5: status:503, version 1.2.3", "at 10:30 line 5: status:503, version 1.2.3"),
            ("row 17:2048, order:123456", "row 17:2048, order:123456"),
            ("没有 db.corp 了。", "没有 [host] 了。"),
        ] {
            assert_eq!(redact(text, Some("shop.example.org")), shown);
        }
    }
}
