//! Accepting submissions of calls.

use std::fmt::Write as _;

use redial_arguments::{Repairs, Resolved};
use redial_proto::{
    ApiError, CallId, Caller, Code, ErrorClass, Failure, Submission, ToolEffect, ToolSpec, limits,
    tool::{check_timeout, default_pool},
    turn::model_name,
    webhook,
};
use redial_records::{CallContent, CallRecord, NewCall, Redrive};
use serde_json::{Value, value::RawValue};
use uuid::Uuid;

use crate::{
    fingerprint::{fingerprint, with_sorted_keys},
    refused::{Checked, Refused},
    tools::Tools,
};

/// Turns a submission into a call to write, under this id. A call of an unknown tool or with arguments that break the schema is
/// written too, as refused: that a model asked for it is part of the audit. An error means that nothing is written: models are
/// not asked by bare calls, which have no budget.
pub fn accept(
    submission: Submission,
    caller: &Caller,
    tools: &Tools,
    id: CallId,
    traceparent: Option<String>,
) -> Result<NewCall, ApiError> {
    check_fields(&submission)?;
    if let Some(model) = model_name(&submission.tool) {
        let message = format!(
            "{:?} is the model {:?}; models are asked by tasks only: submit a task whose agent uses it",
            limits::shorten(&submission.tool, 100),
            limits::shorten(model, 100)
        );
        return Err(ApiError::new(Code::Forbidden, message));
    }
    if submission.tool == webhook::TOOL {
        let message =
            format!("{:?} delivers webhooks; its calls are made by Redial only: create a webhook", webhook::TOOL);
        return Err(ApiError::new(Code::Forbidden, message));
    }
    let checked = match resolve(&submission, tools) {
        Ok(Resolved { arguments, repairs, undeclared }) => {
            Checked { arguments: arguments.into_owned(), repairs, undeclared, ..Checked::default() }
        }
        Err(refused) => Checked::refused(submission.arguments.get().to_owned(), refused),
    };
    let tool = tools.get(&submission.tool);
    let spec = tool.map_or_else(|| unknown_spec(&submission.tool), |tool| tool.spec.clone());
    let policy = spec.retry.with(&submission.retry.unwrap_or_default());
    Ok(NewCall {
        id,
        content: submission.key.as_ref().map(|_| content_of(&submission)),
        key: submission.key,
        tool: spec.name,
        pool: spec.pool,
        effect: spec.effect,
        tenant: caller.tenant.to_string(),
        submitted_by: Some(caller.user.to_string()),
        conversation: submission.conversation,
        timeout_ms: submission.timeout_ms.unwrap_or(spec.timeout_ms),
        retry: submission.retry,
        notify: submission.notify,
        traceparent,
        deadline_ms: policy.deadline_ms,
        tool_version: tool.filter(|_| checked.refusal.is_none()).map(|tool| tool.version),
        arguments: checked.arguments,
        repairs: checked.repairs,
        undeclared: checked.undeclared,
        help: checked.help,
        refusal: checked.refusal,
        redrive_of: None,
        task: None,
        consumer: None,
    })
}

/// An ended call that is to run again with other arguments.
#[derive(Clone, Debug)]
pub struct Edited<'a> {
    pub call: &'a CallRecord,
    pub content: CallContent,
    /// Its other arguments, as they were sent.
    pub arguments: Box<RawValue>,
}

/// Makes a call of an ended one with other arguments, under this id. They are checked like those of a submission; a
/// refusal is that of the new call. Tools see the new id as idempotency key: under the old one a service would answer
/// for the old arguments.
pub fn accept_edited(edited: Edited<'_>, caller: &Caller, tools: &Tools, id: CallId) -> Result<NewCall, ApiError> {
    let Edited { call, content, arguments } = edited;
    let submission = Submission {
        conversation: content.conversation,
        timeout_ms: Some(call.timeout_ms),
        retry: Some(call.retry),
        ..Submission::new(&call.tool, arguments)
    };
    let fingerprint = content_of(&submission);
    let new = accept(submission, caller, tools, id, call.traceparent.clone())?;
    let redrive_of = Some(Redrive { call: call.id, origin: id });
    Ok(NewCall { content: Some(fingerprint), redrive_of, ..new })
}

