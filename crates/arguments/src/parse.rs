//! Raw text → a JSON object, strictly: size and depth limits hold, and no key stands twice.
//!
//! `serde_json` keeps the last of two equal keys silently, and so would Postgres; a model that sent two cities must be
//! told so instead.

use std::fmt;

use redial_proto::limits::{MAX_ARGUMENTS, MAX_DEPTH};
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use crate::{place::Place, refusal::Refusal};

/// The object that `raw` holds.
pub(crate) fn parse(raw: &str) -> Result<Value, Refusal> {
    let value = any_value(raw)?;
    if value.is_object() { Ok(value) } else { Err(not_an_object(&value)) }
}

/// The value that `raw` holds, an object or not.
pub(crate) fn any_value(raw: &str) -> Result<Value, Refusal> {
    check_size(raw)?;
    let mut deserializer = serde_json::Deserializer::from_str(raw);
    Strict { place: &Place::root() }
        .deserialize(&mut deserializer)
        .and_then(|value| deserializer.end().map(|()| value))
        .map_err(|error| Refusal::malformed(format!("the arguments are no valid JSON: {error}")))
}

/// Says no to what no parser needs to look at.
pub(crate) fn check_size(raw: &str) -> Result<(), Refusal> {
    if raw.len() > MAX_ARGUMENTS {
        return Err(Refusal::malformed(format!(
            "the arguments are {} bytes; at most {MAX_ARGUMENTS} are allowed",
            raw.len()
        )));
    }
    if raw.trim().is_empty() {
        return Err(Refusal::malformed("the arguments are empty; a JSON object is needed, at least {}"));
    }
    Ok(())
}

/// Says which other kind of value was sent.
pub(crate) fn not_an_object(value: &Value) -> Refusal {
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    };
    Refusal::malformed(format!("the arguments are {kind}; a JSON object such as {{\"name\": \"value\"}} is needed"))
}

/// Builds a [`Value`]; refuses equal keys and deep nesting with the place where they are.
struct Strict<'a> {
    place: &'a Place<'a>,
}

impl Strict<'_> {
    /// Says no to an array or object that is too deep.
    fn deeper<E: Error>(&self) -> Result<(), E> {
        if self.place.depth < MAX_DEPTH {
            return Ok(());
        }
        Err(E::custom(format!("nested deeper than {MAX_DEPTH} levels")))
    }
}

impl<'de> DeserializeSeed<'de> for Strict<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("number out of range"))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E: Error>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        self.deeper()?;
        let mut items = Vec::new();
        loop {
            let place = self.place.item(items.len());
            match access.next_element_seed(Strict { place: &place })? {
                Some(item) => items.push(item),
                None => return Ok(Value::Array(items)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        self.deeper()?;
        let mut object = Map::new();
        while let Some(key) = access.next_key::<String>()? {
            let place = self.place.key(&key);
            if object.contains_key(&key) {
                let path = place.pointer();
                return Err(A::Error::custom(format!("{path} is there twice; each key may be there once")));
            }
            let value = access.next_value_seed(Strict { place: &place })?;
            object.insert(key, value);
        }
        Ok(Value::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn refused(raw: &str) -> String {
        parse(raw).unwrap_err().message
    }

    #[test]
    fn accepts_what_serde_json_accepts() {
        let raw = r#"{"a": [1, -2, 3.5, 18446744073709551615, true, null, "\u00e9"], "b": {"": {}}}"#;
        assert_eq!(parse(raw).unwrap(), serde_json::from_str::<Value>(raw).unwrap());
    }

    #[test]
    fn says_what_is_wrong_and_where() {
        insta::assert_snapshot!(refused(""), @"the arguments are empty; a JSON object is needed, at least {}");
        insta::assert_snapshot!(refused(r#"{"a":1,}"#), @"the arguments are no valid JSON: trailing comma at line 1 column 8");
        insta::assert_snapshot!(refused(r#"{"a":1"#), @"the arguments are no valid JSON: EOF while parsing an object at line 1 column 6");
        insta::assert_snapshot!(refused(r#"{"a":1} {}"#), @"the arguments are no valid JSON: trailing characters at line 1 column 9");
        insta::assert_snapshot!(refused(r#""{}""#), @r#"the arguments are a string; a JSON object such as {"name": "value"} is needed"#);
        insta::assert_snapshot!(refused(r#"{"a":1e999}"#), @"the arguments are no valid JSON: number out of range at line 1 column 10");
        insta::assert_snapshot!(
            refused(r#"{"to": [{"city": "北京", "x/y": 1, "x/y": 2}]}"#),
            @"the arguments are no valid JSON: /to/0/x~1y is there twice; each key may be there once at line 1 column 42"
        );
    }

    #[test]
    fn limits_hold() {
        let nested = |depth: usize| format!("{{\"a\":{}{}}}", "[".repeat(depth - 1), "]".repeat(depth - 1));
        assert!(parse(&nested(MAX_DEPTH)).is_ok());
        assert!(refused(&nested(MAX_DEPTH + 1)).contains("nested deeper than 64 levels"));
        assert!(refused(&"[".repeat(200_000)).contains("nested deeper than 64 levels"));
        let sized = |bytes: usize| format!("{{\"a\":\"{}\"}}", "x".repeat(bytes - 8));
        assert!(parse(&sized(MAX_ARGUMENTS)).is_ok());
        assert!(refused(&sized(MAX_ARGUMENTS + 1)).contains("at most 262144 are allowed"));
    }

    proptest! {
        #[test]
        fn no_text_panics(raw in "\\PC*") {
            let _ = parse(&raw);
        }

        #[test]
        fn nothing_that_looks_like_json_panics(raw in r#"[\[\]{}:,"\\ 0-9eE.+a-u-]{0,60}"#) {
            let strict = parse(&raw);
            let lenient = serde_json::from_str::<Value>(&raw);
            // Strict may refuse more, but never reads a text differently.
            if let Ok(value) = strict {
                prop_assert_eq!(value, lenient.unwrap());
            }
        }
    }
}
