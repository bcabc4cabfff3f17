//! Runs ended calls again, each as a new call that names the old one: history does not change.

use std::collections::HashMap;

use redial_engine::{
    accept::{Edited, accept_edited},
    call::{may_redrive, may_redrive_edited, redriven},
    tools::{Tools, retry_policy},
};
use redial_proto::{
    ApiError, CallId, Code, RedriveReply, RedriveRequest, SubmitResult, SubmitStatus, limits, turn::model_name, webhook,
};
use redial_records::{CallContent, CallRecord, NewCall};

use crate::{
    actions::Done,
    aside::aside,
    asked::Asked,
    error::{call_not_found, store_failed},
    new_calls, policies,
};

/// Redrives calls, each once: asking again gets the same new call, which, once ended, can be redriven in turn.
pub(crate) async fn redrive(asked: Asked, request: RedriveRequest) -> Result<Done<RedriveReply>, ApiError> {
    check_request(&request)?;
    let groups = asked.store().groups_in_order(&request.calls).await.map_err(|error| store_failed(&error))?;
    let mut results = Vec::with_capacity(request.calls.len());
    // The arguments of those of one group are in memory at once.
    for calls in groups {
        let (count, arguments) = (calls.len(), request.arguments.clone());
        match together(&asked, &RedriveRequest { calls, arguments }).await {
            Ok(some) => results.extend(some),
            Err(error) if results.is_empty() => return Err(error),
            // What became of those before them must be told.
            Err(error) => results.resize(results.len() + count, SubmitResult::rejected(error)),
        }
    }
    let changed = results.iter().filter(|result| result.status == SubmitStatus::Accepted).count() as u64;
    Ok(Done { reply: RedriveReply { results }, changed })
}

/// Redrives calls in one statement.
async fn together(asked: &Asked, request: &RedriveRequest) -> Result<Vec<SubmitResult>, ApiError> {
    let mut calls = Vec::new();
    let positions: Vec<Result<usize, Box<SubmitResult>>> = plan(asked, request)
        .await?
        .into_iter()
        .map(|planned| {
            let mut call = planned?;
            asked.admit(&mut call);
            calls.push(call);
            Ok(calls.len() - 1)
        })
        .collect();
    let outcomes = asked.write(&calls).await;
    let result = |position: Result<usize, Box<SubmitResult>>| {
        position.map_or_else(|rejected| *rejected, |n| outcomes[n].clone())
    };
    Ok(positions.into_iter().map(result).collect())
}

fn check_request(request: &RedriveRequest) -> Result<(), ApiError> {
    let count = request.calls.len();
    if count > limits::MAX_BATCH {
        let message = format!("calls holds {count} ids; allowed: {}", limits::MAX_BATCH);
        return Err(ApiError::new(Code::TooLarge, message));
    }
    if request.arguments.is_some() && count != 1 {
        let message = format!("calls holds {count} ids; with arguments, one is allowed");
        return Err(ApiError::new(Code::InvalidValue, message));
    }
    Ok(())
}

/// Returns the new calls, in the order of the old ones; or why there is none.
pub(crate) async fn plan(
    asked: &Asked,
    request: &RedriveRequest,
) -> Result<Vec<Result<NewCall, Box<SubmitResult>>>, ApiError> {
    let found = Found::read(asked, request).await?;
    let (tools, access) = (asked.tools(), asked.access().await);
    let policy = policies::of(&access, &asked.caller.tenant)?;
    let planned = request.calls.iter().map(|&id| {
        let (row, content) = found.call(id, request).map_err(SubmitResult::rejected)?;
        // No tenant lists the tool of deliveries, which come with its webhooks; and nobody gives them other arguments.
        if row.tool != webhook::TOOL {
            policies::check_tool(policy, &row.tool).map_err(SubmitResult::rejected)?;
        }
        match &request.arguments {
            None => Ok(unchanged(asked, &tools, row, content)),
            Some(arguments) => {
                let edit = Edited { call: row, content, arguments: arguments.clone() };
                edited(asked, &policies::visible(policy, &tools), edit)
            }
        }
    });
    Ok(planned.map(|planned| planned.map_err(Box::new)).collect())
}

struct Found {
    rows: HashMap<CallId, CallRecord>,
    contents: HashMap<CallId, CallContent>,
    erased: Vec<CallId>,
}

impl Found {
    async fn read(asked: &Asked, request: &RedriveRequest) -> Result<Self, ApiError> {
        let failed = |error| store_failed(&error);
        let loaded = asked.store().load(&request.calls).await.map_err(failed)?;
        let may = |row: &&CallRecord| check(row, request).is_ok();
        let ended: Vec<CallId> = loaded.iter().filter(may).map(|row| row.id).collect();
        Ok(Self {
            erased: asked.store().being_erased(&ended).await.map_err(failed)?,
            contents: asked.store().contents(&ended).await.map_err(failed)?,
            rows: loaded.into_iter().map(|row| (row.id, row)).collect(),
        })
    }

    /// Returns a call that may run again.
    fn call(&self, id: CallId, request: &RedriveRequest) -> Result<(&CallRecord, CallContent), ApiError> {
        let row = self.rows.get(&id).ok_or_else(|| call_not_found(id))?;
        check(row, request)?;
        if self.erased.contains(&id) {
            let message = format!(
                "call {id} is being erased, or an erasure of its conversation or tenant is; what is erased cannot run again"
            );
            return Err(ApiError::new(Code::WrongState, message));
        }
        Ok((row, self.contents.get(&id).cloned().ok_or_else(|| call_not_found(id))?))
    }
}

fn check(call: &CallRecord, request: &RedriveRequest) -> Result<(), ApiError> {
    if model_name(&call.tool).is_some() {
        let message = "it is a turn of a model, which only a task asks for; submit the task again";
        return Err(ApiError::new(Code::WrongState, message));
    }
    if call.is_of_client() {
        let message = "it is a call of a function, which only the model of a task asks for; submit the task again";
        return Err(ApiError::new(Code::WrongState, message));
    }
    let may = if request.arguments.is_some() { may_redrive_edited } else { may_redrive };
    may(call.state).map_err(|why| ApiError::new(Code::WrongState, why))
}

fn unchanged(asked: &Asked, tools: &Tools, call: &CallRecord, content: CallContent) -> NewCall {
    let redriven = redriven(call, content, &retry_policy(tools, &call.tool), CallId::generate());
    NewCall { submitted_by: Some(asked.caller.user.to_string()), ..redriven }
}

/// Makes a call with other arguments. If they do not fit, nothing is put on record: the call can still be redriven.
fn edited(asked: &Asked, tools: &Tools, edited: Edited<'_>) -> Result<NewCall, SubmitResult> {
    let accept = || accept_edited(edited, &asked.caller, tools, CallId::generate());
    let call = aside(accept).map_err(SubmitResult::rejected)?;
    match &call.refusal {
        Some(refusal) => Err(new_calls::rejected(&call, refusal)),
        None => Ok(call),
    }
}
