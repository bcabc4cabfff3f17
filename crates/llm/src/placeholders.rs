//! Texts for parts that a provider requires and a conversation lacks.

use redial_proto::Language;

/// Returns the result of a call without a result.
pub(crate) const fn no_result(language: Language) -> &'static str {
    match language {
        Language::En => r#"{"status":"error","class":"lost","message":"This call has no result."}"#,
        Language::Zh => r#"{"status":"error","class":"lost","message":"此调用没有结果。"}"#,
    }
}

/// Returns a user message before a conversation that begins in the middle.
pub(crate) const fn beginning(language: Language) -> &'static str {
    match language {
        Language::En => "(The beginning of the conversation was left out.)",
        Language::Zh => "（对话的开头已省略。）",
    }
}

/// Returns a user message that asks the model to continue.
pub(crate) const fn go_on(language: Language) -> &'static str {
    match language {
        Language::En => "Continue.",
        Language::Zh => "请继续。",
    }
}

/// Returns the text of an empty user message.
pub(crate) const fn nothing(language: Language) -> &'static str {
    match language {
        Language::En => "(no text)",
        Language::Zh => "（空）",
    }
}
