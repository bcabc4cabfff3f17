//! Parses raw text as a JSON object, strictly: within the limits of size and depth, and without duplicate keys.
//!
//! `serde_json` silently keeps the last of two equal keys, and so would Postgres. A model that sent two cities must be
//! asked instead.

use std::fmt;

use redial_proto::{
    Advice, Language, Limited,
    limits::{self, MAX_DEPTH, MAX_PAYLOAD, MAX_VALUES},
};
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use crate::{language::pick, location::Location, refusal::Refusal};

pub(crate) fn parse(raw: &str, language: Language) -> Result<Value, Refusal> {
    let value = any_value(raw, language)?;
    if value.is_object() { Ok(value) } else { Err(not_an_object(&value, language).quoting(raw, None, language)) }
}

/// Reads the JSON value in `raw`, of any type.
pub(crate) fn any_value(raw: &str, language: Language) -> Result<Value, Refusal> {
    check_size(raw, language)?;
    let mut deserializer = serde_json::Deserializer::from_str(raw);
    Strict { location: &Location::root(), language }
        .deserialize(&mut deserializer)
        .and_then(|value| deserializer.end().map(|()| value))
        .map_err(|error| invalid_json(raw, &error, language))
}

/// Refuses invalid JSON. The parser's own message is English; the position is translated.
fn invalid_json(raw: &str, error: &serde_json::Error, language: Language) -> Refusal {
    let (line, column) = (error.line(), error.column());
    let words = error.to_string();
    let what = words.strip_suffix(&format!(" at line {line} column {column}")).unwrap_or(&words);
    let message = pick(
        language,
        format!("the arguments are not valid JSON: {words}"),
        format!("参数不是有效的 JSON（第 {line} 行第 {column} 列）：{what}"),
    );
    let advice = match (error.is_eof(), limits::json_depth(raw)) {
        (true, _) => Advice::CutOff,
        (false, depth) if depth > MAX_DEPTH && !error.is_syntax() => Advice::over(Limited::Levels, MAX_DEPTH, depth),
        _ => Advice::Place,
    };
    Refusal::malformed(message, advice).quoting(raw, Some(offset(raw, line, column)), language)
}

/// Returns the byte at a line and a column, both counted from 1, the column in bytes.
fn offset(raw: &str, line: usize, column: usize) -> usize {
    let start: usize = raw.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    (start + column.saturating_sub(1)).min(raw.len())
}

/// Refuses text that is too long, holds too much or is empty, before it is parsed.
pub(crate) fn check_size(raw: &str, language: Language) -> Result<(), Refusal> {
    let bytes = raw.len();
    if bytes > MAX_PAYLOAD {
        let over = bytes - MAX_PAYLOAD;
        let message = pick(
            language,
            format!("the arguments are {bytes} bytes, {over} too many; at most {MAX_PAYLOAD} are allowed"),
            format!("参数有 {bytes} 字节，超出 {over} 字节；最多允许 {MAX_PAYLOAD} 字节"),
        );
        let advice = Advice::over(Limited::Bytes, MAX_PAYLOAD, bytes);
        return Err(Refusal::malformed(message, advice).quoting(raw, None, language));
    }
    // Fewer bytes hold fewer values.
    let values = if bytes > MAX_VALUES { limits::json_values(raw) } else { 0 };
    if values > MAX_VALUES {
        let message = pick(
            language,
            format!("the arguments hold about {values} values; at most {MAX_VALUES} are allowed"),
            format!("参数约有 {values} 个值；最多允许 {MAX_VALUES} 个值"),
        );
        let advice = Advice::over(Limited::Values, MAX_VALUES, values);
        return Err(Refusal::malformed(message, advice).quoting(raw, None, language));
    }
    if raw.trim().is_empty() {
        let message = pick(
            language,
            "the arguments are empty; a JSON object is needed, at least {}",
            "参数是空的；需要一个 JSON 对象，至少是 {}",
        );
        return Err(Refusal::malformed(message, Advice::Form));
    }
    Ok(())
}

