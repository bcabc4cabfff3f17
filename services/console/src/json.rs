//! JSON as nested parts that can be opened, each with its pointer as its id. What is shown of a huge document is bounded, and
//! says how much is left out.

use std::collections::BTreeSet;

use redial_proto::json_text::Members;
use serde_json::{Value, value::RawValue};

use crate::show::{Html, bytes, clip, count, escape, plain, url};

/// Values that are shown of one document, and members or elements of one of its parts.
const NODES: usize = 400;
const MEMBERS: usize = 100;
/// Characters that are shown of a string.
const TEXT: usize = 2_000;
/// Bytes of a text that are read as JSON.
const READ: usize = 1024 * 1024;
/// Bytes of a text that are shown as they are.
const RAW: usize = 16 * 1024;

pub(crate) fn tree(name: &str, value: &Value) -> Html {
    of_text(name, &value.to_string())
}

/// Shows a document as it came; a text that is no JSON is shown as what it is.
pub(crate) fn of_text(name: &str, text: &str) -> Html {
    marked(name, text, &BTreeSet::new())
}

/// Does the same; `changed` holds pointers whose values are marked.
pub(crate) fn marked(name: &str, text: &str, changed: &BTreeSet<String>) -> Html {
    if text.len() > READ {
        let note = format!("<p class=\"fine\">{}; the first {} of it:</p>", bytes(text.len()), bytes(RAW));
        return Html(note + &raw(text).0);
    }
    let Ok(json) = serde_json::from_str::<&RawValue>(text) else { return raw(text) };
    let mut tree = Tree { name, changed, html: String::from("<div class=\"json\">"), left: NODES };
    tree.value("", None, json, 0);
    tree.html.push_str("</div>");
    Html(tree.html)
}

/// Shows a document whose text was kept.
pub(crate) fn of_raw(name: &str, json: &RawValue) -> Html {
    of_text(name, json.get())
}

/// Shows a part of a message of a conversation, by its position; 0 is its content.
pub(crate) fn message(seq: &u32, part: &usize, text: &str) -> Html {
    of_text(&format!("m{seq}-{part}"), text)
}

pub(crate) fn raw(text: &str) -> Html {
    let mut end = text.len().min(RAW);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let rest = match text.len() - end {
        0 => String::new(),
        left => format!("<p class=\"fine\">\u{2026} {} more</p>", bytes(left)),
    };
    Html(format!(
        "<div class=\"raw\" tabindex=\"0\" role=\"group\" aria-label=\"Text as it is\">{}</div>{rest}",
        escape(&plain(&text[..end]))
    ))
}

/// Returns the pointers at which two documents differ, the innermost that exist in `new`.
pub(crate) fn differences(old: &Value, new: &Value) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    compare(old, new, "", 0, &mut found);
    found
}

fn compare(old: &Value, new: &Value, pointer: &str, depth: usize, found: &mut BTreeSet<String>) {
    if found.len() >= MEMBERS || depth > 64 || old == new {
        return;
    }
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => {
            for (key, value) in new {
                let at = format!("{pointer}/{}", token(key));
                match old.get(key) {
                    Some(before) => compare(before, value, &at, depth + 1, found),
                    None => _ = found.insert(at),
                }
            }
            if old.keys().any(|key| !new.contains_key(key)) {
                found.insert(pointer.to_owned());
            }
        }
        (Value::Array(old), Value::Array(new)) if old.len() == new.len() => {
            for (n, (before, value)) in old.iter().zip(new).enumerate() {
                compare(before, value, &format!("{pointer}/{n}"), depth + 1, found);
            }
        }
        _ => _ = found.insert(pointer.to_owned()),
    }
}

fn token(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

struct Tree<'a> {
    name: &'a str,
    changed: &'a BTreeSet<String>,
    html: String,
    /// Values that may still be shown.
    left: usize,
}

