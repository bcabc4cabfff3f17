//! Removes names and addresses of hosts from errors, because errors of services often quote them.

use std::net::{Ipv4Addr, Ipv6Addr};

use redial_proto::{Failure, limits};

/// The replacement for a host.
const MARK: &str = "[host]";

/// Suffixes of names that exist only inside a network.
const INTERNAL_SUFFIXES: [&str; 9] =
    [".internal", ".local", ".lan", ".corp", ".svc", ".localdomain", ".intranet", ".private", ".home.arpa"];

/// The failure without hosts, its message within the limit. `own` is the host that requests are sent to, which may be a
/// public one. Values that were sent stay unchanged.
#[must_use]
pub fn redact_failure(mut failure: Failure, own: Option<&str>) -> Failure {
    failure.message = limits::shorten(&redact(&failure.message, own), limits::MAX_ERROR_MESSAGE);
    for error in &mut failure.details {
        error.allowed = redact(&error.allowed, own);
        error.hint = error.hint.take().map(|hint| redact(&hint, own));
    }
    failure
}

/// The text without IP addresses, internal names, names with a port, and `own`. Other public names without a
/// port stay.
fn redact(text: &str, own: Option<&str>) -> String {
    let in_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':');
    let mut shown = String::with_capacity(text.len());
    for piece in text.split_inclusive(|c| !in_word(c)) {
        let word = piece.trim_end_matches(|c| !in_word(c));
        let core = word.trim_matches(['.', ':', '-']);
        if is_host(core, own) {
            shown.push_str(&piece.replacen(core, MARK, 1));
        } else {
            shown.push_str(piece);
        }
    }
    shown
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
        || lower.parse::<Ipv4Addr>().is_ok()
        || word.parse::<Ipv6Addr>().is_ok()
        || INTERNAL_SUFFIXES.iter().any(|suffix| lower.ends_with(suffix))
        || port.is_some_and(|port| dotted || (named && (1000..=65535).contains(&port.parse().unwrap_or(0_u32))))
}

#[cfg(test)]
mod tests {
    use redial_proto::ErrorClass;

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
            ("主机 localhost：没有回答", "主机 [host]：没有回答"),
            ("dial 10.1.2.3:443: refused", "dial [host]: refused"),
            ("upstream gpu-7.prod.svc. gone", "upstream [host]. gone"),
            ("gpu.localdomain, gpu.private and gpu.home.arpa", "[host], [host] and [host]"),
            ("vllm:8000 timed out at 10:30", "[host] timed out at 10:30"),
            ("connect to [fe80::7]:8000 or 2001::1234", "connect to [[host]]:8000 or [host]"),
            ("see platform.openai.com/docs; error: 4.5 of 10", "see platform.openai.com/docs; error: 4.5 of 10"),
            (" .: ..", " .: .."),
        ] {
            assert_eq!(redact(text, Some("shop.example.org")), shown);
        }
    }

    #[test]
    fn a_long_message_is_cut_after_its_hosts_are_removed() {
        let host = "db-7.prod.internal:5432 ";
        let text = host.repeat(limits::MAX_ERROR_MESSAGE);
        let message = redact_failure(Failure::new(ErrorClass::Unavailable, text), None).message;
        assert!(message.len() <= limits::MAX_ERROR_MESSAGE && !message.contains("db"), "{message}");
    }
}
