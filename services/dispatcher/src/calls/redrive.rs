//! Runs ended calls again, each as a new call that names the old one: history does not change.

use std::collections::HashMap;

use redial_engine::{
    call::{may_redrive, redriven},
    tools::{Tools, retry_policy},
};
use redial_proto::{
    ApiError, CallId, Code, RedriveReply, RedriveRequest, SubmitResult, SubmitStatus, User, limits, turn::model_name,
};
use redial_records::{CallContent, CallRecord, NewCall};

use crate::{
    actions::Done,
    asked::Asked,
    error::{self, call_not_found, store_failed},
    policies,
};

/// A call is redriven once: asking again gets the same new call. That one, when it has ended, can be redriven in turn.
pub(crate) async fn redrive(asked: Asked, request: RedriveRequest) -> Result<Done<RedriveReply>, ApiError> {
    if request.calls.len() > limits::MAX_BATCH {
        let message = format!("calls holds {} ids; allowed: {}", request.calls.len(), limits::MAX_BATCH);
        return Err(ApiError::new(Code::TooLarge, message));
    }
    let failed = |error| store_failed(&error);
    let loaded = asked.store().load(&request.calls).await.map_err(failed)?;
    let unreadable: HashMap<CallId, ApiError> =
        loaded.unreadable.iter().map(|call| (call.call, error::unreadable(call))).collect();
    let rows = loaded.calls;
    let ended: Vec<CallId> = rows.iter().filter(|row| check(row).is_ok()).map(|row| row.id).collect();
    let erased = asked.store().being_erased(&ended).await.map_err(failed)?;
    let contents = asked.store().contents(&ended).await.map_err(failed)?;
    let rows: HashMap<CallId, CallRecord> = rows.into_iter().map(|row| (row.id, row)).collect();
    let mut calls = Vec::new();
    let (tools, access) = (asked.tools(), asked.access().await);
    let policy = policies::of(&access, &asked.caller.tenant)?;
    let positions: Vec<Result<usize, ApiError>> = request
        .calls
        .iter()
        .map(|&id| {
            let row =
                rows.get(&id).ok_or_else(|| unreadable.get(&id).cloned().unwrap_or_else(|| call_not_found(id)))?;
            check(row)?;
            policies::check_tool(policy, &row.tool)?;
            if erased.contains(&id) {
                let message = format!(
                    "call {id} is being erased, or an erasure of its conversation or tenant is; what is erased cannot run again"
                );
                return Err(ApiError::new(Code::WrongState, message));
            }
            let content = contents.get(&id).cloned().ok_or_else(|| call_not_found(id))?;
            let mut call = new_call(&tools, row, content, &asked.caller.user);
            asked.admit(&mut call);
            calls.push(call);
            Ok(calls.len() - 1)
        })
        .collect();
    let outcomes = asked.write(&calls).await;
    let result =
        |position: Result<usize, ApiError>| position.map_or_else(SubmitResult::rejected, |n| outcomes[n].clone());
    let results: Vec<SubmitResult> = positions.into_iter().map(result).collect();
    let changed = results.iter().filter(|result| result.status == SubmitStatus::Accepted).count() as u64;
    Ok(Done { reply: RedriveReply { results }, changed })
}

fn check(call: &CallRecord) -> Result<(), ApiError> {
    if model_name(&call.tool).is_some() {
        let message = "it is a turn of a model, which only a task asks for; submit the task again";
        return Err(ApiError::new(Code::WrongState, message));
    }
    if call.is_of_client() {
        let message = "it is a call of a function, which only the model of a task asks for; submit the task again";
        return Err(ApiError::new(Code::WrongState, message));
    }
    may_redrive(call.state).map_err(|why| ApiError::new(Code::WrongState, why))
}

fn new_call(tools: &Tools, call: &CallRecord, content: CallContent, user: &User) -> NewCall {
    let redriven = redriven(call, content, &retry_policy(tools, &call.tool), CallId::generate());
    NewCall { submitted_by: Some(user.to_string()), ..redriven }
}
