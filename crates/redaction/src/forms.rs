//! The forms in which a service or a program may return a secret.

use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD},
};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

/// Secrets of fewer bytes are not looked for as Base64 and hexadecimal: their few digits would be found everywhere.
const MIN_ENCODED: usize = 6;

/// `quote` of Python with `safe=""` (RFC 3986: everything but unreserved characters).
const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// `quote` of Python.
const PATH: &AsciiSet = &UNRESERVED.remove(b'/');
/// `encodeURIComponent` of JavaScript.
const COMPONENT: &AsciiSet = &UNRESERVED.remove(b'!').remove(b'*').remove(b'\'').remove(b'(').remove(b')');
/// A form's field (WHATWG URL, 5.2), except that a space becomes `+`.
const FORM: &AsciiSet = &NON_ALPHANUMERIC.remove(b'*').remove(b'-').remove(b'.').remove(b'_').remove(b' ');

/// Returns every form of a secret, itself among them; none is empty.
pub(crate) fn forms_of(secret: &str) -> Vec<String> {
    let mut forms = Vec::new();
    // A variable read from a file often ends with a line break that no program shows.
    for text in [secret, secret.trim()] {
        forms.push(text.to_owned());
        forms.extend(json_forms(text));
        forms.extend(percent_forms(text));
        forms.push(in_html(text));
        if text.len() >= MIN_ENCODED {
            let hex = text.bytes().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().concat();
            forms.extend([hex.to_uppercase(), hex]);
            forms.extend(base64_forms(text.as_bytes()));
        }
    }
    forms.retain(|form| !form.is_empty());
    forms.sort_unstable();
    forms.dedup();
    forms
}

/// Writes it inside a JSON string as `JSON.stringify`, `json.dumps` of Python, `json_encode` of PHP and `encoding/json`
/// of Go do, and in JSON that is itself a string of JSON: a tool may print the answer of a service.
fn json_forms(text: &str) -> impl Iterator<Item = String> {
    let quoted = in_json(text);
    let ascii = ascii_json(&quoted);
    let php = ascii.replace('/', "\\/");
    let go = quoted.replace('&', "\\u0026").replace('<', "\\u003c").replace('>', "\\u003e");
    [quoted, ascii, php, go].into_iter().flat_map(|once| [in_json(&once), once])
}

fn in_json(text: &str) -> String {
    let quoted = Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

/// Writes JSON with every other character than ASCII as `\u…`.
fn ascii_json(quoted: &str) -> String {
    let escaped = |c: char| {
        let mut units = [0; 2];
        if c.is_ascii() {
            return c.to_string();
        }
        c.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")).collect::<Vec<_>>().concat()
    };
    quoted.chars().map(escaped).collect()
}

/// Percent-encodes by the rules of different parts of a URL, in both cases of the digits.
fn percent_forms(text: &str) -> impl Iterator<Item = String> {
    let encoded = |set| utf8_percent_encode(text, set).to_string();
    let form = encoded(FORM).replace(' ', "+");
    let forms = [encoded(UNRESERVED), encoded(PATH), encoded(COMPONENT), form];
    forms.into_iter().flat_map(|form| [lower_digits(&form), form])
}

/// Writes the two characters after each `%` in lower case.
fn lower_digits(form: &str) -> String {
    let mut digits = 0_u8;
    let lower = |c: char| {
        let is_digit = digits > 0;
        digits = if c == '%' { 2 } else { digits.saturating_sub(1) };
        if is_digit { c.to_ascii_lowercase() } else { c }
    };
    form.chars().map(lower).collect()
}

fn in_html(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    text.replace('"', "&quot;").replace('\'', "&#39;")
}

/// Encodes it as a part of anything in Base64: what stands before the secret shifts its bits, so there are three forms,
/// each without the digits that depend on what stands around it.
fn base64_forms(text: &[u8]) -> impl Iterator<Item = String> {
    (0..3).flat_map(move |before| {
        let bytes = [&b"\0\0"[..before], text].concat();
        // A digit has 6 bits.
        let (from, to) = ((before * 8).div_ceil(6), bytes.len() * 8 / 6);
        [STANDARD_NO_PAD, URL_SAFE_NO_PAD].map(|alphabet| alphabet.encode(&bytes)[from..to].to_owned())
    })
}

#[cfg(test)]
mod tests {
    use base64::engine::general_purpose::{STANDARD, URL_SAFE};

    use super::*;

    const SECRET: &str = "pä ss/w\"ö'rd&<>~?%+=12\u{1F511}\n";

    fn has(text: &str) -> bool {
        forms_of(SECRET).iter().any(|form| text.contains(form.as_str()))
    }

    #[test]
    fn forms_of_other_libraries_are_known() {
        for form in [
            // json.dumps of Python; JSON.stringify; json_encode of PHP; encoding/json of Go.
            r#"p\u00e4 ss/w\"\u00f6'rd&<>~?%+=12\ud83d\udd11\n"#,
            r#"pä ss/w\"ö'rd&<>~?%+=12🔑\n"#,
            r#"p\u00e4 ss\/w\"\u00f6'rd&<>~?%+=12\ud83d\udd11\n"#,
            r#"pä ss/w\"ö'rd\u0026\u003c\u003e~?%+=12🔑\n"#,
            // JSON in JSON.
            r#"pä ss/w\\\"ö'rd&<>~?%+=12🔑\\n"#,
            // quote and quote_plus of Python, encodeURIComponent, URLSearchParams.
            "p%C3%A4%20ss%2Fw%22%C3%B6%27rd%26%3C%3E~%3F%25%2B%3D12%F0%9F%94%91%0A",
            "p%C3%A4%20ss%2Fw%22%C3%B6'rd%26%3C%3E~%3F%25%2B%3D12%F0%9F%94%91%0A",
            "p%C3%A4%20ss/w%22%C3%B6%27rd%26%3C%3E~%3F%25%2B%3D12%F0%9F%94%91%0A",
            "p%C3%A4+ss%2Fw%22%C3%B6%27rd%26%3C%3E%7E%3F%25%2B%3D12%F0%9F%94%91%0A",
            "p%c3%a4%20ss%2fw%22%c3%b6%27rd%26%3c%3e~%3f%25%2b%3d12%f0%9f%94%91",
            // HTML.
            "pä ss/w&quot;ö&#39;rd&amp;&lt;&gt;~?%+=12🔑",
            "70c3a42073732f7722c3b6277264263c3e7e3f252b3d3132f09f94910a",
            "70C3A42073732F7722C3B6277264263C3E7E3F252B3D3132F09F94910A",
        ] {
            assert!(has(form), "{form}");
        }
        assert!(!has("pä ss") && !has("p%C3%A4"));
    }

    #[test]
    fn base64_is_known_wherever_the_secret_stands() {
        for before in ["", "u", "us", "use", "user"] {
            for after in ["", ":", ":x", ":xy"] {
                let whole = format!("{before}{SECRET}{after}");
                for text in [STANDARD.encode(&whole), URL_SAFE.encode(&whole), URL_SAFE_NO_PAD.encode(&whole)] {
                    assert!(has(&text), "{before:?} {after:?}");
                }
            }
        }
    }

    #[test]
    fn short_secrets_have_no_form_that_is_found_everywhere() {
        assert_eq!(forms_of("abc"), ["abc"]);
        assert!(forms_of("").is_empty());
    }
}
