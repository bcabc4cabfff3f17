//! Takes the answers of clients to calls of their functions. The reply follows the commit.
//!
//! An answer is no action: like a submission it is the work itself, and the record of its attempt says who gave it.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Instant,
};

use redial_engine::call::CallEvent;
use redial_proto::{
    AnswerReply, AnswerRequest, ApiError, CallId, CallState, Code, ErrorClass, Failure, Tenant,
    function::{ANSWER_CLASSES, check_output},
    subjects::Verb,
};
use redial_queue::{QueueError, Request};
use redial_records::{CallRecord, Transition};
use redial_store::audit::CallAudit;
use serde_json::Value;

use crate::{
    asked::{Sent, caller},
    batcher::{BatchWork, Batching},
    context::Context,
    effects,
    error::{call_not_found, store_failed},
    policies,
    running::Running,
    serve::{self, Senders},
    transitions::{self, MAX_TRIES},
};

pub(crate) async fn start(running: &Running) -> Result<(), QueueError> {
    let answerer = Answerer { context: running.context.clone() };
    let batching = Batching { name: "answer functions", workers: 2, batch: 64 };
    let requests = serve::start_batcher(running, batching, &answerer);
    serve::feed(running, Senders::Users(Verb::CallAnswer), requests).await
}

#[derive(Clone)]
struct Answerer {
    context: Arc<Context>,
}

struct Answer {
    tenant: Tenant,
    call: CallId,
    /// As the record of the attempt names it.
    by: String,
    result: Result<String, Failure>,
}

impl BatchWork<Request> for Answerer {
    async fn work(&self, batch: Vec<Request>) {
        let access = self.context.access.at(Instant::now()).await;
        let read = |request: &Request| -> Sent<AnswerRequest> {
            let caller = caller(request, Verb::CallAnswer)?;
            policies::check_user(&access, &caller)?;
            Ok((caller, serve::decode(&request.payload)?))
        };
        let most = self.context.config.max_payload;
        let answers: Vec<Result<Answer, ApiError>> = batch
            .iter()
            .map(|request| read(request).and_then(|(caller, answer)| checked(&caller, answer, most)))
            .collect();
        for (request, reply) in batch.iter().zip(write(&self.context, &answers).await) {
            match reply {
                Ok(state) => request.reply(&AnswerReply { state }).await,
                Err(error) => request.reply_error(&error).await,
            }
        }
    }
}

fn checked(caller: &redial_proto::Caller, request: AnswerRequest, most: usize) -> Result<Answer, ApiError> {
    let wrong = |message: String| ApiError::new(Code::InvalidValue, message);
    let result = match (request.output, request.error) {
        (Some(output), None) => {
            check_output(output.get(), most).map_err(|message| ApiError::new(Code::TooLarge, message))?;
            Ok(output.get().to_owned())
        }
        (None, Some(error)) if ANSWER_CLASSES.contains(&error.class) => {
            Err(Failure::new(error.class, error.message).without_effect().within_limits())
        }
        (None, Some(error)) => {
            let allowed = ANSWER_CLASSES.map(ErrorClass::as_str).join(", ");
            return Err(wrong(format!("error.class is {}; allowed: {allowed}", error.class)));
        }
        (output, _) => {
            let sent = if output.is_some() { "both were sent" } else { "neither was sent" };
            return Err(wrong(format!("an answer has either output or error; {sent}")));
        }
    };
    let by = format!("client {}", caller.user);
    Ok(Answer { tenant: caller.tenant.clone(), call: request.call, by, result })
}

/// Ends the calls of a batch; returns for each answer the state of its call, in order.
async fn write(context: &Context, answers: &[Result<Answer, ApiError>]) -> Vec<Result<CallState, ApiError>> {
    let mut replies: Vec<Option<Result<CallState, ApiError>>> =
        answers.iter().map(|answer| answer.as_ref().err().map(|error| Err(error.clone()))).collect();
    for _ in 0..MAX_TRIES {
        let open: Vec<(usize, &Answer)> = (0..)
            .zip(answers)
            .filter(|(n, _)| replies[*n].is_none())
            .filter_map(|(n, answer)| Some((n, answer.as_ref().ok()?)))
            .collect();
        if open.is_empty() {
            break;
        }
        match one_round(context, &open).await {
            // What is wrong with one answer is no matter of the others.
            Err(error) if open.len() > 1 && !error.code.is_retryable() => {
                for one in open {
                    let tried = one_round(context, &[one]).await;
                    settle(&mut replies, &[one], &tried);
                }
            }
            tried => settle(&mut replies, &open, &tried),
        }
    }
    let busy = || Err(ApiError::new(Code::Unavailable, "the call changes too fast to be answered now; try again"));
    replies.into_iter().map(|reply| reply.unwrap_or_else(busy)).collect()
}

