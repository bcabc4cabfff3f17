//! Structured errors of services and programs, in three forms: Redial's `{"error": {...}}`, problem details (RFC 9457),
//! and FastAPI's `{"detail": [...]}`.

use redial_proto::{ErrorClass, FieldError};
use serde_json::{Map, Value};

/// The parts of an error's body that were understood.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct ReportedError {
    pub(crate) class: Option<ErrorClass>,
    pub(crate) message: Option<String>,
    pub(crate) details: Vec<FieldError>,
    pub(crate) retry_after_ms: Option<u64>,
    pub(crate) effect_possible: Option<bool>,
}

/// Reads an error's body; `None` if it has no known form.
pub(crate) fn read(body: &[u8]) -> Option<ReportedError> {
    let value: Value = serde_json::from_slice(body).ok()?;
    let object = value.as_object()?;
    let error = match object.get("error") {
        Some(Value::Object(error)) => redial(error),
        Some(Value::String(message)) => ReportedError { message: Some(message.clone()), ..ReportedError::default() },
        _ => problem_details(object),
    };
    (error != ReportedError::default()).then_some(error)
}

fn redial(error: &Map<String, Value>) -> ReportedError {
    ReportedError {
        class: error.get("class").and_then(Value::as_str).and_then(claimable_class),
        message: text(error, "message"),
        details: items(error, "details").filter_map(field_error).collect(),
        retry_after_ms: error.get("retry_after_ms").and_then(Value::as_u64),
        effect_possible: error.get("effect_possible").and_then(Value::as_bool),
    }
}

fn problem_details(object: &Map<String, Value>) -> ReportedError {
    let words: Vec<String> = [text(object, "title"), text(object, "detail")].into_iter().flatten().collect();
    let message = if words.is_empty() { text(object, "message") } else { Some(words.join(": ")) };
    let details: Vec<FieldError> =
        items(object, "errors").chain(items(object, "detail")).filter_map(field_error).collect();
    ReportedError { message, details, ..ReportedError::default() }
}

/// Reads a field error, with the field names of any of the three forms.
fn field_error(item: &Value) -> Option<FieldError> {
    let item = item.as_object()?;
    let any = |names: &[&str]| names.iter().find_map(|name| text(item, name));
    let path = any(&["path", "pointer"]).map(|path| path.trim_start_matches('#').to_owned());
    let allowed = any(&["allowed", "detail", "message", "msg"])?;
    Some(FieldError {
        path: path.or_else(|| item.get("loc").map(location)).unwrap_or_default(),
        rule: any(&["rule", "type", "code"]).unwrap_or_else(|| "service".to_owned()),
        sent: item.get("sent").or_else(|| item.get("input")).cloned(),
        allowed,
        hint: text(item, "hint"),
    })
}

/// Writes FastAPI's `["body", "items", 0]` as a JSON pointer.
fn location(loc: &Value) -> String {
    let steps = loc.as_array().map(Vec::as_slice).unwrap_or_default();
    let steps = match steps.first().and_then(Value::as_str) {
        Some("body" | "query" | "path") => &steps[1..],
        _ => steps,
    };
    steps.iter().fold(String::new(), |path, step| match step {
        Value::String(key) => format!("{path}/{}", key.replace('~', "~0").replace('/', "~1")),
        other => format!("{path}/{other}"),
    })
}

/// The classes that a tool may claim for its failures; only Redial itself assigns the others.
pub(crate) const CLAIMABLE: [ErrorClass; 9] = [
    ErrorClass::InvalidArguments,
    ErrorClass::BusinessRule,
    ErrorClass::RateLimited,
    ErrorClass::Unavailable,
    ErrorClass::Timeout,
    ErrorClass::Auth,
    ErrorClass::Configuration,
    ErrorClass::ToolFailed,
    ErrorClass::Internal,
];

fn claimable_class(name: &str) -> Option<ErrorClass> {
    name.parse().ok().filter(|class| CLAIMABLE.contains(class))
}

fn text(object: &Map<String, Value>, name: &str) -> Option<String> {
    object.get(name).and_then(Value::as_str).filter(|text| !text.trim().is_empty()).map(str::to_owned)
}

fn items<'a>(object: &'a Map<String, Value>, name: &str) -> impl Iterator<Item = &'a Value> {
    object.get(name).and_then(Value::as_array).into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(body: &str) -> Option<(Option<String>, Vec<String>)> {
        let error = read(body.as_bytes())?;
        let sent = |v: &FieldError| v.sent.clone().unwrap_or_default();
        let details =
            error.details.iter().map(|v| format!("{} {} {} {}", v.path, v.rule, sent(v), v.allowed)).collect();
        Some((error.message, details))
    }

    #[test]
    fn known_forms() {
        let message = |text: &str| Some(text.to_owned());
        for (body, expected) in [
            (r#"{"error":"no such city"}"#, Some((message("no such city"), vec![]))),
            (r#"{"error":{"message":"no","code":7}}"#, Some((message("no"), vec![]))),
            (r#"{"title":"Bad","detail":"days < 1","status":400}"#, Some((message("Bad: days < 1"), vec![]))),
            (
                r##"{"title":"Bad","errors":[{"pointer":"#/days","detail":"1 to 5"}]}"##,
                Some((message("Bad"), vec!["/days service null 1 to 5".to_owned()])),
            ),
            (
                r#"{"detail":[{"loc":["body","days",0],"msg":"an integer","type":"int","input":"x"}]}"#,
                Some((None, vec!["/days/0 int \"x\" an integer".to_owned()])),
            ),
            (r#"{"message":"plain"}"#, Some((message("plain"), vec![]))),
            (r#"{"ok":false}"#, None),
            ("[1]", None),
            ("no JSON", None),
        ] {
            assert_eq!(summary(body), expected, "{body}");
        }
    }

    #[test]
    fn a_tool_may_not_claim_every_class() {
        let class =
            |name: &str| read(format!(r#"{{"error":{{"class":"{name}","message":"m"}}}}"#).as_bytes()).unwrap().class;
        assert_eq!(class("rate_limited"), Some(ErrorClass::RateLimited));
        assert_eq!(class("tool_failed"), Some(ErrorClass::ToolFailed));
        assert_eq!(class("cancelled"), None);
        assert_eq!(class("lost"), None);
        assert_eq!(class("nonsense"), None);
    }
}
