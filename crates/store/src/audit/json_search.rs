//! Looks for values in JSON without parsing all of it. Records keep JSON as it was sent, and it may contain numbers and
//! strings that JSON libraries reject; what such a value is compared with is its text.

use std::str::FromStr;

use serde_json::Value;

use redial_proto::json_text::{self, tokens};

/// Parts of a pointer.
const DEEPEST: usize = 64;
const ALLOWED: &str = "allowed: POINTER=VALUE, such as /city=Paris, /items/0/id=17 or /paid=true; a pointer begins with /, \
                       and writes / in a name as ~1 and ~ as ~0";

/// The value that JSON must have somewhere.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    /// Names of members and indexes of elements, from the outside inwards (a JSON pointer, RFC 6901).
    pointer: Vec<String>,
    /// As the user wrote it: a text, or JSON.
    text: String,
    /// The text as JSON, if it is JSON.
    json: Option<Value>,
}

impl FromStr for Condition {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (pointer, value) = text.split_once('=').ok_or_else(|| format!("no = is in it; {ALLOWED}"))?;
        let pointer = match pointer.strip_prefix('/') {
            Some(parts) => parts.split('/').map(|part| part.replace("~1", "/").replace("~0", "~")).collect(),
            None if pointer.is_empty() => Vec::new(),
            None => return Err(format!("the pointer does not begin with /; {ALLOWED}")),
        };
        if pointer.len() > DEEPEST {
            return Err(format!("the pointer has {} parts; allowed: {DEEPEST}", pointer.len()));
        }
        Ok(Self { pointer, text: value.to_owned(), json: serde_json::from_str(value).ok() })
    }
}

impl Condition {
    /// True if this valid JSON has the value there.
    pub fn holds(&self, json: &str) -> bool {
        let mut values = vec![json.trim_ascii()];
        for name in &self.pointer {
            values = values.into_iter().flat_map(|value| members(value, name)).collect();
        }
        values.into_iter().any(|value| self.is(value))
    }

    /// Returns a text that is in all JSON that has the value, unless that has escapes; `None`: there is no such text.
    pub fn needle(&self) -> Option<String> {
        match &self.json {
            None | Some(Value::Bool(_) | Value::Null) => Some(self.text.clone()),
            Some(Value::String(text)) => Some(text.clone()).filter(|text| !text.contains('\0')),
            Some(Value::Number(_) | Value::Array(_) | Value::Object(_)) => None,
        }
    }

    /// True if this JSON is the value. `3` is the number and the text.
    fn is(&self, value: &str) -> bool {
        if value.starts_with('"') {
            let text = unescaped(value);
            let wanted = self.json.as_ref().and_then(Value::as_str);
            return text.is_some_and(|text| text == self.text || Some(text.as_str()) == wanted);
        }
        match &self.json {
            Some(Value::Number(_)) => same_number(value, self.text.trim_ascii()),
            Some(json) => {
                json_text::one_line(value) == json_text::one_line(&self.text)
                    || serde_json::from_str::<Value>(value).is_ok_and(|value| value == *json)
            }
            // A number that is too large for the library, say.
            None => value == self.text.trim_ascii(),
        }
    }
}

/// True if the text is in this JSON, or in one of its strings.
pub fn contains(json: &str, text: &str) -> bool {
    json.contains(text)
        || tokens(json)
            .filter(|token| token.starts_with('"') && token.contains('\\'))
            .any(|token| unescaped(token).is_some_and(|token| token.contains(text)))
}