/// Refuses a value that is not an object; names its type.
pub(crate) fn not_an_object(value: &Value, language: Language) -> Refusal {
    let (english, chinese) = match value {
        Value::Null => ("null", " null"),
        Value::Bool(_) => ("a boolean", "布尔值"),
        Value::Number(_) => ("a number", "数字"),
        Value::String(_) => ("a string", "字符串"),
        Value::Array(_) => ("an array", "数组"),
        Value::Object(_) => ("an object", "对象"),
    };
    let message = pick(
        language,
        format!("the arguments are {english}; a JSON object such as {{\"name\": \"value\"}} is needed"),
        format!("参数是{chinese}；需要一个 JSON 对象，例如 {{\"name\": \"value\"}}"),
    );
    Refusal::malformed(message, Advice::Form)
}

/// Builds a [`Value`]; refuses duplicate keys and deep nesting and says where they are.
struct Strict<'a> {
    location: &'a Location<'a>,
    language: Language,
}

impl Strict<'_> {
    /// Refuses an array or object that is nested too deep.
    fn check_depth<E: Error>(&self) -> Result<(), E> {
        if self.location.depth < MAX_DEPTH {
            return Ok(());
        }
        Err(E::custom(pick(
            self.language,
            format!("nested deeper than {MAX_DEPTH} levels"),
            format!("嵌套超过 {MAX_DEPTH} 层"),
        )))
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
        Number::from_f64(value)
            .map(Value::Number)
            .ok_or_else(|| E::custom(pick(self.language, "number out of range", "数字超出范围")))
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
        self.check_depth()?;
        let mut items = Vec::new();
        loop {
            let location = self.location.item(items.len());
            match access.next_element_seed(Strict { location: &location, ..self })? {
                Some(item) => items.push(item),
                None => return Ok(Value::Array(items)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        self.check_depth()?;
        let mut object = Map::new();
        while let Some(key) = access.next_key::<String>()? {
            let location = self.location.key(&key);
            if object.contains_key(&key) {
                let path = location.pointer();
                return Err(A::Error::custom(pick(
                    self.language,
                    format!("{path} appears twice; each key may appear only once"),
                    format!("{path} 出现了两次；每个键只能出现一次"),
                )));
            }
            let value = access.next_value_seed(Strict { location: &location, ..self })?;
            object.insert(key, value);
        }
        Ok(Value::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(raw: &str) -> String {
        parse(raw, Language::En).unwrap_err().message
    }

    #[test]
    fn accepts_what_serde_json_accepts() {
        let raw = r#"{"a": [1, -2, 3.5, 18446744073709551615, true, null, "\u00e9"], "b": {"": {}}}"#;
        assert_eq!(parse(raw, Language::En).unwrap(), serde_json::from_str::<Value>(raw).unwrap());
    }

    #[test]
    fn says_what_is_wrong_and_where() {
        insta::assert_snapshot!(refused(""), @"the arguments are empty; a JSON object is needed, at least {}");
        insta::assert_snapshot!(refused(r#"{"a":1,}"#), @"the arguments are not valid JSON: trailing comma at line 1 column 8");
        insta::assert_snapshot!(refused(r#"{"a":1"#), @"the arguments are not valid JSON: EOF while parsing an object at line 1 column 6");
        insta::assert_snapshot!(refused(r#"{"a":1} {}"#), @"the arguments are not valid JSON: trailing characters at line 1 column 9");
        insta::assert_snapshot!(refused(r#""{}""#), @r#"the arguments are a string; a JSON object such as {"name": "value"} is needed"#);
        insta::assert_snapshot!(refused(r#"{"a":1e999}"#), @"the arguments are not valid JSON: number out of range at line 1 column 10");
        insta::assert_snapshot!(
            refused(r#"{"to": [{"city": "北京", "x/y": 1, "x/y": 2}]}"#),
            @"the arguments are not valid JSON: /to/0/x~1y appears twice; each key may appear only once at line 1 column 42"
        );
    }

    #[test]
    fn limits_hold() {
        let nested = |depth: usize| format!("{{\"a\":{}{}}}", "[".repeat(depth - 1), "]".repeat(depth - 1));
        assert!(parse(&nested(MAX_DEPTH), Language::En).is_ok());
        assert!(refused(&nested(MAX_DEPTH + 1)).contains("nested deeper than 64 levels"));
        assert!(refused(&"[".repeat(200_000)).contains("nested deeper than 64 levels"));
        let sized = |bytes: usize| format!("{{\"a\":\"{}\"}}", "x".repeat(bytes - 8));
        assert!(parse(&sized(MAX_PAYLOAD), Language::En).is_ok());
        assert!(refused(&sized(MAX_PAYLOAD + 1)).contains("at most 16777216 are allowed"));
    }
}
