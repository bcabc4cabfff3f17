//! Running an ended call again, as a new call.

use redial_proto::{ApiError, CallId, CallState, Code, CreateRedrive, RedriveFilter, RetryPolicy, limits};
use redial_records::{CallContent, CallRecord, NewCall, Redrive};

use crate::accept::check_texts;

/// Checks that an ended call may run again; if not, says why.
pub fn may_redrive(state: CallState) -> Result<(), String> {
    match state {
        CallState::Failed | CallState::Cancelled | CallState::Unknown => Ok(()),
        CallState::Ready | CallState::Running | CallState::RetryWait | CallState::ClientWait => {
            Err(format!("the call is {state}; only ended calls can be redriven, cancel it first"))
        }
        CallState::Other => Err("this version of Redial cannot read the call".to_owned()),
        CallState::Succeeded => Err("the call succeeded; submit it again if you want it twice".to_owned()),
        CallState::Refused => Err("the call was refused and would be again; submit it corrected".to_owned()),
    }
}

/// Checks that an ended call may run again with other arguments; if not, says why. One that was refused never ran:
/// other arguments are what it needs.
pub fn may_redrive_edited(state: CallState) -> Result<(), String> {
    if state == CallState::Refused { Ok(()) } else { may_redrive(state) }
}

/// Checks which calls are to run again, and how fast. An error says what is allowed.
pub fn check_create_redrive(request: &CreateRedrive) -> Result<(), ApiError> {
    let wrong = |message: String| Err(ApiError::new(Code::InvalidValue, message));
    let RedriveFilter { tool, state, conversation, key, since, until, worker, agent, contains, .. } = &request.filter;
    if request.filter.is_empty() {
        return wrong(
            "filter is empty; one of these is needed: tool, state (failed, cancelled, unknown), class, since, until, \
             conversation, key, worker, agent, not_tool, not_class, argument, output, contains"
                .to_owned(),
        );
    }
    if let Some(state) = state.filter(|state| may_redrive(*state).is_err()) {
        return wrong(format!("filter.state is {state}; allowed: failed, cancelled, unknown"));
    }
    if request.at_most == Some(0) {
        return wrong("at_most is 0; allowed: 1 or more".to_owned());
    }
    if let Some(rate) = request.rate.filter(|rate| !(1..=CreateRedrive::MAX_RATE).contains(rate)) {
        return wrong(format!("rate is {rate}; allowed: 1 to {}", CreateRedrive::MAX_RATE));
    }
    limits::check_time("filter.since", *since).or_else(wrong)?;
    limits::check_time("filter.until", *until).or_else(wrong)?;
    check_texts(&[
        ("filter.tool", tool.as_ref()),
        ("filter.conversation", conversation.as_ref()),
        ("filter.key", key.as_ref()),
        ("filter.worker", worker.as_ref()),
        ("filter.agent", agent.as_ref()),
        ("filter.contains", contains.as_ref()),
    ])?;
    check_lists(&request.filter)
}

/// Entries of a list of a filter.
const LIST: usize = 50;

fn check_lists(filter: &RedriveFilter) -> Result<(), ApiError> {
    let lists = [
        ("filter.not_tool", &filter.not_tool),
        ("filter.argument", &filter.argument),
        ("filter.output", &filter.output),
    ];
    for (name, list) in lists {
        if list.len() > LIST {
            let message = format!("{name} has {} entries; allowed: {LIST}", list.len());
            return Err(ApiError::new(Code::InvalidValue, message));
        }
        check_texts(&list.iter().map(|text| (name, Some(text))).collect::<Vec<_>>())?;
    }
    Ok(())
}

/// Makes the same call under a new id. The key stays with the old one; what tools see as idempotency key stays the
/// same. `policy` is the retry policy of its tool.
pub fn redriven(call: &CallRecord, content: CallContent, policy: &RetryPolicy, id: CallId) -> NewCall {
    NewCall {
        submitted_by: None,
        id,
        tool: call.tool.clone(),
        pool: call.pool.clone(),
        effect: call.effect,
        tenant: content.tenant,
        key: None,
        content: None,
        conversation: content.conversation,
        timeout_ms: call.timeout_ms,
        retry: Some(call.retry),
        notify: false,
        traceparent: call.traceparent.clone(),
        deadline_ms: policy.with(&call.retry).deadline_ms,
        arguments: content.arguments,
        tool_version: content.tool_version,
        repairs: Vec::new(),
        undeclared: Vec::new(),
        help: None,
        refusal: None,
        task: None,
        consumer: None,
        redrive_of: Some(Redrive { call: call.id, origin: call.origin.unwrap_or(call.id) }),
    }
}

#[cfg(test)]
mod tests {
    use redial_proto::RedriveId;

    use super::*;

    #[test]
    fn a_bad_request_is_told_what_is_allowed() {
        let request = |filter: &str, rate: Option<u32>| CreateRedrive {
            redrive: RedriveId::generate(),
            filter: serde_json::from_str(filter).unwrap(),
            dry_run: false,
            rate,
            at_most: None,
        };
        assert!(check_create_redrive(&request(r#"{"tool":"echo"}"#, Some(1))).is_ok());
        for (filter, rate, allowed) in [
            ("{}", None, "one of these is needed"),
            (r#"{"state":"succeeded"}"#, None, "allowed: failed, cancelled, unknown"),
            (r#"{"since":"+100000-01-01T00:00:00Z"}"#, None, "allowed: 1970 to 9999"),
            (r#"{"tool":""}"#, None, "allowed: 1 to 200 bytes"),
            (r#"{"tool":"echo"}"#, Some(0), "allowed: 1 to 10000"),
        ] {
            let error = check_create_redrive(&request(filter, rate)).unwrap_err();
            assert!(error.code == Code::InvalidValue && error.message.contains(allowed), "{error}");
        }
    }
}
