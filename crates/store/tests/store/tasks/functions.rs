//! Calls that the client of a task serves.

use redial_proto::{CallId, CallState, ErrorClass, Failure, Tenant, function};
use redial_records::{Change, EndedAttempt, Guard, InboxItem, NewCall, Transition};

use crate::fixture::{Fixture, new_call};

const WAITING: Guard =
    Guard { state: CallState::ClientWait, attempt: 0, worker: None, claim: None, cancel_requested: Some(false) };

fn answered(call: CallId, result: Result<&str, Failure>) -> Transition {
    let attempt = EndedAttempt { duration_ms: None, result: result.map(str::to_owned) };
    Transition { call, guard: WAITING, change: Change::Answer { by: "client alice".to_owned(), attempt } }
}

#[tokio::test]
async fn a_function_is_answered_once_and_found_by_its_tenant() {
    let fixture = Fixture::open().await;
    let task = fixture.submit("c").await;
    let of_client = |index| NewCall { pool: function::POOL.to_owned(), consumer: None, ..new_call(task, 1, index) };
    let refused = NewCall { refusal: Some(Failure::new(ErrorClass::InvalidArguments, "no")), ..of_client(3) };
    let calls = [of_client(1), of_client(2), refused];
    fixture.start_with(task, &calls).await;
    let facts = fixture.store.apply(&[answered(calls[0].id, Ok("[1]"))]).await.unwrap();
    assert_eq!((facts[0].attempt, facts[0].task, &facts[0].worker), (1, Some(task), &None));
    assert!(fixture.store.apply(&[answered(calls[0].id, Ok("[2]"))]).await.unwrap().is_empty(), "once");
    let failure = Failure::new(ErrorClass::Rejected, "not now").without_effect();
    fixture.store.apply(&[answered(calls[1].id, Err(failure))]).await.unwrap();
    let ended = |item: &InboxItem| match item {
        InboxItem::Ended(ended) => {
            (ended.call_index, ended.output.clone(), ended.failure.as_ref().map(|one| one.class))
        }
        other => panic!("{other:?}"),
    };
    let ends: Vec<_> = fixture.received(task).await.iter().map(ended).collect();
    assert_eq!(ends, [(1, Some("[1]".to_owned()), None), (2, None, Some(ErrorClass::Rejected))]);

    let functions = fixture.own().functions_of(task).await.unwrap();
    let states: Vec<CallState> = functions.iter().map(|one| one.state).collect();
    assert_eq!(states, [CallState::Succeeded, CallState::Failed, CallState::Refused]);
    assert_eq!(fixture.own().task_of_function(calls[1].id).await.unwrap(), Some(task));
    assert_eq!(fixture.own().newest_task("c").await.unwrap(), Some(task));
    let other: Tenant = "other".parse().unwrap();
    let theirs = fixture.store.of(&other);
    assert!(theirs.functions_of(task).await.unwrap().is_empty());
    assert_eq!(theirs.task_of_function(calls[1].id).await.unwrap(), None);
    assert_eq!(theirs.newest_task("c").await.unwrap(), None);
}
