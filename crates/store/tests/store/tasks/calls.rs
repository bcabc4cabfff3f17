//! Calls of tasks: written with the transition, and their ends put into the inbox of the task.

use redial_proto::{CallState, ErrorClass, Failure};
use redial_records::{Backlog, Change, EndedAttempt, EndedCall, Guard, InboxItem, NewCall, TaskTransition, Transition};

use crate::fixture::{Fixture, Locked, RUNNING, new_call, no_plan, started};

fn failure(class: ErrorClass) -> Failure {
    let details = serde_json::from_str(DETAILS).unwrap();
    Failure::new(class, "no\0").with_details(details)
}

const DETAILS: &str = r#"[{"path":"/city","rule":"type","sent":3,"allowed":"string"}]"#;

fn the_end(items: &[InboxItem]) -> EndedCall {
    match items {
        [InboxItem::Ended(ended)] => ended.clone(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_failure_is_reported_with_its_details_and_only_an_unknown_outcome_leaves_an_effect_possible() {
    let fixture = Fixture::open().await;
    let task = fixture.submit("c").await;
    let (call, lost) = (new_call(task, 1, 2), new_call(task, 1, 3));
    fixture.start_with(task, &[call.clone(), lost.clone()]).await;
    fixture.run(call.id, CallState::Failed, Err(failure(ErrorClass::BusinessRule))).await;
    let failed = the_end(&fixture.received(task).await);
    assert_eq!((failed.state, failed.output), (CallState::Failed, None));
    let told = failed.failure.unwrap();
    assert_eq!((told.class, told.message.as_str()), (ErrorClass::BusinessRule, "no\u{fffd}"));
    assert_eq!((told.details, told.effect_possible), (failure(ErrorClass::BusinessRule).details, false));
    fixture.run(lost.id, CallState::Unknown, Err(failure(ErrorClass::Lost))).await;
    let ended = the_end(&fixture.received(task).await);
    assert_eq!((ended.state, ended.failure.map(|failure| failure.effect_possible)), (CallState::Unknown, Some(true)));
}

#[tokio::test]
async fn a_retry_is_reported_with_its_time() {
    let fixture = Fixture::open().await;
    let task = fixture.submit("c").await;
    let call = new_call(task, 3, 1);
    fixture.start_with(task, std::slice::from_ref(&call)).await;
    fixture.claim(call.id).await;
    let retry_at = fixture.store.now().await.unwrap() + chrono::TimeDelta::minutes(1);
    let attempt = EndedAttempt { duration_ms: None, result: Err(failure(ErrorClass::Unavailable)) };
    let change = Change::Retry { attempt, due_at: retry_at };
    let applied = fixture.apply(Transition { call: call.id, guard: RUNNING, change }).await;
    assert_eq!(applied.task, Some(task));
    let items = fixture.received(task).await;
    let [InboxItem::Retrying { call: retried, turn, call_index, tool, attempt, class, message, next_at }] =
        items.as_slice()
    else {
        panic!("{items:?}")
    };
    assert_eq!((*retried, *turn, *call_index, *attempt, *class), (call.id, 3, 1, 1, ErrorClass::Unavailable));
    assert_eq!((tool.as_str(), message.as_str(), *next_at), ("get_weather", "no\u{fffd}", retry_at));
    let guard = Guard { state: CallState::RetryWait, ..RUNNING };
    let change = Change::Wait { attempt: 1, backlog: Backlog::Retry, check_at: retry_at };
    let ready = Transition { call: call.id, guard, change };
    assert_eq!(fixture.apply(ready).await.task, None, "nothing to tell");
    assert_eq!(fixture.inbox().await, 0);
}

#[tokio::test]
async fn output_that_jsonb_refuses_reaches_the_task_unchanged() {
    let fixture = Fixture::open().await;
    let task = fixture.submit("c").await;
    let nasty = r#"{"a": "\ud800", "b": "\u0000", "n": 1e400000, "a": 2}"#;
    let call = NewCall { arguments: nasty.to_owned(), ..new_call(task, 1, 0) };
    fixture.start_with(task, std::slice::from_ref(&call)).await;
    fixture.run(call.id, CallState::Succeeded, Ok(nasty.to_owned())).await;
    let ended = the_end(&fixture.received(task).await);
    assert_eq!((ended.arguments.as_deref(), ended.output.as_deref()), (Some(nasty), Some(nasty)));
    let calls = fixture.store.task_calls(task).await.unwrap();
    assert_eq!(calls[0].arguments.get(), nasty);
    assert_eq!(calls[0].attempts_made[0].output.as_ref().unwrap().get(), nasty);
}

#[tokio::test]
async fn an_index_is_used_once_or_the_whole_transition_is_refused() {
    let fixture = Fixture::open().await;
    let task = fixture.submit("c").await;
    let twice = [new_call(task, 1, 1), new_call(task, 1, 1)];
    let decide = |task: Locked| Some(TaskTransition { calls: twice.to_vec(), ..started(&task) });
    let error = fixture.advance([task], decide).await.unwrap_err();
    assert!(error.to_string().contains("with its index in the turn"), "{error}");
    assert_eq!((fixture.count("SELECT count(*) FROM calls").await, fixture.inbox().await), (0, 1));
}

#[tokio::test]
async fn refused_calls_are_on_record_and_put_nothing_into_the_inbox() {
    let fixture = Fixture::open().await;
    let task = fixture.submit("c").await;
    let refused = NewCall { refusal: Some(failure(ErrorClass::InvalidArguments)), ..new_call(task, 1, 2) };
    fixture.start_with(task, &[refused, new_call(task, 1, 1), new_call(task, 1, 0)]).await;
    assert!(fixture.advance([task], no_plan).await.unwrap().is_empty());
    let calls = fixture.store.task_calls(task).await.unwrap();
    let indices: Vec<_> = calls.iter().map(|call| (call.task.unwrap().call_index, call.line.state.as_str())).collect();
    assert_eq!(indices, [(0, "ready"), (1, "ready"), (2, "refused")]);
    assert_eq!(calls[2].details.as_ref().unwrap().get(), DETAILS);
    let shown = serde_json::to_value(&calls[1]).unwrap();
    let place = (&shown["task"], &shown["turn"], &shown["call_index"]);
    assert_eq!(place, (&task.to_string().into(), &1.into(), &1.into()));
}
