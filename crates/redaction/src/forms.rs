//! The forms in which a service or a program may return a secret.

use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD},
};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

/// Secrets of fewer bytes are not looked for as Base64 and hexadecimal: their few digits would be found everywhere.
const MIN_ENCODED: usize = 6;

/// RFC 3986: everything but unreserved characters.
const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// `encodeURIComponent` of JavaScript.
const COMPONENT: &AsciiSet = &UNRESERVED.remove(b'!').remove(b'*').remove(b'\'').remove(b'(').remove(b')');
/// A segment of a path (RFC 3986, 3.3).
const SEGMENT: &AsciiSet =
    &COMPONENT.remove(b'$').remove(b'&').remove(b'+').remove(b',').remove(b';').remove(b'=').remove(b':').remove(b'@');
/// `encodeURI` of JavaScript.
const URI: &AsciiSet = &SEGMENT.remove(b'/').remove(b'?').remove(b'#');
/// A form's field (WHATWG URL, 5.2), except that a space becomes `+`.
const FORM: &AsciiSet = &NON_ALPHANUMERIC.remove(b'*').remove(b'-').remove(b'.').remove(b'_').remove(b' ');

/// Every form of a secret, itself among them; none is empty.
pub(crate) fn forms_of(secret: &str) -> Vec<String> {
    let mut forms = Vec::new();
    // A variable read from a file often ends with a line break that no program shows.
    for text in [secret, secret.trim()] {
        forms.push(text.to_owned());
        forms.extend(json_forms(text));
        forms.extend(percent_forms(text));
        forms.extend(html_forms(text));
        if text.len() >= MIN_ENCODED {
            forms.extend(hex_forms(text));
            forms.extend(base64_forms(text.as_bytes()));
            // As PowerShell encodes it.
            forms.extend(base64_forms(&text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<_>>()));
        }
    }
    forms.retain(|form| !form.is_empty());
    forms.sort_unstable();
    forms.dedup();
    forms
}

/// Inside a JSON string, as different libraries write it, and in JSON that is itself a string of JSON: a tool may print the
/// answer of a service whose answer quotes another one.
fn json_forms(text: &str) -> Vec<String> {
    let quoted = in_json(text);
    let for_html = quoted.replace('&', "\\u0026").replace('<', "\\u003c").replace('>', "\\u003e");
    let once = [
        ascii_json(&quoted, false),
        ascii_json(&quoted, true),
        quoted.replace('/', "\\/"),
        ascii_json(&quoted.replace('/', "\\/"), false),
        for_html.replace('\'', "\\u0027"),
        for_html,
        quoted,
    ];
    let twice: Vec<String> = once.iter().map(|form| in_json(form)).collect();
    let thrice: Vec<String> = twice.iter().map(|form| in_json(form)).collect();
    once.into_iter().chain(twice).chain(thrice).collect()
}

