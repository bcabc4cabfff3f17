//! Secrets: by the name in front of them, by their form, and by their looks.

use super::rule::{Hit, Kind, Rule, any};

/// Keys of services that have a known form.
const FORMS: [&str; 15] = [
    r"(?:sk|pk|rk)[-_][A-Za-z0-9_-]{10,}",
    r"(?:gsk|xai|nvapi|pplx)[-_][A-Za-z0-9_-]{10,}",
    r"gh[pousr]_[A-Za-z0-9]{16,}",
    r"github_pat_[A-Za-z0-9_]{16,}",
    r"glpat-[A-Za-z0-9_-]{10,}",
    r"(?:xox[abeprs]|xapp)-[A-Za-z0-9_-]{8,}",
    r"A[KS]IA[0-9A-Z]{12,}",
    r"AIza[A-Za-z0-9_-]{20,}",
    r"ya29\.[A-Za-z0-9_-]{10,}",
    r"eyJ[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]{5,}(?:\.[A-Za-z0-9_-]*)?",
    r"hf_[A-Za-z0-9]{16,}",
    r"npm_[A-Za-z0-9]{16,}",
    r"SG\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}",
    r"whsec_[A-Za-z0-9+/=]{10,}",
    r"dop_v1_[a-f0-9]{16,}",
];

/// What the names of secrets end with.
const NAMES: [&str; 18] = [
    "password",
    "passwd",
    "pwd",
    "passphrase",
    "secret",
    "token",
    "api[_. -]?key",
    "access[_.-]?key(?:[_.-]?id)?",
    "private[_.-]?key",
    "account[_.-]?key",
    "credentials?",
    "session[_.-]?id",
    "signature",
    "auth",
    "密码",
    "口令",
    "密钥",
    "令牌",
];

pub(super) fn rules() -> Vec<Rule> {
    let secret = |pattern: &str, is_meant| Rule::new(Kind::Secret, pattern, is_meant);
    let (forms, names) = (FORMS.join("|"), NAMES.join("|"));
    let sign = r"\s*(?:=>|:=|[:=：]{1,2})\s*";
    let value = r#"\\?"[^"\n]*"|'[^'\n]*'|[^\s,;&"'<>(){}\[\]，。；、！？）（]+"#;
    vec![
        secret(r"(?s)(?P<x>-----BEGIN [A-Z0-9 ]{3,40}-----.*?(?:-----END [A-Z0-9 ]{3,40}-----|\z))", any),
        secret(
            concat!(
                r#"(?i)\bauthorization["']?\s*[:=]\s*["']?"#,
                r#"(?:(?:bearer|basic|digest|token|negotiate|apikey)\s+)?(?P<x>[^\s"',;\[\]]+)"#,
            ),
            is_no_scheme,
        ),
        secret(r#"(?i)\b(?:set-)?cookie["']?\s*[:=]\s*(?P<x>[^\s"'\[\]][^\n"'\[\]]*)"#, any),
        secret(r"(?i)\bbearer\s+(?P<x>[A-Za-z0-9._~+/=-]{6,})", is_no_word_of_logins),
        secret(r"(?i)\bbasic\s+(?P<x>[A-Za-z0-9+/=_-]{8,})", is_mixed),
        secret(&format!(r"\b(?P<x>{forms})"), has_digit),
        // User and password of an address.
        secret(r#"(?i)\b[a-z][a-z0-9+.-]{1,20}://(?P<x>[^\s/?#"'<>@\[\]]+)@"#, any),
        secret(&format!(r#"(?i)(?:{names})\\?["']?{sign}(?P<x>{value})"#), is_a_value),
        secret(
            concat!(
                r"(?i)\b(?:password|passwd|passphrase|api[_. -]?key|token|secret)\s+(?:is\s+|was\s+|provided:?\s+)?",
                r#"["'`]?(?P<x>[^\s,;"'`()\[\]]{6,})"#,
            ),
            is_mixed,
        ),
    ]
}

/// Finds anything long that no person would write.
pub(super) fn random() -> Rule {
    Rule::new(Kind::Secret, r"(?P<x>[A-Za-z0-9_+/=-]{32,})", |hit| {
        let has = |test: fn(&u8) -> bool| hit.piece().bytes().any(|byte| test(&byte));
        has(u8::is_ascii_uppercase) && has(u8::is_ascii_lowercase) && has(u8::is_ascii_digit)
    })
}

/// False for a scheme that the secret follows, or followed until it was removed.
fn is_no_scheme(hit: &Hit<'_>) -> bool {
    const SCHEMES: [&str; 6] = ["bearer", "basic", "digest", "token", "negotiate", "apikey"];
    !SCHEMES.contains(&hit.piece().to_ascii_lowercase().as_str())
}

fn has_digit(hit: &Hit<'_>) -> bool {
    hit.piece().contains(|c: char| c.is_ascii_digit())
}

/// True for letters with digits, or with capitals among them.
fn is_mixed(hit: &Hit<'_>) -> bool {
    let piece = hit.piece();
    let has_letter = piece.contains(|c: char| c.is_ascii_alphabetic());
    let capital_inside =
        piece.chars().skip(1).any(|c| c.is_ascii_uppercase()) && piece.contains(|c: char| c.is_ascii_lowercase());
    has_letter && (has_digit(hit) || capital_inside || piece.ends_with('='))
}

fn is_no_word_of_logins(hit: &Hit<'_>) -> bool {
    const WORDS: [&str; 9] = [
        "authentication",
        "authorization",
        "credentials",
        "scheme",
        "header",
        "headers",
        "tokens",
        "access",
        "required",
    ];
    !WORDS.contains(&hit.piece().trim_end_matches('.').to_ascii_lowercase().as_str())
}

/// True for a value, and not for the next words of a sentence such as "password: must have 8 characters" or "token:
/// expired".
fn is_a_value(hit: &Hit<'_>) -> bool {
    const STATES: [&str; 14] = [
        "null",
        "none",
        "undefined",
        "missing",
        "invalid",
        "expired",
        "required",
        "empty",
        "true",
        "false",
        "wrong",
        "incorrect",
        "unknown",
        "not",
    ];
    let piece = hit.piece();
    if piece.starts_with(['"', '\'', '\\']) || hit.before().trim_end().ends_with('=') {
        return piece.len() > 2;
    }
    if !piece.is_ascii() {
        return false;
    }
    let is_word = piece.bytes().all(|byte| byte.is_ascii_alphabetic());
    let goes_on = hit.after().strip_prefix(' ').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_alphabetic()));
    let is_state = STATES.contains(&piece.trim_end_matches('.').to_ascii_lowercase().as_str());
    let is_sentence = is_word && goes_on;
    !is_state && !is_sentence
}
