//! The last call of a reply that ended at the model's limit of tokens.

use redial_arguments::{Advice, Help};
use redial_proto::{ErrorClass, Language};
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
        Language::En => "The reply was cut off at the limit of tokens before this call was complete, so it was not run.",
        Language::Zh => "回复达到词元（token）上限而被截断，这个调用没有写完，因此没有运行。",
    }
}

/// Stands for a verdict while it is replaced.
const fn nothing() -> Verdict {
    Verdict::Answered { tool: String::new(), output: String::new() }
}
