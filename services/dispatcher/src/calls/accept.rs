//! Turns a submission into a call to write, or says what is wrong with it. Pure.

use std::fmt::Write as _;

use redial_arguments::{Refusal, Repairs};
use redial_engine::{fingerprint::fingerprint, tools::Tools};
use redial_proto::{
    ApiError, CallId, Code, Effect, ErrorClass, Repair, Submission, SubmitBatch, ToolSpec, limits,
    tool::{check_timeout, default_pool},
};
use redial_store::{NewCall, Reason};
use serde::Deserialize;
use serde_json::{Value, value::RawValue};
use uuid::Uuid;

use crate::serve::decode;

/// A message of one submission or of many; each is readable or not on its own.
pub(crate) enum Message {
    /// The reply is one result.
    Single(Box<Result<Submission, ApiError>>),
    /// The reply is a list of results.
    Batch(Vec<Result<Submission, ApiError>>),
}

impl Message {
    /// Reads a message. The error is about the message as a whole.
    pub(crate) fn read(payload: &[u8]) -> Result<Self, ApiError> {
        #[derive(Deserialize)]
        struct Probe<'a> {
            #[serde(borrow)]
            calls: Option<&'a RawValue>,
        }
        if decode::<Probe<'_>>(payload)?.calls.is_none() {
            return Ok(Self::Single(Box::new(decode(payload))));
        }
        let batch: SubmitBatch = decode(payload)?;
        if batch.calls.len() > limits::MAX_BATCH {
            let message = format!("calls holds {} submissions; allowed: {}", batch.calls.len(), limits::MAX_BATCH);
            return Err(ApiError::new(Code::TooLarge, message));
        }
        Ok(Self::Batch(batch.calls.iter().map(|call| decode(call.get().as_bytes())).collect()))
    }

    /// Its submissions, and whether it was a batch.
    pub(crate) fn into_submissions(self) -> (Vec<Result<Submission, ApiError>>, bool) {
        match self {
            Self::Single(submission) => (vec![*submission], false),
            Self::Batch(submissions) => (submissions, true),
        }
    }
}

/// Turns a submission into a call to write. A call of an unknown tool or with arguments that break the schema is
/// written too, as refused: that a model asked for it is part of the audit. An error means that nothing is written.
pub(crate) fn accept(submission: Submission, tools: &Tools, traceparent: Option<String>) -> Result<NewCall, ApiError> {
    check_fields(&submission)?;
    let tool = tools.get(&submission.tool);
    let sent = submission.arguments.get();
    let resolved = match tool {
        None => Err(unknown_tool(&submission.tool, tools)),
        Some(tool) => tool.schema.resolve(sent, repairs(tool.spec.repairs)).map_err(refusal),
    };
    let (arguments, repairs, refusal) = match resolved {
        Ok(resolved) => (resolved.arguments.into_owned(), resolved.repairs, None),
        Err(refusal) => (sent.to_owned(), Vec::new(), Some(refusal)),
    };
    let spec = tool.map_or_else(|| unknown_spec(&submission.tool), |tool| tool.spec.clone());
    let policy = spec.retry.with(&submission.retry.unwrap_or_default());
    // A refused call does not hold its key: the corrected submission may use it.
    let key = submission.key.clone().filter(|_| refusal.is_none());
    Ok(NewCall {
        id: CallId::generate(),
        content: key.as_ref().map(|_| content_of(&submission)),
        key,
        tool: spec.name,
        pool: spec.pool,
        effect: spec.effect,
        tenant: submission.tenant.unwrap_or_else(|| "default".to_owned()),
        conversation: submission.conversation,
        timeout_ms: submission.timeout_ms.unwrap_or(spec.timeout_ms),
        retry: submission.retry.and_then(|retry| serde_json::to_string(&retry).ok()),
        notify: submission.notify,
        traceparent,
        deadline_ms: policy.deadline_ms,
        arguments,
        repairs: repairs_json(&repairs),
        refusal,
        redrive_of: None,
        task: None,
    })
}

/// Repairs as they are stored; none if there were none.
pub(crate) fn repairs_json(repairs: &[Repair]) -> Option<String> {
    (!repairs.is_empty()).then(|| serde_json::to_string(repairs).ok()).flatten()
}

/// Whether a tool takes repaired arguments.
pub(crate) const fn repairs(wanted: bool) -> Repairs {
    if wanted { Repairs::On } else { Repairs::Off }
}

fn refusal(refusal: Refusal) -> Reason {
    let details = (!refusal.details.is_empty()).then(|| serde_json::to_string(&refusal.details).ok());
    Reason { class: refusal.class, message: refusal.message, details: details.flatten() }
}

fn check_fields(submission: &Submission) -> Result<(), ApiError> {
    let wrong = |message: String| Err(ApiError::new(Code::InvalidValue, message));
    let texts = [
        ("tool", Some(&submission.tool)),
        ("key", submission.key.as_ref()),
        ("tenant", submission.tenant.as_ref()),
        ("conversation", submission.conversation.as_ref()),
    ];
    check_texts(&texts)?;
    let arguments = submission.arguments.get();
    if arguments.len() > limits::MAX_ARGUMENTS {
        let message = format!("arguments take {} bytes; allowed: {}", arguments.len(), limits::MAX_ARGUMENTS);
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

/// Names and keys that users choose.
pub(crate) fn check_texts(texts: &[(&str, Option<&String>)]) -> Result<(), ApiError> {
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

fn unknown_tool(name: &str, tools: &Tools) -> Reason {
    let mut message = format!("no worker has registered a tool {name:?}");
    match redial_arguments::closest(name, tools.keys().map(String::as_str), 3).as_slice() {
        [] if tools.is_empty() => message.push_str("; no tool is known at all: is a worker running?"),
        [] => message.push_str("; no known tool has a similar name, `redial tools` lists them"),
        closest => {
            let names: Vec<_> = closest.iter().map(|name| format!("{name:?}")).collect();
            // Writing to a String cannot fail.
            let _ = write!(message, "; did you mean {}?", names.join(" or "));
        }
    }
    Reason { class: ErrorClass::UnknownTool, message, details: None }
}

/// What stands in the row of a call whose tool nobody knows.
pub(crate) fn unknown_spec(name: &str) -> ToolSpec {
    ToolSpec { pool: default_pool(), effect: Effect::Unsafe, ..ToolSpec::named(name) }
}

/// Tells "the same again" from "something else under the same key": everything that shapes the call, with the keys of
/// objects in order, so that a client may write the same arguments in another order.
fn content_of(submission: &Submission) -> Uuid {
    let arguments = serde_json::from_str::<Value>(submission.arguments.get()).map(sorted);
    let content = serde_json::json!([
        submission.tool,
        arguments.unwrap_or_else(|_| submission.arguments.get().into()),
        submission.conversation,
        submission.timeout_ms,
        submission.retry,
    ]);
    fingerprint(&content)
}

fn sorted(value: Value) -> Value {
    match value {
        Value::Array(items) => items.into_iter().map(sorted).collect(),
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.into_iter().map(|(key, value)| (key, sorted(value))).collect();
            fields.sort_by(|a, b| a.0.cmp(&b.0));
            Value::Object(fields.into_iter().collect())
        }
        other => other,
    }
}
