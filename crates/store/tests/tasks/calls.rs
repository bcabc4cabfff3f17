//! Calls of tasks: written with the decision, and their ends told to the task.

use redial_proto::{CallId, CallState, ClaimId, ErrorClass, Failure, JobRef, TaskId, TaskState, WorkerId};
use redial_records::{CallFacts, Change, Claim, EndedAttempt, Guard, NewCall, Time, Transition};
use redial_store::{EndedCall, Granted, InboxItem, TaskChange, TaskRow};

use crate::desk::{Desk, bare_call, new_call, nobody_asks, started, stepped};

async fn claim(desk: &Desk, call: CallId, attempt: u32) -> Granted {
    let worker: WorkerId = "worker-1".parse().unwrap();
    let claim = Claim { job: JobRef { call, attempt }, claim: ClaimId::generate(), worker };
    desk.store.claim(&[claim], 60_000).await.unwrap().pop().expect("it is ready")
}

const RUNNING: Guard =
    Guard { state: CallState::Running, attempt: 1, worker: None, claim: None, cancel_requested: None };

fn ended(call: CallId, state: CallState, result: Result<String, Failure>) -> Transition {
    let failure = result.as_ref().err().cloned();
    let attempt = Some(EndedAttempt { duration_ms: None, result });
    Transition { call, guard: RUNNING, change: Change::End { state, failure, attempt } }
}

fn retried(call: CallId, failure: Failure, due_at: Time) -> Transition {
    let attempt = EndedAttempt { duration_ms: None, result: Err(failure) };
    Transition { call, guard: RUNNING, change: Change::Retry { attempt, due_at } }
}

async fn apply(desk: &Desk, transition: Transition) -> CallFacts {
    desk.store.apply(&[transition]).await.unwrap().pop().expect("it is running")
}

async fn succeed(desk: &Desk, call: CallId, output: &str) -> CallFacts {
    claim(desk, call, 1).await;
    apply(desk, ended(call, CallState::Succeeded, Ok(output.to_owned()))).await
}

fn failure(class: ErrorClass) -> Failure {
    let details = serde_json::from_str(DETAILS).unwrap();
    Failure::new(class, "no\0").with_details(details)
}

const DETAILS: &str = r#"[{"path":"/city","rule":"type","sent":3,"allowed":"string"}]"#;

/// What came in for a task, which goes on.
async fn received(desk: &Desk, task: TaskId) -> Vec<InboxItem> {
    let mut seen = Vec::new();
    let advanced = desk.advance([task], |row| {
        seen.extend(row.inbox.iter().cloned());
        Some(stepped(&row, TaskState::Running, Vec::new()))
    });
    advanced.await.unwrap();
    seen
}