impl Tree<'_> {
    fn value(&mut self, pointer: &str, key: Option<&str>, json: &RawValue, depth: usize) {
        self.left = self.left.saturating_sub(1);
        let mark = if self.changed.contains(pointer) { " class=\"changed\"" } else { "" };
        let id = self.id(pointer);
        let label = key
            .map(|key| format!("<span class=\"k\">{}:</span> ", escape(&clip(&plain(key), 200))))
            .unwrap_or_default();
        match Level::of(json) {
            Level::Members(members) if !members.is_empty() => {
                self.open((&id, mark), &label, depth, (members.len(), ['{', '}']));
                let parts = members.iter().map(|(key, json)| (token(key), Some(key.as_str()), *json));
                self.parts(pointer, parts, members.len(), depth);
            }
            Level::Elements(elements) if !elements.is_empty() => {
                self.open((&id, mark), &label, depth, (elements.len(), ['[', ']']));
                let parts = elements.iter().enumerate().map(|(n, json)| (n.to_string(), None, *json));
                self.parts(pointer, parts, elements.len(), depth);
            }
            leaf => {
                let (kind, text) = match leaf {
                    Level::Members(_) => ("none", "{}".to_owned()),
                    Level::Elements(_) => ("none", "[]".to_owned()),
                    Level::Leaf(kind, text) => (kind, text),
                };
                let text = escape(&clip(&plain(&text), TEXT));
                self.html
                    .push_str(&format!("<div id=\"{id}\"{mark}>{label}<span class=\"v {kind}\">{text}</span></div>"));
            }
        }
    }

    /// Opens a part with so many members; `brackets` are those of its kind.
    fn open(&mut self, (id, mark): (&str, &str), label: &str, depth: usize, (members, brackets): (usize, [char; 2])) {
        let size = format!("{}{}{}", brackets[0], count(members), brackets[1]);
        let open = if depth < 2 && members <= 30 { " open" } else { "" };
        self.html.push_str(&format!(
            "<details id=\"{id}\"{open}{mark}><summary>{label}<span class=\"none\">{size}</span></summary>"
        ));
    }

    fn parts<'v>(
        &mut self,
        pointer: &str,
        parts: impl Iterator<Item = (String, Option<&'v str>, &'v RawValue)>,
        total: usize,
        depth: usize,
    ) {
        let mut shown = 0;
        for (token, key, json) in parts.take(MEMBERS) {
            if self.left == 0 {
                break;
            }
            self.value(&format!("{pointer}/{token}"), key, json, depth + 1);
            shown += 1;
        }
        if shown < total {
            self.html.push_str(&format!("<div class=\"none\">\u{2026} {} more</div>", count(total - shown)));
        }
        self.html.push_str("</details>");
    }

    fn id(&self, pointer: &str) -> String {
        let pointer = pointer.split('/').map(url).collect::<Vec<_>>().join("/");
        format!("{}:{}", self.name, clip(&pointer, 300))
    }
}

/// One level of a document. Its parts are what is written there: numbers with all their digits, and a key as often as it stands there.
enum Level<'a> {
    Members(Vec<(String, &'a RawValue)>),
    Elements(Vec<&'a RawValue>),
    Leaf(&'static str, String),
}

impl<'a> Level<'a> {
    fn of(json: &'a RawValue) -> Self {
        let text = json.get();
        let other = |kind| Self::Leaf(kind, text.to_owned());
        match text.as_bytes().first() {
            Some(b'{') => serde_json::from_str(text).map_or_else(|_| other("none"), |Members(all)| Self::Members(all)),
            Some(b'[') => serde_json::from_str(text).map_or_else(|_| other("none"), Self::Elements),
            // Without the escapes that it does not need, and with those of a line break and a quote: they are not taken for its end.
            Some(b'"') => serde_json::from_str::<String>(text)
                .map_or_else(|_| other("t-string"), |text| Self::Leaf("t-string", Value::String(text).to_string())),
            Some(b't' | b'f' | b'n') => other("t-literal"),
            _ => other("t-number"),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn markup_in_keys_and_values_stays_text() {
        let html = tree("a", &json!({"<script>": "<img onerror=x>\u{202e}", "q\"": [1]})).0;
        assert!(!html.contains("<script") && !html.contains("<img"), "{html}");
        assert!(html.contains("&lt;script&gt;:") && html.contains("U+202E"), "{html}");
        assert!(html.contains("id=\"a:/q%22/0\""), "{html}");
    }

    #[test]
    fn ten_thousand_keys_are_bounded() {
        let many: serde_json::Map<_, _> = (0..10_000).map(|n| (format!("k{n}"), json!({"v": [n, n]}))).collect();
        let html = tree("a", &many.into()).0;
        assert!(html.len() < 100_000, "{}", html.len());
        assert!(html.contains("more</div>"), "{html}");
    }

    #[test]
    fn differences_are_the_innermost() {
        let old = json!({"date": "tomorrow", "to": {"city": "Rome", "zip": 1}, "seats": [1, 2]});
        let new = json!({"date": "2026-12-01", "to": {"city": "Rome", "zip": 2}, "seats": [1, 3], "note": null});
        let found: Vec<_> = differences(&old, &new).into_iter().collect();
        assert_eq!(found, ["/date", "/note", "/seats/1", "/to/zip"]);
    }

    #[test]
    fn a_text_that_is_no_json_is_shown_as_it_is() {
        let html = of_text("a", "{\"date\": '2026").0;
        assert!(html.contains("{&quot;date&quot;: &#39;2026"), "{html}");
    }

    #[test]
    fn what_is_written_is_shown_with_every_digit_and_every_key() {
        let html = of_text(
            "a",
            r#"{"a":1, "n":12345678901234567890123, "f":1.10000000000000000001, "a":2, "t":"x\ny", "u":"\u660e"}"#,
        )
        .0;
        for part in ["12345678901234567890123", "1.10000000000000000001", ">1<", ">2<", "x\\ny", "\u{660e}"] {
            assert!(html.contains(part), "{part}: {html}");
        }
    }
}
