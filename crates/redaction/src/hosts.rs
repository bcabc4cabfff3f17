//! Removes names and addresses of hosts from errors, because errors of services often quote them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use redial_proto::{Failure, limits};

/// The replacement for a host.
const MARK: &str = "[host]";

/// Suffixes of names that exist only inside a network.
const INTERNAL_SUFFIXES: [&str; 9] =
    [".internal", ".local", ".lan", ".corp", ".svc", ".localdomain", ".intranet", ".private", ".home.arpa"];

/// Most parts between colons of a word that are read as an IPv6 address, and most parts before one.
const MAX_COLONS: usize = 16;

/// The failure without hosts, its message and diagnostics within the limit. `own` is the host that requests are sent to,
/// which may be a public one. Values that were sent stay unchanged.
#[must_use]
pub fn redact_failure(mut failure: Failure, own: Option<&str>) -> Failure {
    failure.message = limits::shorten(&redact(&failure.message, own), limits::MAX_ERROR_MESSAGE);
    failure.diagnostics =
        failure.diagnostics.map(|text| limits::shorten(&redact(&text, own), limits::MAX_ERROR_MESSAGE));
    for error in &mut failure.details {
        error.allowed = redact(&error.allowed, own);
        error.hint = error.hint.take().map(|hint| redact(&hint, own));
    }
    failure
}

/// True for a host that only this machine can be: `localhost`, 127.0.0.0/8 and `::1`. What is sent there crosses no network.
#[must_use]
pub fn is_loopback(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host.strip_suffix('.').unwrap_or(host).eq_ignore_ascii_case("localhost")
        || host.parse::<IpAddr>().is_ok_and(|address| address.to_canonical().is_loopback())
}

/// The text without IP addresses, internal names, names with a port, and `own`, also inside longer words. Other public
/// names without a port stay.
fn redact(text: &str, own: Option<&str>) -> String {
    let in_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':');
    let mut shown = String::with_capacity(text.len());
    for piece in text.split_inclusive(|c| !in_word(c)) {
        let word = piece.trim_end_matches(|c| !in_word(c));
        let core = word.trim_matches(['.', ':', '-', '_']);
        if core.is_empty() {
            shown.push_str(piece);
        } else if is_host(core, own) {
            shown.push_str(&piece.replacen(core, MARK, 1));
        } else {
            shown.push_str(&piece.replacen(core, &inside(core, own), 1));
        }
    }
    shown
}

fn is_host(word: &str, own: Option<&str>) -> bool {
    let (name, port) = match word.rsplit_once(':') {
        Some((name, port)) if is_port(port) => (name, Some(port)),
        _ => (word, None),
    };
    let lower = name.to_ascii_lowercase();
    let named = lower.contains(|c: char| c.is_ascii_alphabetic());
    let dotted = named && lower.contains('.');
    lower == "localhost"
        || own.is_some_and(|own| own.eq_ignore_ascii_case(name))
        || lower.parse::<Ipv4Addr>().is_ok()
        || word.parse::<Ipv6Addr>().is_ok()
        || (!name.contains(':') && INTERNAL_SUFFIXES.iter().any(|suffix| lower.ends_with(suffix)))
        || (!name.contains(':') && port.is_some_and(|port| dotted || (named && is_service_port(port))))
}

