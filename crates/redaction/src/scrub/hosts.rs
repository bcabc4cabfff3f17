//! Names and addresses of machines.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::rule::{Hit, Kind, Rule, any};

/// Endings of source files, whose names may be followed by a line.
const CODE: [&str; 12] = ["py", "rs", "js", "mjs", "ts", "java", "kt", "go", "rb", "php", "cs", "cpp"];
/// Usual names of services.
const SERVICES: [&str; 24] = [
    "redis",
    "postgres",
    "postgresql",
    "mysql",
    "mariadb",
    "mongo",
    "mongodb",
    "kafka",
    "rabbitmq",
    "nats",
    "elasticsearch",
    "memcached",
    "etcd",
    "consul",
    "vault",
    "db",
    "database",
    "backend",
    "gateway",
    "proxy",
    "minio",
    "zookeeper",
    "cassandra",
    "clickhouse",
];

/// Finds one name, wherever it stands, with its port.
pub(super) fn own(name: &str) -> Rule {
    host(&format!(r"(?i)(?P<x>{}(?::\d{{1,5}})?)", regex::escape(name)), is_free)
}

pub(super) fn rules() -> Vec<Rule> {
    let mut rules = connection_strings();
    rules.extend(names());
    rules
}

/// Finds `host=db port=5432`, `Server=db;`, and URLs of every scheme.
fn connection_strings() -> Vec<Rule> {
    vec![
        host(r#"(?i)\b(?:host|hostname|hostaddr|server|data source)=(?P<x>[^\s,;&"'()\[\]{}]+)"#, any),
        Rule::new(Kind::Secret, r"(?i)\bport\s*[:=]?\s*(?P<x>[0-9]{2,5})", any),
        host(
            r#"(?i)\b(?:https?|wss?|ftp)://(?P<x>\[[0-9a-f:.]+\](?::\d+)?|[^\s/?#"'<>()\[\]{},;\\，。；、！）」]+)"#,
            is_no_example,
        ),
        host(r#"(?i)\b(?P<x>[a-z][a-z0-9+.-]{1,20}://[^\s"'<>，。；、！）」]+)"#, is_no_web_address),
    ]
}

/// Finds addresses and names outside a connection string.
fn names() -> Vec<Rule> {
    vec![
        host(r"(?P<x>\d{1,3}(?:\.\d{1,3}){3}(?::\d{1,5})?)", is_ipv4),
        host(r"(?P<x>\[?(?:[0-9A-Fa-f]{1,4}|:):[0-9A-Fa-f:.]*[0-9A-Fa-f](?:\]:\d{1,5})?)", is_ipv6),
        host(r"(?i)(?P<x>localhost(?:\.localdomain)?(?::\d{1,5})?)", is_free),
        host(
            concat!(
                r"(?i)(?P<x>(?:[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?\.)+",
                r"(?:internal|localdomain|local|lan|corp|intranet|intra|private|home\.arpa|svc|consul)",
                r"(?:\.[a-z0-9-]+)*(?::\d{1,5})?)",
            ),
            is_free,
        ),
        host(
            concat!(
                r"(?i)(?P<x>(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.){2,}(?:com|net|org|io|dev|cloud|app|co|cn|uk|de|eu|us",
                r"|ai|info|biz|gov|edu|fr|jp|in|tech|site|xyz|me)(?::\d{1,5})?)",
            ),
            is_machine,
        ),
        host(r"(?i)(?P<x>[a-z0-9][a-z0-9-]*(?:\.[a-z0-9-]+)+:\d{2,5})", is_name_with_port),
        host(r"(?i)(?P<x>[a-z][a-z0-9_-]*:\d{2,5})", is_service_with_port),
        host(
            concat!(
                r"(?i)\b(?:enotfound|eai_again|resolve host:?|unknownhostexception:)\s+",
                r#"["'`]?(?P<x>[a-z0-9](?:[a-z0-9_.-]*[a-z0-9_])?)"#,
            ),
            any,
        ),
        host(
            concat!(
                r"(?i)\b(?:lookup|unknown host:?|server at|connect(?:ing|ed|ion)? to(?: server(?: at)?)?",
                r#"|upstream|hostname|host)\s+["'`]?(?P<x>[a-z0-9](?:[a-z0-9_.-]*[a-z0-9_])?)"#,
            ),
            looks_like_a_machine,
        ),
    ]
}

fn host(pattern: &str, is_meant: fn(&Hit<'_>) -> bool) -> Rule {
    Rule::new(Kind::Host, pattern, is_meant)
}

/// True for a name that stands free: `-` and `_` join names to other words, as in `db.internal-refused`.
fn is_free(hit: &Hit<'_>) -> bool {
    !hit.before().ends_with(|c: char| c.is_ascii_alphanumeric())
        && !hit.after().starts_with(|c: char| c.is_ascii_alphanumeric())
}

/// False for names that are kept for examples, as in the words of a schema.
fn is_no_example(hit: &Hit<'_>) -> bool {
    let host = hit.piece().to_ascii_lowercase();
    let is = |name: &str| host == name || host.strip_suffix(name).is_some_and(|front| front.ends_with('.'));
    !["example.com", "example.org", "example.net", "example"].into_iter().any(is)
}

fn is_no_web_address(hit: &Hit<'_>) -> bool {
    let scheme = hit.piece().split(':').next().unwrap_or_default().to_ascii_lowercase();
    !["http", "https", "ws", "wss", "ftp"].contains(&scheme.as_str())
}

fn is_ipv4(hit: &Hit<'_>) -> bool {
    let address = hit.piece().split(':').next().unwrap_or_default();
    // Part of a longer number, such as that of a version.
    let (before, after) = (hit.before(), hit.after());
    let is_digit = |c: char| c.is_ascii_digit();
    let goes_on = before.strip_suffix('.').unwrap_or(before).ends_with(is_digit)
        || after.strip_prefix('.').unwrap_or(after).starts_with(is_digit);
    !goes_on && address.parse::<Ipv4Addr>().is_ok()
}

fn is_ipv6(hit: &Hit<'_>) -> bool {
    let piece = hit.piece().trim_start_matches('[');
    let address = piece.split(']').next().unwrap_or_default();
    let alone = !hit.before().ends_with(|c: char| c.is_ascii_alphanumeric())
        && !hit.after().starts_with(|c: char| c.is_ascii_alphanumeric() || c == ':');
    alone && address.parse::<Ipv6Addr>().is_ok()
}

/// True for `api.eu.acme.com`, not for `www.acme.com`, and not for the start of `com.acme.io.Reader`.
fn is_machine(hit: &Hit<'_>) -> bool {
    hit.stands_alone() && is_no_example(hit) && !hit.piece().to_ascii_lowercase().starts_with("www.")
}

fn is_name_with_port(hit: &Hit<'_>) -> bool {
    let name = hit.piece().split(':').next().unwrap_or_default();
    let ending = name.rsplit('.').next().unwrap_or_default();
    let is_name = ending.contains(|c: char| c.is_ascii_alphabetic());
    hit.stands_alone() && is_name && !CODE.contains(&ending)
}

/// True for `db-7:5432`, `redis:6379`, `vllm:8000`; not for `line:42`.
fn is_service_with_port(hit: &Hit<'_>) -> bool {
    let (name, port) = hit.piece().split_once(':').unwrap_or_default();
    let port = port.parse::<u16>().unwrap_or_default();
    let is_machine = port >= 1000 || name.contains(['-', '_']) || name.ends_with(|c: char| c.is_ascii_digit());
    hit.stands_alone() && port >= 80 && (is_machine || SERVICES.contains(&name.to_ascii_lowercase().as_str()))
}

/// True for a token that does not belong to a sentence.
fn looks_like_a_machine(hit: &Hit<'_>) -> bool {
    let name = hit.piece();
    name.contains(|c: char| c.is_ascii_alphabetic())
        && name.contains(|c: char| matches!(c, '.' | '-') || c.is_ascii_digit())
}
