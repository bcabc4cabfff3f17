//! Answers of a client to calls of its functions: they begin the next response.

use redial_proto::{AnswerReply, AnswerRequest, CallId, Code, TaskId, function, limits, subjects::Verb};
use redial_store::FunctionCall;
use serde_json::value::RawValue;

use super::{follow::Segments, ids, ids::ResponseId, input::beside_question, wrong};
use crate::{gateway::Shared, identity::Identity, problem::Problem};

/// Answers the calls of the turn that waits; returns the response that follows. Nothing is answered unless all of them are.
pub(crate) async fn answer(
    gateway: &Shared,
    who: &Identity,
    before: Option<ResponseId>,
    outputs: &[(CallId, Box<RawValue>)],
    param: &str,
) -> Result<ResponseId, Problem> {
    let store = gateway.store.of(&who.tenant);
    let task = match (before, outputs.last()) {
        (Some(before), _) => before.task,
        (None, Some((call, _))) => store.task_of_function(*call).await?.ok_or_else(|| unknown(param, *call))?,
        (None, None) => return Err(wrong(param, "there is no answer to a function")),
    };
    let functions = store.functions_of(task).await?;
    let segments = Segments::of(&functions);
    let turn = turn_of(&functions, outputs, param)?;
    let ended = segments.ended_by(turn).ok_or_else(|| wrong(param, "the calls were never asked of the client"))?;
    let next = ResponseId { task, segment: ended + 1 };
    if let Some(before) = before.filter(|before| before.segment != ended) {
        return Err(not_newest(before, ResponseId { task, segment: segments.last() }));
    }
    check_complete(&segments, turn, outputs, param)?;
    for (call, output) in outputs {
        let wrong = |message| wrong(param, format!("the {message} ({})", ids::of_call(*call)));
        function::check_output(output.get(), limits::MAX_PAYLOAD).map_err(wrong)?;
    }
    let caller = who.caller(Verb::CallAnswer)?;
    for (call, output) in outputs.iter().filter(|(call, _)| segments.of_turn(turn).any(|one| one.call == *call)) {
        let request = AnswerRequest { call: *call, output: Some(output.clone()), error: None };
        let answered: Result<AnswerReply, Problem> =
            gateway.ask_twice_as(&caller, Verb::CallAnswer, &request, None).await;
        if let Err(problem) = answered {
            let is_theirs = matches!(problem.error.code, Code::WrongState | Code::TooLarge);
            return Err(if is_theirs { wrong(param, problem.error.message) } else { problem });
        }
    }
    Ok(next)
}

/// Returns the newest turn that the answers are for.
fn turn_of(functions: &[FunctionCall], outputs: &[(CallId, Box<RawValue>)], param: &str) -> Result<u32, Problem> {
    let mut newest = 0;
    for (call, _) in outputs {
        let found = functions.iter().find(|one| one.call == *call).ok_or_else(|| unknown(param, *call))?;
        newest = newest.max(found.turn);
    }
    Ok(newest)
}

fn check_complete(
    segments: &Segments<'_>,
    turn: u32,
    outputs: &[(CallId, Box<RawValue>)],
    param: &str,
) -> Result<(), Problem> {
    let given = |call: CallId| outputs.iter().any(|(one, _)| *one == call);
    let missing: Vec<String> = segments
        .waiting()
        .filter(|one| one.turn == turn && !given(one.call))
        .map(|one| ids::of_call(one.call))
        .collect();
    if missing.is_empty() { Ok(()) } else { Err(pending(param, &missing)) }
}

pub(crate) fn pending(param: &str, calls: &[String]) -> Problem {
    let message = format!(
        "the function calls {} have no answer yet; allowed: a function_call_output for each of them, all in one request",
        calls.join(", ")
    );
    wrong(param, message)
}

pub(crate) fn not_newest(before: ResponseId, newest: ResponseId) -> Problem {
    let message =
        format!("previous_response_id is {before}, which is not the newest of its conversation; allowed: {newest}");
    wrong("previous_response_id", message)
}

fn unknown(param: &str, call: CallId) -> Problem {
    wrong(param, format!("no function call {} is on record, or none of this task", ids::of_call(call)))
}

/// Fails if a question follows answers that a task still waits for: they would be lost.
pub(crate) async fn check_answered(
    gateway: &Shared,
    who: &Identity,
    answered: &[CallId],
    param: &str,
) -> Result<(), Problem> {
    let Some(newest) = answered.last() else { return Ok(()) };
    let Some(task) = gateway.store.of(&who.tenant).task_of_function(*newest).await? else { return Ok(()) };
    let given: Vec<String> = answered.iter().map(|call| ids::of_call(*call)).collect();
    let lost: Vec<String> = waiting(gateway, who, task).await?.into_iter().filter(|id| given.contains(id)).collect();
    if lost.is_empty() { Ok(()) } else { Err(beside_question(param, &lost)) }
}

/// Returns the calls of a task that wait for the client, by their ids.
pub(crate) async fn waiting(gateway: &Shared, who: &Identity, task: TaskId) -> Result<Vec<String>, Problem> {
    let functions = gateway.store.of(&who.tenant).functions_of(task).await?;
    let waiting = Segments::of(&functions).waiting().map(|one| ids::of_call(one.call)).collect();
    Ok(waiting)
}