fn is_port(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether a name with this port is a host even if it has no dot: smaller numbers are times, lines and states.
fn is_service_port(port: &str) -> bool {
    (1000..=65535).contains(&port.parse().unwrap_or(0_u32))
}

/// A word that is not a host, with the hosts that are parts of it replaced: `tcp:10.0.0.7:80:refused`.
fn inside(word: &str, own: Option<&str>) -> String {
    let parts: Vec<&str> = word.split(':').collect();
    let mut shown: Vec<String> = Vec::new();
    let mut n = 0;
    while let Some(part) = parts.get(n) {
        let port = parts.get(n + 1).filter(|port| is_port(port));
        if n > 0 && n < MAX_COLONS && !part.is_empty() && !parts[n - 1].is_empty() && is_ipv6(&parts[n..]) {
            shown.push(MARK.to_owned());
            break;
        }
        let with_port = port.map(|port| format!("{part}:{port}")).filter(|pair| parts.len() > 2 && is_host(pair, own));
        let redacted = if is_host(part, own) { MARK.to_owned() } else { parts_of_name(part, own) };
        // The port of a host says nothing without it, but it belongs to the address.
        let ends_with_host = redacted.ends_with(MARK);
        n += 1 + usize::from(port.is_some() && (with_port.is_some() || ends_with_host));
        shown.push(if with_port.is_some() { MARK.to_owned() } else { redacted });
    }
    shown.join(":")
}

fn is_ipv6(parts: &[&str]) -> bool {
    parts.len() <= MAX_COLONS && parts.join(":").parse::<Ipv6Addr>().is_ok()
}

/// A word without colons, with the addresses and the internal names in it replaced: `db-10.0.0.7x`,
/// `db.internal-refused`.
fn parts_of_name(word: &str, own: Option<&str>) -> String {
    let mut word = without_names(word, own);
    let mut at = 0;
    while let Some(found) = word[at..].find(|c: char| c.is_ascii_digit()) {
        let begin = at + found;
        let length = word[begin..].bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b'.').count();
        let number = word[begin..begin + length].trim_end_matches('.');
        at = begin + length;
        if number.parse::<Ipv4Addr>().is_ok() {
            let end = begin + number.len();
            word.replace_range(begin..end, MARK);
            at = begin + MARK.len();
        }
    }
    word
}

/// The word with each name that ends in an internal suffix, `localhost` and the own host replaced up to that end, if a
/// separator follows.
fn without_names(word: &str, own: Option<&str>) -> String {
    let lower = word.to_ascii_lowercase();
    let own = own.map(str::to_ascii_lowercase).filter(|own| !own.is_empty());
    let mut shown = String::new();
    let mut begin = 0;
    for (at, _) in word.char_indices().chain([(word.len(), ' ')]).skip(1) {
        let ends = at == word.len() || matches!(word.as_bytes()[at], b'-' | b'_');
        let name = &lower[begin..at];
        let whole = |known: &str| {
            let before = name.strip_suffix(known).map(|before| before.bytes().next_back());
            before.is_some_and(|before| before.is_none_or(|byte| matches!(byte, b'-' | b'_' | b'.')))
        };
        let is_name = INTERNAL_SUFFIXES.iter().any(|suffix| name.len() > suffix.len() && name.ends_with(suffix));
        if ends && is_name {
            shown.push_str(MARK);
            begin = at;
        } else if ends && let Some(known) = ["localhost"].into_iter().chain(own.as_deref()).find(|known| whole(known)) {
            shown.push_str(&word[begin..at - known.len()]);
            shown.push_str(MARK);
            begin = at;
        }
    }
    shown.push_str(&word[begin..]);
    shown
}

#[cfg(test)]
mod tests {
    use redial_proto::ErrorClass;

    use super::*;

    #[test]
    fn hosts_are_removed_and_other_words_stay() {
        let marked =
            |mark| include_str!("hosts/texts.txt").lines().filter_map(move |line: &str| line.strip_prefix(mark));
        for (text, shown) in marked("> ").zip(marked("= ")) {
            assert_eq!(redact(text, Some("shop.example.org")), shown);
        }
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

    #[test]
    fn a_long_message_is_cut_after_its_hosts_are_removed() {
        let host = "db-7.prod.internal:5432 ";
        let text = host.repeat(limits::MAX_ERROR_MESSAGE);
        let message = redact_failure(Failure::new(ErrorClass::Unavailable, text), None).message;
        assert!(message.len() <= limits::MAX_ERROR_MESSAGE && !message.contains("db"), "{message}");
    }
}
