//! What is done once a change is on record.

use redial_engine::call::{CallEvent, Waiting, effects, plan, redriven, submitted};
use redial_proto::{CallId, CallState, ErrorClass, Failure};
use redial_records::{Backlog, CallContent, CallRecord, Effect, NewCall};
use uuid::Uuid;

use super::fixture::{DUE, POLICY, call, due_while, facts, now, running, shown, waiting};

#[test]
fn a_new_call_is_published_at_once_or_wakes_the_feeder() {
    let content =
        CallContent { tenant: String::new(), conversation: None, arguments: "{}".to_owned(), tool_version: None };
    let one = redriven(&call(CallState::Failed, 1), content, &POLICY, CallId(Uuid::nil()));
    let new = |consumer: Option<&str>| NewCall { consumer: consumer.map(str::to_owned), ..one.clone() };
    assert_eq!(
        shown(&submitted(&new(None))),
        "WakeFeeder { part: BacklogPart { tool: \"look\", tenant: \"\", backlog: Job }, since: None }"
    );
    let [Effect::PublishJob(job)] = &submitted(&new(Some("default+2")))[..] else { panic!("it is published") };
    assert_eq!((job.consumer.as_str(), job.job.attempt, job.publish_no), ("default+2", 1, 1));
    let refused = NewCall { refusal: Some(Failure::new(ErrorClass::UnknownTool, "m")), ..new(None) };
    assert_eq!(shown(&submitted(&refused)), "");
}

#[test]
fn whatever_waits_wakes_the_feeder_and_a_postponed_check_nothing() {
    let planned = |call: &CallRecord, event: &CallEvent<'_>| {
        shown(&effects(&plan(call, &POLICY, event, now(), 0.5).unwrap(), &facts(call)))
    };
    let wakes = |part: &str, came_back: bool| {
        let since = came_back.then(|| facts(&running()).submitted_at);
        format!(
            "WakeFeeder {{ part: BacklogPart {{ tool: \"look\", tenant: \"acme\", backlog: {part} }}, since: {since:?} }}"
        )
    };
    assert_eq!(planned(&running(), &CallEvent::Released), wakes("Job", true));
    assert_eq!(planned(&call(CallState::RetryWait, 1), &DUE), wakes("Retry", false));
    assert_eq!(planned(&call(CallState::Ready, 1), &DUE), wakes("Job", true));
    assert_eq!(planned(&running(), &DUE), "");
    let late = CallRecord { deadline_at: now(), ..waiting(Backlog::Retry, 1) };
    assert_eq!(planned(&late, &due_while(Waiting::ForRetries { recovering_since: Some(now()) })), "");
}