/// Records the outcomes of a round.
fn settle(
    replies: &mut [Option<Result<CallState, ApiError>>],
    open: &[(usize, &Answer)],
    tried: &Result<HashMap<usize, Result<CallState, ApiError>>, ApiError>,
) {
    for (n, _) in open {
        replies[*n] = match tried {
            Ok(ended) => ended.get(n).cloned(),
            Err(error) => Some(Err(error.clone())),
        };
    }
}

#[derive(Default)]
struct Round {
    /// By the position of the answer.
    replies: HashMap<usize, Result<CallState, ApiError>>,
    transitions: Vec<Transition>,
    /// The answer that each transition is planned from.
    planned: HashMap<CallId, usize>,
}

/// Reads the calls, and ends those that wait; what had ended already is compared with its answer. An answer that lost
/// the race against another one has no reply yet, and is compared in the next round.
async fn one_round(
    context: &Context,
    open: &[(usize, &Answer)],
) -> Result<HashMap<usize, Result<CallState, ApiError>>, ApiError> {
    let mut round = Round::default();
    for tenant in open.iter().map(|(_, answer)| &answer.tenant).collect::<HashSet<_>>() {
        let own: Vec<(usize, &Answer)> = open.iter().copied().filter(|(_, answer)| answer.tenant == *tenant).collect();
        let ended = plan_all(context, tenant, &own, &mut round).await?;
        round.replies.extend(compare(context, tenant, &ended).await?);
    }
    let Round { mut replies, transitions, planned } = round;
    let (facts, effects) = transitions::write(context, &transitions).await.map_err(|error| store_failed(&error))?;
    effects::carry_out(context, effects).await;
    let states: HashMap<CallId, CallState> = transitions.iter().map(|one| (one.call, one.state())).collect();
    for facts in facts {
        if let (Some(n), Some(state)) = (planned.get(&facts.call), states.get(&facts.call)) {
            replies.insert(*n, Ok(*state));
        }
    }
    Ok(replies)
}

