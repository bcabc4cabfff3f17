//! Names of hosts inside a network are nobody's business outside: errors of services love to quote them.

use redial_proto::Failure;

/// What stands where a host's name stood.
const MARK: &str = "[host]";

/// Endings that exist only inside a network.
const INSIDE: [&str; 9] =
    [".internal", ".local", ".lan", ".corp", ".svc", ".localdomain", ".intranet", ".private", ".home.arpa"];

/// The failure without names of hosts; what was sent stays as it was.
pub(crate) fn redact_failure(mut failure: Failure, own: Option<&str>) -> Failure {
    failure.message = redact(&failure.message, own);
    for violation in &mut failure.details {
        violation.allowed = redact(&violation.allowed, own);
        violation.hint = violation.hint.take().map(|hint| redact(&hint, own));
    }
    failure
}

/// The text without IPv4 addresses, names that exist only inside a network, names with a port, and `own`, the host
/// that the tool talks to. Public names without a port stay.
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
        || INSIDE.iter().any(|ending| lower.ends_with(ending))
        || port.is_some_and(|port| dotted || (named && (1000..=65535).contains(&port.parse().unwrap_or(0_u32))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_go_and_words_stay() {
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
