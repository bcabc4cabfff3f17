//! Describes limits of values, lengths and counts.

use redial_proto::Language;
use serde_json::Value;

use crate::language::pick;

/// Describes `minimum` and `maximum`, with or without the bound itself.
pub(super) fn range(schema: &Value, language: Language) -> Option<String> {
    let get = |name| schema.get(name).filter(|value: &&Value| value.is_number());
    if let (Some(low), Some(high)) = (get("minimum"), get("maximum")) {
        return Some(pick(language, format!("{low} to {high}"), format!("{low} 到 {high}")));
    }
    let bound = |name, english: &str, chinese: &str| {
        get(name).map(|value| pick(language, format!("{english} {value}"), format!("{chinese} {value}")))
    };
    let low = bound("minimum", "at least", "不小于").or_else(|| bound("exclusiveMinimum", "more than", "大于"));
    let high = bound("maximum", "at most", "不大于").or_else(|| bound("exclusiveMaximum", "less than", "小于"));
    match (low, high) {
        (Some(low), Some(high)) => Some(pick(language, format!("{low} and {high}"), format!("{low} 且{high}"))),
        (low, high) => low.or(high),
    }
}

/// Describes `minLength` and `maxLength`, and the like: `of` is `Length`, `Items` or `Properties`.
pub(super) fn count(schema: &Value, of: &str, language: Language) -> Option<String> {
    let get = |bound: &str| schema.get(format!("{bound}{of}")).and_then(Value::as_u64);
    let (one, many, chinese) = match of {
        "Length" => ("character", "characters", "个字符"),
        "Items" => ("item", "items", "个元素"),
        _ => ("property", "properties", "个属性"),
    };
    let english = |count: u64| if count == 1 { one } else { many };
    Some(match (get("min"), get("max")) {
        (Some(low), Some(high)) if low == high => {
            pick(language, format!("exactly {low} {}", english(low)), format!("正好 {low} {chinese}"))
        }
        (Some(low), Some(high)) => {
            pick(language, format!("{low} to {high} {many}"), format!("{low} 到 {high} {chinese}"))
        }
        (Some(low), None) => {
            pick(language, format!("at least {low} {}", english(low)), format!("至少 {low} {chinese}"))
        }
        (None, Some(high)) => {
            pick(language, format!("at most {high} {}", english(high)), format!("至多 {high} {chinese}"))
        }
        (None, None) => return None,
    })
}
