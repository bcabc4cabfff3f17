//! Calls of functions: no worker serves them, their clients answer.

use chrono::TimeDelta;
use redial_engine::call::{CallEvent, effects, grants, may_redrive, plan, redriven, submitted};
use redial_proto::{CallId, CallState, ErrorClass, Failure, TaskId, function};
use redial_records::{CallContent, CallFacts, CallRecord, Change, Effect, NewCall};
use uuid::Uuid;

use super::fixture::{DUE, POLICY, after_outage, call, change, claim, facts, failed, next, now, shown, succeeded};

fn asked() -> CallRecord {
    CallRecord { pool: function::POOL.to_owned(), published_at: None, ..call(CallState::ClientWait, 0) }
}

fn answered<'a>(answer: Result<&'a str, &'a Failure>) -> CallEvent<'a> {
    CallEvent::Answered { by: "client alice", answer }
}

#[test]
fn an_answer_ends_only_a_call_that_waits_for_its_client() {
    let failure = Failure::new(ErrorClass::ToolFailed, "m");
    let (right, wrong) = (answered(Ok("1")), answered(Err(&failure)));
    assert_eq!(next(&asked(), &right), "succeeded by client alice");
    assert_eq!(next(&asked(), &wrong), "failed by client alice");
    for state in CallState::ALL.into_iter().filter(|state| *state != CallState::ClientWait) {
        assert_eq!(next(&call(state, 1), &right), "unchanged", "{state}");
    }
    let transition = plan(&asked(), &POLICY, &wrong, now(), 0.5).unwrap();
    assert_eq!((transition.attempt(), transition.guard.attempt), (1, 0), "the answer is the first attempt");
    let Change::Answer { attempt, .. } = &transition.change else { panic!("{transition:?}") };
    assert!(!attempt.result.as_ref().unwrap_err().effect_possible, "a client says what it did: nothing is unknown");
}

#[test]
fn it_ends_at_its_deadline_but_not_just_after_an_outage() {
    let late = CallRecord { deadline_at: now(), ..asked() };
    assert_eq!(next(&late, &DUE), "failed/unanswered");
    assert_eq!(next(&asked(), &DUE), "look again in 60000 ms");
    assert_eq!(next(&late, &after_outage(18)), "look again in 18000 ms");
    let Some(Change::End { failure: Some(failure), attempt: None, .. }) = change(&late, &DUE) else {
        panic!("it ends without an attempt")
    };
    assert_eq!(failure.message, "the client did not answer within 1000 ms");
    let earlier = CallRecord { deadline_at: now() + TimeDelta::milliseconds(1), ..asked() };
    assert_eq!(next(&earlier, &DUE), "look again in 1 ms");
}

#[test]
fn no_worker_gets_it_and_it_can_be_cancelled() {
    assert_eq!(next(&asked(), &CallEvent::Cancel), "cancelled/cancelled");
    assert!(!grants(&asked(), &claim(1), now()));
    let failure = Failure::new(ErrorClass::Unavailable, "m");
    for event in [succeeded(), failed(&failure), CallEvent::Released] {
        assert_eq!(next(&asked(), &event), "unchanged");
    }
    assert!(may_redrive(CallState::ClientWait).is_err());
}

#[test]
fn it_has_no_job_and_its_end_wakes_its_task() {
    let content =
        CallContent { tenant: String::new(), conversation: None, arguments: "{}".to_owned(), tool_version: None };
    let new: NewCall = redriven(&asked(), content, &POLICY, CallId(Uuid::nil()));
    assert_eq!(shown(&submitted(&new)), "");
    let task = TaskId(Uuid::nil());
    let facts = CallFacts { task: Some(task), ..facts(&asked()) };
    let transition = plan(&asked(), &POLICY, &answered(Ok("1")), now(), 0.5).unwrap();
    assert_eq!(shown(&effects(&transition, &facts)), shown(&[Effect::WakeTask(task)]));
}
