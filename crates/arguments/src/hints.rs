//! Suggests likely corrections.

use redial_proto::Language;
use serde_json::{Map, Value};

use crate::{closest::closest, language::pick};

/// Suggests the declared property that an unknown key may have meant, unless it was sent as well.
pub(crate) fn for_extra_key(
    key: &str,
    sent: &Value,
    declared: &Map<String, Value>,
    language: Language,
) -> Option<String> {
    let free = declared.keys().map(String::as_str).filter(|name| sent.get(name).is_none());
    closest(key, free, 1).first().map(|name| did_you_mean(&format!("\"{name}\""), language))
}

/// Suggests the unknown key that was sent and may have meant the missing property.
pub(crate) fn for_missing(
    property: &str,
    sent: &Value,
    declared: &Map<String, Value>,
    language: Language,
) -> Option<String> {
    let sent = sent.as_object()?;
    let unknown = sent.keys().map(String::as_str).filter(|key| !declared.contains_key(*key));
    closest(property, unknown, 1).first().map(|key| {
        let (english, chinese) = (format!("\"{key}\" was sent; "), format!("收到的是 \"{key}\"，"));
        pick(language, english, chinese) + &did_you_mean(&format!("\"{property}\""), language)
    })
}

/// Suggests the allowed value that a string may have meant.
pub(crate) fn for_enum(sent: &Value, allowed: &[Value], language: Language) -> Option<String> {
    if let Some(same) = allowed.iter().find(|value| !value.is_string() && written_as(sent, value)) {
        return Some(did_you_mean(same, language));
    }
    let names = allowed.iter().filter_map(Value::as_str);
    closest(sent.as_str()?, names, 1).first().map(|name| did_you_mean(&format!("\"{name}\""), language))
}

/// Suggests the value of the right type that may have been meant: one that a string spells, a string, or a list of one
/// item.
pub(crate) fn for_type(sent: &Value, types: &Value, language: Language) -> Option<String> {
    let allows = |name: &str| types == name || types.as_array().is_some_and(|all| all.iter().any(|one| one == name));
    let fits = |value: &Value| match value {
        Value::Number(number) => allows("number") || (allows("integer") && !number.is_f64()),
        Value::Bool(_) => allows("boolean"),
        Value::Array(_) => allows("array"),
        Value::Object(_) => allows("object"),
        Value::Null => allows("null"),
        Value::String(_) => allows("string"),
    };
    let spells = |text: &str| serde_json::from_str(text).is_ok_and(|value: Value| !value.is_string() && fits(&value));
    match sent {
        Value::String(text) if spells(text) => {
            Some(pick(language, "did you mean the same without quotes?", "是否应去掉引号？"))
        }
        Value::Number(_) | Value::Bool(_) if allows("string") => Some(did_you_mean(&format!("\"{sent}\""), language)),
        // A string that lists several items is not a list of one.
        Value::String(text) if allows("array") && text.contains([',', '，', '[', '\n']) => None,
        Value::String(_) | Value::Number(_) | Value::Bool(_) if allows("array") && is_short(sent) => {
            Some(did_you_mean(&format!("[{sent}]"), language))
        }
        Value::Array(items) => match items.as_slice() {
            [only] if fits(only) && is_short(only) => Some(did_you_mean(only, language)),
            _ => None,
        },
        _ => None,
    }
}

fn did_you_mean(what: &dyn std::fmt::Display, language: Language) -> String {
    pick(language, format!("did you mean {what}?"), format!("是否应为 {what}？"))
}

/// True for a short value: hints quote no other.
fn is_short(value: &Value) -> bool {
    value.to_string().len() <= 100
}

fn written_as(sent: &Value, value: &Value) -> bool {
    let text = value.to_string();
    sent == text.as_str()
}
