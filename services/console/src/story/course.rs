//! Changes of course: what they are called, and why.

use redial_proto::TaskDecision;

use crate::show::{self, things};

/// Names a change of course, with the reason in words.
pub(crate) fn course(decision: &TaskDecision) -> Option<(&'static str, String)> {
    Some(match decision {
        TaskDecision::Accepted { problem, refused } => {
            let text = format!(
                "The answer was taken as it is ({problem}), after {} that were not.",
                things(*refused, "answer")
            );
            ("accepted", text)
        }
        TaskDecision::Fallback { model, because, pruned } => {
            let hidden = if pruned.is_empty() {
                String::new()
            } else {
                format!(" {} hidden from the model (policy fallback).", things(pruned.len(), "failed call"))
            };
            ("fell back", format!("To {model}: {because}.{hidden}"))
        }
        TaskDecision::Returned { model } => ("returned", format!("To {model}: the call is answered.")),
        TaskDecision::LastAnswer { code } => (
            "limit",
            format!(
                "{}: running calls are stopped, and the model is asked for a last answer without tools.",
                show::words(code.as_str())
            ),
        ),
        TaskDecision::Stopping { calls } => ("stopping", format!("{} still running.", things(*calls, "call"))),
        TaskDecision::Ended { state, code, message } => {
            let message = message.as_deref().map(|message| format!(": {message}")).unwrap_or_default();
            (state.as_str(), format!("{}{message}", show::words(code.as_str())))
        }
        TaskDecision::Unknown => {
            ("unknown", "A newer version of Redial decided something that this one does not know.".to_owned())
        }
        TaskDecision::Message { .. }
        | TaskDecision::Turn { .. }
        | TaskDecision::Run { .. }
        | TaskDecision::Answered { .. }
        | TaskDecision::Nudged { .. } => return None,
    })
}