/// Plans the ends of one tenant's calls; returns the answers whose calls have ended already.
async fn plan_all<'a>(
    context: &Context,
    tenant: &Tenant,
    own: &[(usize, &'a Answer)],
    round: &mut Round,
) -> Result<Vec<(usize, &'a Answer)>, ApiError> {
    let ids: Vec<CallId> = own.iter().map(|(_, answer)| answer.call).collect();
    let loaded = context.store.of(tenant).load(&ids).await.map_err(|error| store_failed(&error))?;
    let calls: HashMap<CallId, CallRecord> = loaded.into_iter().map(|call| (call.id, call)).collect();
    let mut ended = Vec::new();
    for (n, answer) in own {
        let Some(call) = calls.get(&answer.call) else {
            round.replies.insert(*n, Err(call_not_found(answer.call)));
            continue;
        };
        match plan(context, call, answer) {
            Ok(Some(_)) if round.planned.contains_key(&call.id) => {}
            Ok(Some(transition)) => {
                round.planned.insert(call.id, *n);
                round.transitions.push(transition);
            }
            Ok(None) => ended.push((*n, *answer)),
            Err(error) => drop(round.replies.insert(*n, Err(error))),
        }
    }
    Ok(ended)
}

/// Plans the end of the call; `None` if it has ended.
fn plan(context: &Context, call: &CallRecord, answer: &Answer) -> Result<Option<Transition>, ApiError> {
    if !call.is_of_client() {
        let message = format!(
            "call {} is of the tool {:?}, which a worker serves; clients answer their functions",
            call.id, call.tool
        );
        return Err(ApiError::new(Code::WrongState, message));
    }
    if call.state == CallState::Other {
        return Err(ApiError::new(Code::Internal, format!("this version of Redial cannot read call {}", call.id)));
    }
    let event = CallEvent::Answered { by: &answer.by, answer: answer.result.as_deref() };
    Ok(transitions::plan(context, call, &event))
}

/// Compares an answer with the one on record: the same one again gets the reply of the first time.
async fn compare(
    context: &Context,
    tenant: &Tenant,
    ended: &[(usize, &Answer)],
) -> Result<Vec<(usize, Result<CallState, ApiError>)>, ApiError> {
    if ended.is_empty() {
        return Ok(Vec::new());
    }
    let ids: Vec<CallId> = ended.iter().map(|(_, answer)| answer.call).collect();
    let records = context.store.of(tenant).records_of(&ids).await.map_err(|error| store_failed(&error))?;
    let records: HashMap<CallId, CallAudit> = records.into_iter().map(|record| (record.line.call, record)).collect();
    let reply = |(n, answer): &(usize, &Answer)| {
        let record = records.get(&answer.call).ok_or_else(|| call_not_found(answer.call));
        (*n, record.and_then(|record| again(record, answer)))
    };
    Ok(ended.iter().map(reply).collect())
}

fn again(record: &CallAudit, answer: &Answer) -> Result<CallState, ApiError> {
    let line = &record.line;
    let Some(first) = record.attempts_made.last() else {
        let message = format!(
            "call {} ended as {} before it was answered: {}",
            answer.call,
            line.state,
            line.message.as_deref().unwrap_or("it had not waited for its client any more")
        );
        return Err(ApiError::new(Code::WrongState, message));
    };
    let is_same = match &answer.result {
        Ok(output) => first.output.as_ref().is_some_and(|stored| is_same_json(stored.get(), output)),
        Err(failure) => {
            first.class.as_deref() == Some(failure.class.as_str()) && first.message.as_ref() == Some(&failure.message)
        }
    };
    if is_same {
        return Ok(line.state);
    }
    let message = format!("call {} was answered before, with something else; the first answer counts", answer.call);
    Err(ApiError::new(Code::WrongState, message))
}

/// Compares texts, then values: a client may write its keys in another order.
fn is_same_json(one: &str, other: &str) -> bool {
    let read = |text| serde_json::from_str::<Value>(text).ok();
    one == other || read(one).is_some_and(|one| Some(one) == read(other))
}

#[cfg(test)]
mod tests {
    use redial_proto::{Caller, Door, FunctionError, User, UserRole, limits};
    use serde_json::{json, value::to_raw_value};

    use super::*;

    fn check(output: Option<Value>, error: Option<FunctionError>) -> Result<Answer, ApiError> {
        let caller = Caller {
            tenant: Tenant::default(),
            user: User::default(),
            role: UserRole::Submit,
            door: Door::Nats,
            token: None,
        };
        let output = output.map(|output| to_raw_value(&output).unwrap());
        checked(&caller, AnswerRequest { call: CallId::generate(), output, error }, limits::MAX_PAYLOAD)
    }

    #[test]
    fn an_answer_is_an_output_or_an_error_of_an_allowed_class() {
        let error = |class| FunctionError { message: "no".to_owned(), class };
        let answer = check(Some(Value::Null), None).unwrap();
        assert_eq!((answer.by.as_str(), answer.result), ("client local", Ok("null".to_owned())));
        let failed = check(None, Some(error(ErrorClass::Rejected))).unwrap().result.unwrap_err();
        assert_eq!((failed.class, failed.effect_possible), (ErrorClass::Rejected, false));
        for (output, error, told) in [
            (None, None, "neither was sent"),
            (Some(json!(1)), Some(error(ErrorClass::Rejected)), "both were sent"),
            (None, Some(error(ErrorClass::Lost)), "allowed: invalid_arguments, business_rule"),
            (Some(json!("x".repeat(limits::MAX_PAYLOAD))), None, "allowed: 16777216"),
            (Some((0..100).fold(json!(1), |inner, _| json!([inner]))), None, "allowed: 64"),
        ] {
            let error = check(output, error).err().unwrap();
            assert!(error.message.contains(told), "{error}");
        }
    }

    #[test]
    fn the_order_of_keys_makes_no_other_answer() {
        assert!(is_same_json(r#"{"a":1,"b":2}"#, r#"{ "b": 2, "a": 1 }"#));
        assert!(!is_same_json("1", "2") && !is_same_json("null", "0"));
    }
}
