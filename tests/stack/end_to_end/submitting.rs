//! A key makes a submission safe to retry. An invalid one gets an error and affects no other.

use std::cell::Cell;

use futures_util::future::join_all;
use redial_proto::{
    CallState, CallView, Code, RepairKind, Submission, SubmitResult,
    SubmitStatus::{self, Accepted, Refused, Rejected},
    TaskSubmission, ToolSpec,
    subjects::Intake,
};
use redial_test_stack::{Stack, arguments, until};
use redial_tools::{Tool, ToolError};
use serde_json::{Value, json, value::RawValue};

use super::by_hand::Hand;
use crate::mutations::{statements, wire::Hits};

#[path = "batches.rs"]
mod batches;

fn keyed(key: &str, arguments: &str) -> Submission {
    let arguments = RawValue::from_string(arguments.to_owned()).unwrap();
    Submission { key: Some(key.to_owned()), ..Submission::new("echo", arguments) }
}

/// Ids begin with a time: new work would be older than what others wrote hours ago.
#[tokio::test]
async fn a_dispatcher_whose_clock_is_hours_behind_accepts_no_work_until_it_is_set_right() {
    let mut stack = Stack::start().await;
    stack.stop_dispatchers().await;
    let later = ("SELECT clock_timestamp()", "SELECT clock_timestamp() + interval '3 h'");
    let (nats_url, database_url) = (stack.servers.nats_url().to_owned(), stack.servers.database_url());
    let (_wire, database_url) = statements::before(database_url, &[(later, Hits::default())]).await;
    stack.dispatch_between(&nats_url, &database_url).await;
    let refused = stack.submit(&keyed("key", "{}")).await;
    assert_eq!((refused.status, code(&refused)), (Rejected, Code::Unavailable));
    assert_eq!(stack.count("calls").await, 0);
    stack.stop_dispatchers().await;
    stack.dispatch().await;
    // No worker has the tool, but it is on record.
    assert_eq!(stack.submit(&keyed("key", "{}")).await.status, Refused);
    stack.finish().await;
}

/// An unknown tool may be known to the database: nothing final may be written while that cannot be read.
#[tokio::test]
async fn while_the_registry_cannot_be_read_only_submissions_of_unknown_tools_are_rejected() {
    let stack = Stack::with_echo().await;
    let mut lock = stack.db().begin().await.unwrap();
    sqlx::query("LOCK TABLE tools IN ACCESS EXCLUSIVE MODE").execute(&mut *lock).await.unwrap();
    let nobody = Submission::new("nobody", arguments(json!({})));
    let task: TaskSubmission = serde_json::from_value(json!({"agent": {"model": "nobody"}, "input": "hello"})).unwrap();
    stack.queue().put(&stack.intake(Intake::Calls), &nobody).await.unwrap();
    let (rejections, done) = (Cell::new(0), Cell::new(false));
    // At any time some wait for the registry.
    let unknown = async {
        while !done.get() {
            let calls = join_all((0..6).map(|_| stack.submit(&nobody)));
            let (calls, task) = tokio::join!(calls, stack.submit_task(&task));
            let codes = calls.iter().map(|call| (call.status, code(call)));
            assert!(codes.into_iter().all(|end| end == (Rejected, Code::Unavailable)), "{calls:?}");
            assert_eq!(task.error.map(|error| error.code), Some(Code::Unavailable));
            rejections.set(rejections.get() + 1);
        }
    };
    // If each of the ten waited for the registry, the others would be rejected ten times meanwhile, however often this is tried.
    let known = async {
        stack.waits_for_lock().await;
        until("ten calls of known tools end while the same others wait for the registry", async || {
            let before = rejections.get();
            for n in 0..10 {
                let call = stack.call("echo", json!({ "n": n })).await;
                stack.output(call).await;
            }
            (rejections.get() - before < 5).then_some(())
        })
        .await;
        done.set(true);
    };
    tokio::join!(unknown, known);
    let mixed = stack.try_submit_all(&[nobody.clone(), keyed("k", "{}")]).await.unwrap();
    assert_eq!((mixed[0].status, mixed[1].status), (Rejected, Accepted), "{mixed:?}");
    assert_eq!(stack.count("calls WHERE tool = 'nobody'").await, 0);

    lock.rollback().await.unwrap();
    assert_eq!(stack.submit(&nobody).await.status, Refused);
    // The message of the intake, too.
    stack.counts(2, "calls WHERE tool = 'nobody'").await;
    stack.finish().await;
}

