//! Texts in the model's language.

use redial_proto::{FieldError, Language};

pub(crate) fn pick(language: Language, english: impl Into<String>, chinese: impl Into<String>) -> String {
    match language {
        Language::En => english.into(),
        Language::Zh => chinese.into(),
    }
}

/// Writes a field error in one line.
pub(crate) fn line(error: &FieldError, language: Language) -> String {
    if language == Language::En {
        return error.to_string();
    }
    let FieldError { path, rule, allowed, hint, .. } = error;
    let field = if path.is_empty() { "整个参数" } else { path };
    let hint = hint.as_ref().map(|hint| format!("（{hint}）")).unwrap_or_default();
    match error.was_sent() {
        Some(sent) => format!("{field} 收到的是 {sent}，允许的是：{allowed}{hint}"),
        None if rule == "required" => format!("缺少 {field}，允许的是：{allowed}{hint}"),
        None => format!("{field} 没有收到任何值，允许的是：{allowed}{hint}"),
    }
}
