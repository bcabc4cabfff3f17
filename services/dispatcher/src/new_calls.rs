//! Writes new calls, and says what became of each.

use redial_engine::{call, feedback::CallFailure, publish::FIRST_CHECK_MS};
use redial_proto::{ApiError, Code, ErrorClass, Failure, Language, SubmitResult, SubmitStatus, limits};
use redial_records::NewCall;
use redial_store::Submitted;
use redial_telemetry::{metrics, names};
use redial_views::feedback;
use serde_json::value::RawValue;
use uuid::Uuid;

use crate::{context::Context, effects, error::store_failed};

/// Writes calls, publishes their jobs, and returns the result of each, in order.
pub(crate) async fn write(context: &Context, calls: &[NewCall]) -> Vec<SubmitResult> {
    let mut results = Vec::with_capacity(calls.len());
    for calls in calls.chunks(limits::MAX_BATCH) {
        metrics().batch_size("submit", calls.len());
        match context.store.submit(calls, FIRST_CHECK_MS).await {
            Ok(written) => {
                // Once for all of them, because it is logged.
                let unread = written.iter().find_map(Submitted::unread).map(store_failed);
                for (call, written) in calls.iter().zip(written) {
                    if matches!(written, Submitted::Written) {
                        effects::carry_out(context, call::submitted(call)).await;
                    } else {
                        context.not_published([call].into_iter());
                    }
                    let result = match (&written, &unread) {
                        (Submitted::Unread(_), Some(error)) => SubmitResult::rejected(error.clone()),
                        _ => answer(context, call, &written),
                    };
                    metrics().calls_submitted(metric_tool(call), result.status.as_str(), 1);
                    results.push(result);
                }
            }
            Err(error) => {
                context.not_published(calls.iter());
                let rejected = SubmitResult::rejected(store_failed(&error));
                results.resize(results.len() + calls.len(), rejected);
            }
        }
    }
    results
}

/// Returns the tool for metrics: names of unregistered tools, and of functions, would make a series each.
pub(crate) fn metric_tool(call: &NewCall) -> &str {
    match &call.refusal {
        Some(Failure { class: ErrorClass::UnknownTool, .. }) => names::OTHER_TOOL,
        _ if call.is_of_client() => names::CLIENT_FUNCTION,
        _ => &call.tool,
    }
}

fn answer(context: &Context, call: &NewCall, written: &Submitted) -> SubmitResult {
    use redial_proto::CallState::{Ready, Refused};
    let (status, id, state, submitted_at, error) = match (written, &call.refusal) {
        (Submitted::Written, None) => (SubmitStatus::Accepted, call.id, Ready, None, None),
        (Submitted::Written, Some(refusal)) => (SubmitStatus::Refused, call.id, Refused, None, Some(refused(refusal))),
        (Submitted::Existing { id, state: Refused, submitted_at, .. }, Some(refusal)) => {
            (SubmitStatus::Refused, *id, Refused, Some(*submitted_at), Some(refused(refusal)))
        }
        (Submitted::Existing { id, state, content, submitted_at }, _) if is_same(call, *content) => {
            (SubmitStatus::Existing, *id, *state, Some(*submitted_at), None)
        }
        (Submitted::Existing { id, .. }, _) if call.redrive_of.is_some() => {
            let message = format!(
                "the call was redriven before with other arguments, as call {id}; a call is redriven once, and that one can be \
                 redriven in turn when it has ended"
            );
            return SubmitResult::rejected(ApiError::new(Code::IdempotencyConflict, message));
        }
        (Submitted::Existing { id, .. }, _) => {
            let message = format!(
                "key {:?} was used before for other content, by call {id}; use another key for another call",
                call.key.as_deref().unwrap_or_default()
            );
            return SubmitResult::rejected(ApiError::new(Code::IdempotencyConflict, message));
        }
        (Submitted::Gone, _) => {
            let message = "another call with its key, or the call that it repeats, is being erased; try again";
            return SubmitResult::rejected(ApiError::new(Code::Unavailable, message));
        }
        (Submitted::Unread(error), _) => return SubmitResult::rejected(store_failed(error)),
    };
    let feedback = if status == SubmitStatus::Refused { feedback_on(call) } else { None };
    let waits = status == SubmitStatus::Accepted && call.consumer.is_none();
    let waits_for = waits.then(|| context.feeder.wait_reason(&call.tool));
    SubmitResult { status, call: Some(id), state: Some(state), submitted_at, waits_for, error, feedback }
}

/// Says whether a call that is there is what this one asks for. Whoever has a call run again as it was gets whichever
/// call runs it again.
fn is_same(call: &NewCall, content: Option<Uuid>) -> bool {
    content == call.content || (call.redrive_of.is_some() && call.content.is_none())
}

/// Returns the answer to a call that would be refused, and is not put on record.
pub(crate) fn rejected(call: &NewCall, refusal: &Failure) -> SubmitResult {
    SubmitResult { feedback: feedback_on(call), ..SubmitResult::rejected(refused(refusal)) }
}

/// Returns what a model gets as the result of a refused call.
fn feedback_on(call: &NewCall) -> Option<Box<RawValue>> {
    let refusal = call.refusal.as_ref()?;
    let help = call.help.as_ref().map(|help| help.with_lists(call.repairs.clone(), call.undeclared.clone()));
    let (sent, help) = (call.arguments.as_str(), help.as_ref());
    Some(feedback(CallFailure { sent, help, ..CallFailure::new(&call.tool, refusal) }, Language::default()))
}

fn refused(refusal: &Failure) -> ApiError {
    let code = match refusal.class {
        ErrorClass::UnknownTool => Code::UnknownTool,
        ErrorClass::Configuration => Code::InvalidManifest,
        _ => Code::InvalidArguments,
    };
    ApiError { code, message: refusal.message.clone(), details: refusal.details.clone() }
}
