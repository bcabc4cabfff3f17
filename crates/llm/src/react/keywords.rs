//! Arguments as in a call of a programming language: `a="x", b=2`.

use std::collections::HashSet;

use serde_json::{Number, Value};

/// Reads the JSON object that the text means. Only `name=literal` counts, where a literal is a string in either quotes,
/// a number, a boolean, or nothing; each name once. Numbers stay as they are written, with every digit.
pub(super) fn read(text: &str) -> Option<String> {
    let (mut names, mut members) = (HashSet::new(), Vec::new());
    let mut rest = text.trim();
    while !rest.is_empty() {
        let (name, after) = rest.split_once('=')?;
        let name = name.trim();
        if name.is_empty() || !name.chars().all(|c| c.is_alphanumeric() || c == '_') {
            return None;
        }
        let (value, after) = literal(after.trim_start())?;
        if !names.insert(name) {
            return None;
        }
        members.push(format!("{}:{value}", Value::from(name)));
        let after = after.trim_start();
        rest = match after.strip_prefix(',') {
            Some(next) => next.trim_start(),
            None if after.is_empty() => after,
            None => return None,
        };
    }
    (!members.is_empty()).then(|| format!("{{{}}}", members.join(",")))
}

/// Reads the literal at the beginning of the text as JSON; returns the text after it, too.
fn literal(text: &str) -> Option<(String, &str)> {
    if let Some(quote) = text.chars().next().filter(|c| matches!(c, '"' | '\'')) {
        let (value, rest) = string(&text[1..], quote)?;
        return Some((Value::from(value).to_string(), rest));
    }
    let (word, rest) = text.split_at(text.find([',', ' ', '\t', '\n', '\r']).unwrap_or(text.len()));
    let value = match word {
        "true" | "True" | "TRUE" => "true",
        "false" | "False" | "FALSE" => "false",
        "none" | "None" | "null" | "Null" => "null",
        number => serde_json::from_str::<Number>(number).ok().map(|_| number)?,
    };
    Some((value.to_owned(), rest))
}

/// Reads the string up to its closing quote; returns the text after that, too. Escapes whose meaning differs between
/// languages are refused.
fn string(text: &str, quote: char) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut characters = text.char_indices();
    while let Some((at, c)) = characters.next() {
        match c {
            '\\' => value.push(match characters.next()?.1 {
                'n' => '\n',
                't' => '\t',
                'r' => '\r',
                c @ ('\\' | '"' | '\'') => c,
                _ => return None,
            }),
            c if c == quote => return Some((value, &text[at + 1..])),
            '\n' => return None,
            c => value.push(c),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn literals_become_json() {
        for (text, json) in [
            (r#"a="x", b=2"#, Some(r#"{"a":"x","b":2}"#)),
            (r"a='it\'s', b = -1.5e3,", Some(r#"{"a":"it's","b":-1.5e3}"#)),
            ("id=940011189922385512345678", Some(r#"{"id":940011189922385512345678}"#)),
            ("x=0.10000000000000000001", Some(r#"{"x":0.10000000000000000001}"#)),
            ("x=1e999", None),
            ("a=True, b=false, c=None, d=null", Some(r#"{"a":true,"b":false,"c":null,"d":null}"#)),
            ("城市=\"北京, 上海=x\"", Some(r#"{"城市":"北京, 上海=x"}"#)),
            (r#"a="C:\\new\n""#, Some(r#"{"a":"C:\\new\n"}"#)),
            ("a=x", None),
            ("a=\"x", None),
            ("a=\"x\" b=1", None),
            ("a=1, a=2", None),
            ("a=[1]", None),
            ("a=1_000", None),
            ("a=+1", None),
            ("a=1+1", None),
            (r#"a="\x41""#, None),
            ("\"x\", 2", None),
            ("a b=1", None),
            ("=1", None),
            ("", None),
        ] {
            assert_eq!(read(text).as_deref(), json, "{text}");
        }
    }

    proptest! {
        #[test]
        fn strings_survive(value in "[^\\p{C}]{0,12}", number: i64) {
            let text = format!("a={}, n={number}", Value::from(value.clone()));
            prop_assert_eq!(read(&text).unwrap(), serde_json::json!({"a": value, "n": number}).to_string());
        }
    }
}
