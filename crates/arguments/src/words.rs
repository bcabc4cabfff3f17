//! One thing to say, in the language of the model.

use redial_proto::{FieldError, Language};

/// The text in the wanted language.
pub(crate) fn pick(language: Language, english: impl Into<String>, chinese: impl Into<String>) -> String {
    match language {
        Language::En => english.into(),
        Language::Zh => chinese.into(),
    }
}

/// A broken rule in one line.
pub(crate) fn line(violation: &FieldError, language: Language) -> String {
    if language == Language::En {
        return violation.to_string();
    }
    let FieldError { path, rule, sent, allowed, hint } = violation;
    let place = if path.is_empty() { "整个参数" } else { path };
    let hint = hint.as_ref().map(|hint| format!("（{hint}）")).unwrap_or_default();
    if rule == "required" {
        return format!("缺少 {place}，允许的是：{allowed}{hint}");
    }
    format!("{place} 收到的是 {sent}，允许的是：{allowed}{hint}")
}
