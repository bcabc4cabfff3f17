//! Reports that are late, duplicate, foreign or unreadable change nothing and are stored.

use std::time::Duration;

use redial_proto::{CallState, ClaimId, ErrorClass, Failure, Submission, ToolEffect, ToolSpec};
use redial_test_stack::{Stack, arguments};
use serde_json::{Value, json};

use super::{by_hand::Hand, fixture::dead_letters};

/// Nothing renews the leases here.
const LEASE: Duration = Duration::from_secs(30);

fn reader() -> ToolSpec {
    let retry = redial_proto::RetryPolicy { initial_ms: 1, cap_ms: 1, ..Default::default() };
    ToolSpec { effect: ToolEffect::Read, retry, ..ToolSpec::named("read") }
}

#[tokio::test]
async fn a_stale_report_is_stored_and_changes_nothing() {
    let stack = Stack::start_leasing(LEASE).await;
    let mut worker = Hand::new(&stack, vec![reader()]).await;
    let mut stranger = Hand::new(&stack, Vec::new()).await;
    let call = stack.call("read", json!({})).await;
    worker.granted().await;
    worker.report(call, 1, Err(Failure::new(ErrorClass::Unavailable, "busy"))).await;
    let job = worker.job().await;
    assert_eq!((job.call, job.attempt), (call, 2));
    // Between the two attempts, while the second one runs, and after the end.
    worker.report(call, 1, Ok(r#""stale""#)).await;
    assert_eq!(worker.claim(call, 2).await.len(), 1);
    stranger.report(call, 2, Ok(r#""foreign""#)).await;
    worker.report(call, 3, Ok(r#""from the future""#)).await;
    assert_eq!(stack.get(call).await.state, CallState::Running);
    worker.report(call, 2, Ok(r#""right""#)).await;
    worker.report(call, 2, Err(Failure::new(ErrorClass::Auth, "changed its mind"))).await;
    assert_eq!(stack.output(call).await, r#""right""#);
    let kept = "SELECT attempt || ' ' || COALESCE(class, output::text) FROM late_reports ORDER BY received_at";
    let kept: Vec<String> = stack.values(kept).await;
    assert_eq!(kept, ["1 \"stale\"", "2 \"foreign\"", "3 \"from the future\"", "2 auth"]);
    stack.finish().await;
}

#[tokio::test]
async fn an_unreadable_report_becomes_a_dead_letter_with_the_reason() {
    let stack = Stack::start_leasing(LEASE).await;
    let mut worker = Hand::new(&stack, vec![reader()]).await;
    let call = stack.call("read", json!({})).await;
    worker.granted().await;
    let mut nats = stack.raw_nats().await;
    let claim = worker.claim_of(call, 1);
    nats.publish(&worker.results(), b"\xffno report").await;
    dead_letters(&stack, "results", 1).await;
    nats.publish(&worker.results(), br#"{"reports":[]}"#).await;
    dead_letters(&stack, "results", 2).await;
    let both = json!({"call": call, "attempt": 1, "claim": claim, "duration_ms": 1, "output": 1, "error": {"class": "auth", "message": ""}});
    let good = json!({"call": call, "attempt": 1, "claim": claim, "duration_ms": 1, "output": "good"});
    let class = json!({"call": call, "attempt": 1, "claim": claim, "duration_ms": 1, "error": {"class": "tired", "message": ""}});
    let batch = json!({"worker": worker.id, "reports": [7, both, class, good]});
    stack.queue().put(&worker.results(), &batch).await.unwrap();
    worker.ingested(worker.grant_of(call, 1)).await;
    assert_eq!(stack.output(call).await, r#""good""#, "an invalid report affects no other");
    let kept = dead_letters(&stack, "results", 3).await;
    let reasons: Vec<&str> = kept.iter().map(|(_, message, _)| message.as_str()).collect();
    assert!(kept.iter().all(|(code, ..)| code == "invalid_message"));
    assert!(reasons[0].contains("not a batch of reports: expected value at line 1 column 1"), "{reasons:?}");
    assert!(reasons[1].contains("missing field `worker`"), "{reasons:?}");
    assert_eq!(kept[0].2, b"\xffno report");
    assert_eq!(serde_json::from_slice::<Value>(&kept[2].2).unwrap(), batch, "the whole message is kept once");
    let errors = "SELECT concat_ws(' ', e->>'position', e->>'message') FROM (
                      SELECT errors FROM dead_letters ORDER BY id DESC LIMIT 1
                  ) last, json_array_elements(errors) e";
    let errors: Vec<String> = stack.values(errors).await;
    let wanted = ["0 not a report: invalid type: integer `7`", "exactly one is allowed", "unknown variant `tired`"];
    assert_eq!(errors.len(), 3);
    assert!(errors.iter().zip(wanted).all(|(error, part)| error.contains(part)), "{errors:?}");
    stack.finish().await;
}

#[tokio::test]
async fn requests_for_an_unreadable_call_are_answered() {
    let mut stack = Stack::start().await;
    let worker = Hand::new(&stack, vec![reader()]).await;
    let keyed = |key: &str| Submission { key: Some(key.to_owned()), ..Submission::new("read", arguments(json!({}))) };
    let calls = stack.call_all(&[keyed("a"), keyed("b")]).await;
    stack.execute("ALTER TABLE calls DROP CONSTRAINT calls_state_check, DROP CONSTRAINT calls_check").await;
    let state = async |state: &str| {
        stack.execute(&format!("UPDATE calls SET state = '{state}' WHERE id = '{}'", calls[0])).await;
    };
    state("paused").await;
    let again = stack.try_submit_all(&[keyed("a"), keyed("b")]).await.unwrap();
    assert_eq!((again[0].call, again[0].state, &again[0].error), (Some(calls[0]), Some(CallState::Other), &None));
    assert_eq!(
        (again[1].call, &again[1].error),
        (Some(calls[1]), &None),
        "the other submission of the batch is answered"
    );
    assert_eq!(stack.cancel(calls[0]).await, CallState::Other);
    assert_eq!(worker.release(ClaimId::generate(), calls[0], 1).await, 0);
    state("ready").await;
    stack.leaves_calls();
    stack.finish().await;
}