fn code(result: &SubmitResult) -> Code {
    result.error.as_ref().unwrap_or_else(|| panic!("{result:?}")).code
}

#[tokio::test]
async fn the_same_key_and_content_is_the_same_call_and_other_content_is_a_conflict() {
    let stack = Stack::with_echo().await;
    let first = stack.accepted(&keyed("k", r#"{"a":1,"b":{"c":[1,2],"d":null}}"#)).await;
    let spellings = [
        r#"{"a":1,"b":{"c":[1,2],"d":null}}"#,
        r#"{"b":{"d":null,"c":[1,2]},"a":1}"#,
        "\n{ \"a\" : 1,\t\"b\" : { \"c\" : [ 1, 2 ], \"d\" : null } }",
    ];
    for text in spellings {
        let again = stack.submit(&keyed("k", text)).await;
        assert_eq!((again.status, again.call), (SubmitStatus::Existing, Some(first)), "{text}");
    }
    for other in [
        keyed("k", r#"{"a":1,"b":{"c":[2,1],"d":null}}"#),
        keyed("k", r#"{"a":"1","b":{"c":[1,2],"d":null}}"#),
        keyed("k", r#"{"a":1,"b":{"c":[1,2],"d":null},"e":null}"#),
        // A setting is content, too.
        Submission { timeout_ms: Some(1), ..keyed("k", spellings[0]) },
    ] {
        let result = stack.submit(&other).await;
        assert_eq!((result.status, code(&result)), (Rejected, Code::IdempotencyConflict), "{other:?}");
        assert!(result.error.unwrap().message.contains(&first.to_string()), "the call that has the key is named");
    }
    stack.output(first).await;
    let after = stack.submit(&keyed("k", spellings[1])).await;
    assert_eq!((after.call, after.state), (Some(first), Some(CallState::Succeeded)), "the reply has its state");
    let evidence = stack.finish().await;
    assert_eq!(evidence.calls.len(), 1);
}

/// A file or a batch that is sent again finds what was refused, and writes it no second time.
#[tokio::test]
async fn the_same_refusal_is_on_record_once_and_runs_once_it_is_valid() {
    let mut stack = Stack::with_echo().await;
    let strict =
        |key: &str, value| Submission { key: Some(key.to_owned()), ..Submission::new("strict", arguments(value)) };
    let batch = [
        strict("unknown-tool", json!({"count": 1})),
        keyed("not-an-object", "7"),
        keyed("not-an-object", "8"),
        keyed("good", "{}"),
        keyed("not-an-object", "7"),
    ];
    let first = stack.try_submit_all(&batch).await.unwrap();
    assert_eq!(statuses(&first), [Refused, Refused, Refused, Accepted, Refused]);
    assert_eq!(first[1].call, first[4].call, "the same refusal in one batch");
    assert_ne!(first[1].call, first[2].call, "other content");
    for _ in 0..3 {
        let again = stack.try_submit_all(&batch).await.unwrap();
        assert_eq!(statuses(&again), [Refused, Refused, Refused, SubmitStatus::Existing, Refused]);
        for (before, after) in first.iter().zip(&again) {
            assert_eq!((before.call, &before.error), (after.call, &after.error));
        }
    }
    assert_eq!(stack.count("calls WHERE tool = 'strict'").await, 1);
    assert_eq!(stack.count("calls WHERE tool = 'echo'").await, 3);
    // It is valid by now: the same submission runs under its key.
    stack.work(vec![Tool::new("strict", |args: Strict| async move { args.count })]).await;
    let valid = stack.accepted(&batch[0]).await;
    assert_eq!(stack.output(valid).await, "1");
    // The tool is gone again. What was accepted stays so; other content is refused.
    stack.stop_workers().await;
    stack.execute("DELETE FROM tools WHERE name = 'strict'").await;
    stack.stop_dispatchers().await;
    stack.dispatch().await;
    let known = stack.submit(&batch[0]).await;
    assert_eq!((known.status, known.call), (SubmitStatus::Existing, Some(valid)));
    assert!(known.submitted_at.is_some());
    let other = stack.submit(&strict("unknown-tool", json!({"count": 2}))).await;
    assert_eq!(other.status, Refused);
    let evidence = stack.finish().await;
    assert_eq!(evidence.count(CallState::Refused), 4);
}

fn statuses(results: &[SubmitResult]) -> Vec<SubmitStatus> {
    results.iter().map(|result| result.status).collect()
}

/// Who keeps the loop itself learns as much as the model of a task.
#[tokio::test]
async fn every_answer_about_a_call_tells_what_a_model_must_know() {
    let mut stack = Stack::start().await;
    let strict =
        Tool::new("strict", |_: Strict| async move { Err::<(), _>(ToolError::business_rule("sold out at 10.0.0.7")) });
    stack.work(vec![strict]).await;
    let of = |value: &RawValue| serde_json::from_str::<Value>(value.get()).unwrap();

    // Refused: in the answer to the submission and in the view.
    let refused = stack.submit(&Submission::new("strict", arguments(json!({"count": "two", "extra": 1})))).await;
    let view = stack.get(refused.call.unwrap()).await;
    let feedback = of(refused.feedback.as_deref().unwrap());
    assert_eq!((&feedback["class"], &feedback["details"][0]["path"]), (&json!("invalid_arguments"), &json!("/count")));
    assert_eq!(of(view.feedback.as_deref().unwrap()), feedback);
    // What helps a task's model is there, too: an example, and what the schema does not declare.
    assert!(feedback["example"]["count"].is_u64(), "{feedback}");
    assert_eq!(view.undeclared, ["/extra"]);
    assert!(feedback.to_string().contains("/extra"), "{feedback}");

    // Failed by the tool: in the event and in the view.
    let sent = RawValue::from_string(r#""{'count': 2, 'extra': 1}""#.to_owned()).unwrap();
    let submission = Submission { notify: true, ..Submission::new("strict", sent) };
    let mut events = stack.queue().subscribe("redial.events.*.calls.*").await.unwrap();
    let call = stack.accepted(&submission).await;
    let event: CallView = serde_json::from_slice(&events.next().await).unwrap();
    let view = stack.ended(call).await;
    for view in [&event, &view] {
        assert_eq!((view.call, view.state, view.attempts), (call, CallState::Failed, 1));
        assert!(view.message.as_ref().unwrap().starts_with("sold out"));
        let feedback = of(view.feedback.as_deref().unwrap());
        let message = feedback["message"].as_str().unwrap();
        assert!(message.starts_with("sold out") && !message.contains("10.0.0.7"), "{feedback}");
        assert!(view.repairs.iter().any(|repair| repair.kind == RepairKind::Quotes), "{:?}", view.repairs);
        assert_eq!(view.undeclared, ["/extra"], "on record also of a call that runs");
        assert_eq!((view.attempts_made.len(), view.attempts_made[0].class), (1, view.class));
    }
    stack.finish().await;
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Strict {
    count: u32,
}

#[tokio::test]
async fn a_tool_is_known_to_every_dispatcher_once_it_is_registered() {
    let mut stack = Stack::start().await;
    stack.dispatch().await;
    for n in 0..10 {
        let name = format!("tool_{n}");
        Hand::new(&stack, vec![ToolSpec::named(&name)]).await;
        let submission = Submission::new(&name, arguments(json!({})));
        let results = join_all((0..6).map(|_| stack.submit(&submission))).await;
        let refused: Vec<_> = results.iter().filter(|result| result.status != Accepted).collect();
        assert!(refused.is_empty(), "registration {n}: {refused:?}");
    }
    stack.leaves_calls();
    stack.finish().await;
}