fn in_json(text: &str) -> String {
    let quoted = Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

/// JSON with every other character than ASCII as `\u…`.
fn ascii_json(quoted: &str, upper: bool) -> String {
    let mut form = String::with_capacity(quoted.len());
    let mut units = [0; 2];
    for c in quoted.chars() {
        if c.is_ascii() {
            form.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut units) {
            form.push_str(&if upper { format!("\\u{unit:04X}") } else { format!("\\u{unit:04x}") });
        }
    }
    form
}

/// Percent-encoded by the rules of different parts of a URL, in both cases of the digits, and encoded twice.
fn percent_forms(text: &str) -> Vec<String> {
    let mut forms: Vec<String> = [NON_ALPHANUMERIC, UNRESERVED, COMPONENT, SEGMENT, URI]
        .into_iter()
        .map(|set| utf8_percent_encode(text, set).to_string())
        .collect();
    forms.push(utf8_percent_encode(text, FORM).to_string().replace(' ', "+"));
    forms.push(digits(text, "%").to_uppercase());
    let twice: Vec<String> = forms.iter().map(|form| form.replace('%', "%25")).collect();
    forms.extend(twice);
    let lower: Vec<String> = forms.iter().map(|form| lower_digits(form)).collect();
    forms.extend(lower);
    forms
}

/// The two characters after each `%` in lower case.
fn lower_digits(form: &str) -> String {
    let mut digits = 0_u8;
    let lower = |c: char| {
        let is_digit = digits > 0;
        digits = if c == '%' { 2 } else { digits.saturating_sub(1) };
        if is_digit { c.to_ascii_lowercase() } else { c }
    };
    form.chars().map(lower).collect()
}

/// With the references for characters that mean something in HTML, as different libraries write them.
fn html_forms(text: &str) -> Vec<String> {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let quotes = [
        ("\"", "'"),
        ("&quot;", "'"),
        ("&quot;", "&#39;"),
        ("&quot;", "&#x27;"),
        ("&quot;", "&apos;"),
        ("&#34;", "&#39;"),
    ];
    let forms = quotes.map(|(double, single)| text.replace('"', double).replace('\'', single));
    let slashes: Vec<String> = forms.iter().map(|form| form.replace('/', "&#x2F;")).collect();
    forms.into_iter().chain(slashes).collect()
}

/// Also as dumps and fingerprints are written, with something between the bytes.
fn hex_forms(text: &str) -> Vec<String> {
    let lower = ["", " ", ":", "-"].map(|between| digits(text, between).split_off(between.len()));
    lower.iter().map(|form| form.to_uppercase()).chain(lower.clone()).collect()
}

/// Two hexadecimal digits for each byte, with this text before them.
fn digits(text: &str, before: &str) -> String {
    text.bytes().flat_map(|byte| [before.to_owned(), format!("{byte:02x}")]).collect()
}

/// As a part of anything in Base64: what stands before the secret shifts its bits, so there are three forms, each without the
/// digits that depend on what stands around it.
fn base64_forms(text: &[u8]) -> Vec<String> {
    let mut forms = Vec::new();
    for before in 0..3 {
        let bytes = [&b"\0\0"[..before], text].concat();
        // A digit has 6 bits.
        let (from, to) = ((before * 8).div_ceil(6), bytes.len() * 8 / 6);
        for encoded in [STANDARD_NO_PAD.encode(&bytes), URL_SAFE_NO_PAD.encode(&bytes)] {
            let own = &encoded[from..to];
            forms.push(own.to_owned());
            forms.push(own.replace('/', "\\/"));
            forms.push(utf8_percent_encode(own, UNRESERVED).to_string());
            forms.push(own.replace('+', "%2b").replace('/', "%2f"));
        }
    }
    forms
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
            // quote and quote_plus of Python, encodeURIComponent, encodeURI, URLSearchParams.
            "p%C3%A4%20ss%2Fw%22%C3%B6%27rd%26%3C%3E~%3F%25%2B%3D12%F0%9F%94%91%0A",
            "p%C3%A4%20ss%2Fw%22%C3%B6'rd%26%3C%3E~%3F%25%2B%3D12%F0%9F%94%91%0A",
            "p%C3%A4%20ss/w%22%C3%B6'rd&%3C%3E~?%25+=12%F0%9F%94%91%0A",
            "p%C3%A4+ss%2Fw%22%C3%B6%27rd%26%3C%3E%7E%3F%25%2B%3D12%F0%9F%94%91%0A",
            "p%c3%a4%20ss%2fw%22%c3%b6%27rd%26%3c%3e~%3f%25%2b%3d12%f0%9f%94%91",
            "p%25C3%25A4%2520ss%252Fw%2522%25C3%25B6%2527rd%2526%253C%253E~%253F%2525%252B%253D12%25F0%259F%2594%2591",
            // html.escape of Python, html.EscapeString of Go, htmlspecialchars of PHP.
            "pä ss/w&quot;ö&#x27;rd&amp;&lt;&gt;~?%+=12🔑",
            "pä ss/w&#34;ö&#39;rd&amp;&lt;&gt;~?%+=12🔑",
            "pä ss/w&quot;ö'rd&amp;&lt;&gt;~?%+=12🔑",
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
        assert_eq!(forms_of("abc"), ["%2561%2562%2563", "%61%62%63", "abc"]);
        assert!(forms_of("").is_empty());
    }
}