/// Returns the members of an object with this name, or the element of an array with this index.
fn members<'a>(json: &'a str, name: &str) -> Vec<&'a str> {
    let (mut found, mut depth, mut index) = (Vec::new(), 0_usize, 0_usize);
    let (mut is_object, mut value_is_next) = (false, false);
    let (mut key, mut start) = (None, None);
    for token in tokens(json) {
        let at = token.as_ptr() as usize - json.as_ptr() as usize;
        match (depth, token) {
            (0, _) => {
                is_object = token == "{";
                value_is_next = token == "[";
            }
            (1, ":") => value_is_next = true,
            (1, "," | "}" | "]") => {
                found.extend(start.take().and_then(|start: usize| json.get(start..at)).map(str::trim_ascii_end));
                index += 1;
                value_is_next = !is_object;
            }
            (1, _) if value_is_next => {
                let wanted = if is_object { key.and_then(unescaped) } else { Some(index.to_string()) };
                start = (wanted.as_deref() == Some(name)).then_some(at);
                value_is_next = false;
            }
            (1, _) => key = Some(token),
            _ => {}
        }
        match token {
            "{" | "[" => depth += 1,
            "}" | "]" => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    found
}

/// Returns the text that a JSON string stands for; `None` if there is none, as for half of a surrogate pair.
fn unescaped(token: &str) -> Option<String> {
    serde_json::from_str(token).ok()
}

fn same_number(a: &str, b: &str) -> bool {
    if let (Ok(a), Ok(b)) = (a.parse::<i128>(), b.parse::<i128>()) {
        return a == b;
    }
    let number = |text: &str| text.parse::<f64>().ok().filter(|number| number.is_finite());
    a == b || number(a).is_some_and(|a| number(b).is_some_and(|b| a.total_cmp(&b).is_eq()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(condition: &str, json: &str) -> bool {
        condition.parse::<Condition>().unwrap().holds(json)
    }

    #[test]
    fn a_value_is_found_where_the_pointer_says() {
        let json = r#" {"city" : "Paris", "n": 3, "of": {"city": "Rome", "list": [1, {"id": "x/y"}, [2.50]]}, "a/b": null,
                        "odd": "\u0000\ud800", "huge": 1e400000, "esc": "Pa\u0072is", "city2": "Oslo", "ok": true} "#;
        let found = [
            "/city=Paris",
            "/n=3",
            "/n=3.0",
            "/of/city=Rome",
            "/of/list/0=1",
            "/of/list/1/id=x/y",
            "/of/list/2/0=2.5",
            "/a~1b=null",
            "/huge=1e400000",
            "/esc=Paris",
            "/ok=true",
            "/of/list/2=[2.50]",
            r#"/of/list/1={"id":"x/y"}"#,
            r#"/city="Paris""#,
        ];
        for condition in found {
            assert!(holds(condition, json), "{condition}");
            let condition: Condition = condition.parse().unwrap();
            let needle = condition.needle();
            assert!(needle.is_none_or(|needle| json.contains(&needle) || json.contains('\\')), "{condition:?}");
        }
        let missing = [
            "/city=Rome",
            "/city=paris",
            "/n=4",
            "/n=\"3\"",
            "/of=Rome",
            "/list/0=1",
            "/of/list/3=1",
            "/odd=x",
            "/huge=1e400001",
            "/ok=false",
            "/city/0=P",
            "/=Paris",
            "=Paris",
            "/a/b=null",
            "/city2=Paris",
        ];
        for condition in missing {
            assert!(!holds(condition, json), "{condition}");
        }
        assert!(holds("=17", "17") && holds("=a=b", "\"a=b\"") && holds("/x=1", r#"{"x":2,"x":1}"#));
        assert!(holds("/id=123456789012345678901", r#"{"id":123456789012345678901}"#));
        assert!(!holds("/id=123456789012345678901", r#"{"id":123456789012345678902}"#));
    }

    #[test]
    fn text_is_found_in_strings_with_escapes() {
        assert!(contains(r#"{"a":"Zürich"}"#, "Zürich") && contains(r#"{"a":"Z\u00fcrich"}"#, "Zürich"));
        assert!(contains(r#"{"a":"say \"hi\""}"#, "say \"hi\"") && !contains(r#"{"a":"\ud800"}"#, "hi"));
    }

    #[test]
    fn a_condition_has_a_pointer_and_a_value() {
        for wrong in ["city", "city=Paris", ""] {
            assert!(wrong.parse::<Condition>().unwrap_err().contains("allowed: POINTER=VALUE"), "{wrong}");
        }
    }

    #[test]
    fn anything_is_searched_in_linear_time() {
        let deep = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
        assert!(!holds("/0/0=1", &deep));
        let wide = format!("[{}7]", "1,".repeat(200_000));
        assert!(holds("/200000=7", &wide));
    }
}