fn the_end(items: &[InboxItem]) -> EndedCall {
    match items {
        [InboxItem::Ended(ended)] => ended.clone(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn the_end_of_a_call_is_told_to_its_task() {
    let desk = Desk::open().await;
    let task = desk.submit("c").await;
    let (turn, tool) = (new_call(task, 1, 0), new_call(task, 1, 1));
    let advanced = desk.start_with(task, &[turn.clone(), tool.clone()]).await;
    assert_eq!(advanced.change.calls.len(), 2);
    let granted = claim(&desk, turn.id, 1).await;
    assert_eq!(granted.task, Some(task));
    let output = Ok(r#"{"text": "hi"}"#.to_owned());
    let applied = apply(&desk, ended(turn.id, CallState::Succeeded, output)).await;
    assert_eq!(applied.task, Some(task));
    assert_eq!(desk.store.due_tasks(10).await.unwrap(), [task]);
    let ended = the_end(&received(&desk, task).await);
    assert_eq!((ended.call, ended.turn, ended.call_index, ended.state), (turn.id, 1, 0, CallState::Succeeded));
    assert_eq!(ended.output.as_deref(), Some(r#"{"text": "hi"}"#));
    assert_eq!(ended.arguments.as_deref(), Some(r#"{"city": "Paris"}"#), "what the model was asked");
    assert_eq!((ended.class, ended.message, ended.details), (None, None, None));
    succeed(&desk, tool.id, "1").await;
    let ended = the_end(&received(&desk, task).await);
    assert_eq!((ended.call_index, ended.output.as_deref(), ended.arguments), (1, Some("1"), None));
}

#[tokio::test]
async fn a_failure_is_told_with_its_details() {
    let desk = Desk::open().await;
    let task = desk.submit("c").await;
    let call = new_call(task, 1, 2);
    desk.start_with(task, std::slice::from_ref(&call)).await;
    claim(&desk, call.id, 1).await;
    apply(&desk, ended(call.id, CallState::Failed, Err(failure(ErrorClass::BusinessRule)))).await;
    let ended = the_end(&received(&desk, task).await);
    assert_eq!((ended.state, ended.class), (CallState::Failed, Some(ErrorClass::BusinessRule)));
    assert_eq!((ended.message.as_deref(), ended.output), (Some("no\u{fffd}"), None));
    assert_eq!(ended.details.as_deref(), Some(DETAILS));
}

#[tokio::test]
async fn a_retry_is_told_with_its_time() {
    let desk = Desk::open().await;
    let task = desk.submit("c").await;
    let call = new_call(task, 3, 1);
    desk.start_with(task, std::slice::from_ref(&call)).await;
    claim(&desk, call.id, 1).await;
    let retry_at = desk.store.now().await.unwrap() + chrono::TimeDelta::minutes(1);
    let applied = apply(&desk, retried(call.id, failure(ErrorClass::Unavailable), retry_at)).await;
    assert_eq!(applied.task, Some(task));
    let items = received(&desk, task).await;
    let [InboxItem::Retrying { call: retried, turn, call_index, tool, attempt, class, message, next_at }] =
        items.as_slice()
    else {
        panic!("{items:?}")
    };
    assert_eq!((*retried, *turn, *call_index, *attempt, *class), (call.id, 3, 1, 1, ErrorClass::Unavailable));
    assert_eq!((tool.as_str(), message.as_str(), *next_at), ("get_weather", "no\u{fffd}", retry_at));
    let guard = Guard { state: CallState::RetryWait, ..RUNNING };
    let ready = Transition { call: call.id, guard, change: Change::Publish { attempt: 1, check_at: retry_at } };
    assert_eq!(apply(&desk, ready).await.task, None, "nothing to tell");
    assert_eq!(desk.inbox().await, 0);
}

#[tokio::test]
async fn bare_calls_tell_nobody() {
    let desk = Desk::open().await;
    let call = bare_call();
    desk.store.submit(std::slice::from_ref(&call), 10_000).await.unwrap();
    assert_eq!(claim(&desk, call.id, 1).await.task, None);
    assert_eq!(apply(&desk, ended(call.id, CallState::Succeeded, Ok("1".to_owned()))).await.task, None);
    assert_eq!(desk.inbox().await, 0);
}

#[tokio::test]
async fn what_jsonb_would_refuse_comes_to_the_task_to_the_letter() {
    let desk = Desk::open().await;
    let task = desk.submit("c").await;
    let nasty = r#"{"a": "\ud800", "b": "\u0000", "n": 1e400000, "a": 2}"#;
    let call = NewCall { arguments: nasty.to_owned(), ..new_call(task, 1, 0) };
    desk.start_with(task, std::slice::from_ref(&call)).await;
    succeed(&desk, call.id, nasty).await;
    let ended = the_end(&received(&desk, task).await);
    assert_eq!((ended.arguments.as_deref(), ended.output.as_deref()), (Some(nasty), Some(nasty)));
    let calls = desk.store.task_calls(task).await.unwrap();
    assert_eq!(calls[0].arguments.get(), nasty);
    assert_eq!(calls[0].attempts_made[0].output.as_ref().unwrap().get(), nasty);
}

#[tokio::test]
async fn only_calls_that_have_not_ended_are_stopped() {
    let desk = Desk::open().await;
    let (task, other) = (desk.submit("c").await, desk.submit("d").await);
    let calls = [new_call(task, 1, 0), new_call(task, 1, 1), new_call(task, 1, 2), new_call(task, 2, 1)];
    desk.start_with(task, &calls).await;
    desk.start_with(other, &[new_call(other, 1, 1)]).await;
    succeed(&desk, calls[1].id, "1").await;
    let cancel = vec![(1, 1), (1, 2), (2, 1), (7, 7)];
    let decide = |row: TaskRow| {
        let change = stepped(&row, TaskState::Running, Vec::new());
        Some(TaskChange { cancel: cancel.clone(), ..change })
    };
    let mut stop = desk.advance([task], decide).await.unwrap().pop().unwrap().stop;
    stop.sort_unstable();
    assert_eq!(stop, [calls[2].id, calls[3].id]);
}

#[tokio::test]
async fn a_slot_is_used_once_and_with_it_the_whole_decision_is_refused() {
    let desk = Desk::open().await;
    let task = desk.submit("c").await;
    let twice = [new_call(task, 1, 1), new_call(task, 1, 1)];
    let decide = |row: TaskRow| Some(TaskChange { calls: twice.to_vec(), ..started(&row) });
    let error = desk.advance([task], decide).await.unwrap_err();
    assert!(error.to_string().contains("call_index"), "{error}");
    assert_eq!((desk.count("SELECT count(*) FROM calls").await, desk.inbox().await), (0, 1));
}

#[tokio::test]
async fn refused_calls_are_on_record_and_tell_nobody() {
    let desk = Desk::open().await;
    let task = desk.submit("c").await;
    let refused = NewCall { refusal: Some(failure(ErrorClass::InvalidArguments)), ..new_call(task, 1, 2) };
    desk.start_with(task, &[refused, new_call(task, 1, 1), new_call(task, 1, 0)]).await;
    assert!(desk.advance([task], nobody_asks).await.unwrap().is_empty());
    let calls = desk.store.task_calls(task).await.unwrap();
    let slots: Vec<_> = calls.iter().map(|call| (call.task.unwrap().call_index, call.line.state.as_str())).collect();
    assert_eq!(slots, [(0, "ready"), (1, "ready"), (2, "refused")]);
    assert_eq!(calls[2].details.as_ref().unwrap().get(), DETAILS);
    let shown = serde_json::to_value(&calls[1]).unwrap();
    assert_eq!(
        (&shown["task"], &shown["turn"], &shown["call_index"]),
        (&task.to_string().into(), &1.into(), &1.into())
    );
}
