//! The last call of a reply that ended at the model's limit of tokens.

use redial_proto::{Advice, ErrorClass, Help, Language};
use serde::de::IgnoredAny;

use crate::task::{
    event::{Proposed, Verdict},
    step::failed,
};

/// Refuses the last call if the limit cut it off: half a call never runs, and the model learns that it was half a call.
///
/// A call whose arguments are a complete object is whole, because repairs never complete one; unless `cut_off`: the
/// provider knows better.
pub(super) fn refuse_last(calls: &mut [Proposed], cut_off: bool, language: Language) {
    let Some(call) = calls.last_mut() else { return };
    let written = call.arguments.trim();
    let is_whole = match &call.verdict {
        Verdict::Run { .. } | Verdict::Answered { .. } => !written.is_empty(),
        Verdict::Refused { .. } => is_object(written),
    };
    if is_whole && !cut_off {
        return;
    }
    let (tool, version, help) = match std::mem::replace(&mut call.verdict, nothing()) {
        Verdict::Run { tool, version, .. } => (Some(tool), version, None),
        Verdict::Answered { tool, .. } => (Some(tool), String::new(), None),
        Verdict::Refused { tool, version, help, .. } => (tool, version, help),
    };
    let sent = || (!written.is_empty()).then(|| redial_proto::limits::shorten(written, SHOWN));
    let mut help = help.unwrap_or_else(|| Box::new(Help { sent: sent(), ..Help::default() }));
    help.advice = Advice::CutOff;
    let failure = failed(ErrorClass::MalformedArguments, message(language));
    call.verdict = Verdict::Refused { tool, version, failure, help: Some(help) };
}

/// Bytes of the arguments that are quoted, if no check has quoted them.
const SHOWN: usize = 400;

fn is_object(text: &str) -> bool {
    text.starts_with('{') && serde_json::from_str::<IgnoredAny>(text).is_ok()
}

const fn message(language: Language) -> &'static str {
    match language {
        Language::En => {
            "The reply was cut off at the limit of tokens before this call was complete, so it was not run."
        }
        Language::Zh => "回复达到词元（token）上限而被截断，这个调用没有写完，因此没有运行。",
    }
}

/// Makes what stands for a verdict while it is replaced.
const fn nothing() -> Verdict {
    Verdict::Answered { tool: String::new(), output: String::new() }
}

#[cfg(test)]
mod tests {
    use redial_proto::Failure;

    use super::*;

    fn runs(arguments: &str) -> Proposed {
        let verdict = Verdict::Run {
            tool: "pay".to_owned(),
            arguments: "{}".to_owned(),
            repairs: Vec::new(),
            undeclared: Vec::new(),
            version: "1".to_owned(),
            polling: false,
            sequential: false,
        };
        Proposed { name: "pay".to_owned(), arguments: arguments.to_owned(), verdict }
    }

    fn refused(class: ErrorClass, arguments: &str) -> Proposed {
        let failure: Failure = failed(class, "no");
        let verdict = Verdict::Refused { tool: None, version: String::new(), failure, help: None };
        Proposed { verdict, ..runs(arguments) }
    }

    /// Returns the class of the last of two calls, if it does not run.
    fn class(last: Proposed, cut_off: bool, language: Language) -> Option<ErrorClass> {
        let mut calls = [runs(""), last];
        refuse_last(&mut calls, cut_off, language);
        assert!(matches!(calls[0].verdict, Verdict::Run { .. }), "only the last call can be cut off");
        match &calls[1].verdict {
            Verdict::Refused { failure, help, .. } => {
                let told = help.as_ref().is_some_and(|help| help.advice == Advice::CutOff);
                assert_eq!(told, failure.message == message(language));
                Some(failure.class)
            }
            _ => None,
        }
    }

    #[test]
    fn half_a_call_never_runs_and_a_whole_one_does() {
        use ErrorClass::{InvalidArguments, MalformedArguments, UnknownTool};
        let cases = [
            (runs(r#"{"a": 1}"#), false, None),
            (runs("{}"), false, None),
            (runs(" "), false, Some(MalformedArguments)),
            (runs(r#"{"a": 1}"#), true, Some(MalformedArguments)),
            (refused(UnknownTool, ""), false, Some(MalformedArguments)),
            (refused(InvalidArguments, r#"{"a": 1}"#), false, Some(InvalidArguments)),
            (refused(InvalidArguments, ""), false, Some(MalformedArguments)),
            (refused(MalformedArguments, r#"{"a": "#), false, Some(MalformedArguments)),
        ];
        for (call, cut_off, expected) in cases {
            for language in [Language::En, Language::Zh] {
                assert_eq!(class(call.clone(), cut_off, language), expected, "{call:?}");
            }
        }
        refuse_last(&mut [], true, Language::En);
    }
}