/// Returns the arguments as the tool gets them, or why the call is refused.
fn resolve<'a>(submission: &'a Submission, tools: &Tools) -> Result<Resolved<'a>, Refused> {
    let Some(tool) = tools.get(&submission.tool) else {
        return Err(unknown_tool(&submission.tool, tools).into());
    };
    Ok(tool.schema.resolve_json(submission.arguments.get(), repairs(tool.spec.repairs))?)
}

/// Returns which repairs a tool takes.
pub const fn repairs(wanted: bool) -> Repairs {
    if wanted { Repairs::On } else { Repairs::Off }
}

fn check_fields(submission: &Submission) -> Result<(), ApiError> {
    let wrong = |message: String| Err(ApiError::new(Code::InvalidValue, message));
    let texts = [
        ("tool", Some(&submission.tool)),
        ("key", submission.key.as_ref()),
        ("conversation", submission.conversation.as_ref()),
    ];
    check_texts(&texts)?;
    let arguments = submission.arguments.get();
    if arguments.len() > limits::MAX_PAYLOAD {
        let message = format!("arguments take {} bytes; allowed: {}", arguments.len(), limits::MAX_PAYLOAD);
        return Err(ApiError::new(Code::TooLarge, message));
    }
    let depth = limits::json_depth(arguments);
    if depth > limits::MAX_DEPTH {
        let message = format!("arguments nest {depth} deep; allowed: {}", limits::MAX_DEPTH);
        return Err(ApiError::new(Code::TooLarge, message));
    }
    if let Some(timeout_ms) = submission.timeout_ms {
        check_timeout(timeout_ms).or_else(wrong)?;
    }
    if let Some(retry) = &submission.retry {
        redial_proto::RetryPolicy::default().with(retry).check().or_else(wrong)?;
    }
    Ok(())
}

/// Checks names and keys that users choose.
pub fn check_texts(texts: &[(&str, Option<&String>)]) -> Result<(), ApiError> {
    for (name, text) in texts.iter().filter_map(|(name, text)| Some((name, (*text)?))) {
        if text.is_empty() || text.len() > limits::MAX_KEY || text.chars().any(char::is_control) {
            let max = limits::MAX_KEY;
            let shown = limits::shorten(text, 60);
            let message = format!("{name} is {shown:?}; allowed: 1 to {max} bytes without control characters");
            return Err(ApiError::new(Code::InvalidValue, message));
        }
    }
    Ok(())
}

fn unknown_tool(name: &str, tools: &Tools) -> Failure {
    let mut message = format!("no worker has registered a tool {name:?}");
    // Models and deliveries are no tools that a call may name.
    let known = tools.keys().map(String::as_str).filter(|name| model_name(name).is_none() && *name != webhook::TOOL);
    match redial_arguments::closest(name, known, 3).as_slice() {
        [] if tools.is_empty() => message.push_str("; no tool is known at all: is a worker running?"),
        [] => message.push_str("; no known tool has a similar name, `redial tools` lists them"),
        closest => {
            let names: Vec<_> = closest.iter().map(|name| format!("{name:?}")).collect();
            // Writing to a String cannot fail.
            let _ = write!(message, "; did you mean {}?", names.join(" or "));
        }
    }
    Failure::new(ErrorClass::UnknownTool, message).without_effect()
}

/// Makes what is on record of a tool that is not registered: the most careful assumptions.
pub fn unknown_spec(name: &str) -> ToolSpec {
    ToolSpec { pool: default_pool(), effect: ToolEffect::Unsafe, ..ToolSpec::named(name) }
}

/// Fingerprints what shapes the call, to tell a repeated submission from another one under the same key: the keys of
/// objects are in order, so that a client may write the same arguments in another order.
fn content_of(submission: &Submission) -> Uuid {
    let arguments = serde_json::from_str::<Value>(submission.arguments.get()).map(with_sorted_keys);
    let content = serde_json::json!([
        submission.tool,
        arguments.unwrap_or_else(|_| submission.arguments.get().into()),
        submission.conversation,
        submission.timeout_ms,
        submission.retry,
    ]);
    fingerprint(&content)
}
