//! The words of messages.

/// Below this similarity (0 to 1) a name is not worth a question.
const CLOSE: f64 = 0.72;
/// Longer names are compared with nothing.
const LONGEST: usize = 200;

/// Returns the one of the `allowed` names that `name` probably stands for.
pub fn did_you_mean<'a>(name: &str, allowed: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if name.len() > LONGEST {
        return None;
    }
    let fold = |text: &str| text.to_lowercase().replace(['-', '_', ' '], "");
    let folded = fold(name);
    let scored = allowed.into_iter().filter(|other| other.len() <= LONGEST).map(|other| {
        let other_folded = fold(other);
        (strsim::jaro_winkler(&folded, &other_folded), other)
    });
    let best = scored.max_by(|a, b| a.0.total_cmp(&b.0))?;
    (best.0 >= CLOSE).then_some(best.1)
}

/// Says what a deserializer found or wanted as people do: ``string "x"`` → `the text "x"`.
pub(crate) fn plain(what: &str) -> String {
    let what = what.trim();
    for (technical, words) in FOUND {
        if let Some(rest) = what.strip_prefix(technical) {
            return format!("{words}{}", rest.replace('`', ""));
        }
    }
    let known = WANTED.iter().find(|(technical, _)| *technical == what).map(|(_, words)| (*words).to_owned());
    known.unwrap_or_else(|| match what.strip_prefix("struct ") {
        Some(_) => "an object".to_owned(),
        None => what.replace('`', "\""),
    })
}

const FOUND: [(&str, &str); 8] = [
    ("string", "the text"),
    ("integer", "the number"),
    ("floating point", "the number"),
    ("boolean", "the value"),
    ("map", "an object"),
    ("sequence", "a list"),
    ("null", "null"),
    ("unit value", "nothing"),
];

const WANTED: [(&str, &str); 16] = [
    ("a string", "a text in quotes"),
    ("a borrowed string", "a text in quotes"),
    ("string or table", "a text or a table"),
    ("a boolean", "true or false"),
    ("bool", "true or false"),
    ("a sequence", "a list"),
    ("a map", "an object"),
    ("any valid JSON value", "a value"),
    ("u8", "a whole number, 0 to 255"),
    ("u16", "a whole number, 0 to 65535"),
    ("u32", "a whole number, 0 or more"),
    ("u64", "a whole number, 0 or more"),
    ("usize", "a whole number, 0 or more"),
    ("i64", "a whole number"),
    ("f64", "a number"),
    ("f32", "a number"),
];

/// Returns the message of a typed reader without its jargon; `None` if it has another form.
pub(crate) fn data_message(message: &str) -> Option<String> {
    if message.starts_with("string values must be quoted") {
        return Some(
            "a value is missing, or a text has no quotes; expected a value such as \"text\", 3 or true".to_owned(),
        );
    }
    let (kind, rest) = message.split_once(": ").unwrap_or((message, ""));
    if matches!(kind, "invalid type" | "invalid value") {
        let (found, wanted) = rest.split_once(", expected ")?;
        return Some(format!("found {}; allowed: {}", plain(found), plain(wanted)));
    }
    if let Some(rest) = message.strip_prefix("unknown field ") {
        return unknown("unknown field", rest);
    }
    if let Some(rest) = message.strip_prefix("unknown variant ") {
        return unknown("unknown value", rest);
    }
    if let Some(field) = message.strip_prefix("missing field ") {
        return Some(format!("the field {} is missing", field.replace('`', "\"")));
    }
    if let Some(field) = message.strip_prefix("duplicate field ") {
        return Some(format!("the field {} is there twice", field.replace('`', "\"")));
    }
    None
}

/// Rewrites `` `leese`, expected one of `lease`, `log` `` → `unknown field "leese"; did you mean "lease"? allowed:
/// lease, log`.
fn unknown(kind: &str, rest: &str) -> Option<String> {
    let (name, expected) = match rest.split_once("`, ") {
        Some((name, expected)) => (name, expected),
        None => (rest.trim_end_matches('`'), ""),
    };
    let name = name.strip_prefix('`')?;
    let allowed: Vec<&str> = expected.split('`').skip(1).step_by(2).collect();
    if allowed.is_empty() {
        return Some(format!("{kind} {name:?}"));
    }
    let question = did_you_mean(name, allowed.iter().copied());
    let question = question.map(|close| format!("did you mean {close:?}? ")).unwrap_or_default();
    Some(format!("{kind} {name:?}; {question}allowed: {}", allowed.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_close_name_is_suggested() {
        let names = ["nats_url", "lease", "retention"];
        assert_eq!(did_you_mean("leese", names), Some("lease"));
        assert_eq!(did_you_mean("NATS-URL", names), Some("nats_url"));
        assert_eq!(did_you_mean("xyz", names), None);
        assert_eq!(did_you_mean(&"lease".repeat(100), names), None);
    }

    #[test]
    fn jargon_becomes_words() {
        let messages = [
            "invalid type: string \"many\", expected u32",
            "invalid type: integer `3`, expected a string",
            "invalid type: map, expected a string",
            "invalid type: sequence, expected struct Submission",
            "invalid type: null, expected a boolean",
            "invalid value: integer `-1`, expected u32",
            "unknown field `modle`, expected one of `model`, `tools`",
            "unknown field `agent`, expected `agents`",
            "unknown field `zzz`, there are no fields",
            "unknown variant `fall`, expected `feedback` or `fallback`",
            "missing field `tool`",
            "duplicate field `tool`",
        ];
        insta::assert_snapshot!(messages.map(|message| data_message(message).unwrap()).join("\n"));
        assert_eq!(data_message("something else"), None);
    }
}
