//! What stands in a conversation where something is missing that a provider insists on.

use redial_proto::Language;

/// The result of a call that has none.
pub(crate) const fn no_result(language: Language) -> &'static str {
    match language {
        Language::En => r#"{"status":"error","class":"lost","message":"There is no result of this call."}"#,
        Language::Zh => r#"{"status":"error","class":"lost","message":"此调用没有结果。"}"#,
    }
}

/// A user message in front of a conversation that begins in the middle.
pub(crate) const fn beginning(language: Language) -> &'static str {
    match language {
        Language::En => "(The beginning of the conversation is left out.)",
        Language::Zh => "（对话的开头已省略。）",
    }
}

/// A user message after which the model has the word.
pub(crate) const fn go_on(language: Language) -> &'static str {
    match language {
        Language::En => "Go on.",
        Language::Zh => "请继续。",
    }
}

/// An empty user message.
pub(crate) const fn nothing(language: Language) -> &'static str {
    match language {
        Language::En => "(no text)",
        Language::Zh => "（空）",
    }
}
