//! A worker acts for itself only: within its pools, under its own ids, and on attempts that were granted to it.

use std::time::Duration;

use redial_proto::{
    ApiError, CallState, ClaimId, Code, ToolEffect, ToolSpec,
    subjects::{self, ControlVerb},
};
use redial_test_stack::Stack;
use serde_json::{Value, json};

use super::{
    by_hand::Hand,
    fixture::{ANSWER, api, dead_letters},
};

fn forbidden<T: std::fmt::Debug>(refused: Result<T, ApiError>) -> String {
    let error = refused.unwrap_err();
    assert_eq!(error.code, Code::Forbidden, "{error}");
    error.message
}

#[tokio::test]
async fn a_worker_registers_tools_only_in_the_pools_of_its_subject() {
    let stack = Stack::start().await;
    let worker = Hand::of_identity(&stack, "one").await;
    let subject = subjects::control(&worker.id.identity(), "default+fast", ControlVerb::Register);
    let tool = |pool: &str| vec![ToolSpec { pool: pool.to_owned(), ..ToolSpec::named("tool") }];
    let message = forbidden(worker.try_register_on(&subject, tool("slow")).await);
    assert!(message.contains("\"slow\"") && message.contains("default+fast"), "{message}");
    let other = worker.registration(&[], &json!({"tool": "slow"}));
    forbidden(api(stack.queue().request::<_, Value>(&subject, &other, ANSWER).await));
    assert_eq!(stack.count("tools").await, 0);
    worker.try_register_on(&subject, tool("fast")).await.unwrap();
    stack.finish().await;
}

#[tokio::test]
async fn a_worker_cannot_act_under_the_id_of_another_identity() {
    let mut stack = Stack::start_leasing(Duration::from_secs(30)).await;
    let mut worker = Hand::new(&stack, vec![ToolSpec { effect: ToolEffect::Read, ..ToolSpec::named("tool") }]).await;
    let call = stack.call("tool", json!({})).await;
    worker.granted().await;
    let claim = worker.claim_of(call, 1);
    let rogue = Hand::of_identity(&stack, "rogue").await;
    let (id, nats) = (&worker.id, stack.queue());
    let next = stack.call("tool", json!({})).await;
    let jobs = json!([{"call": next, "attempt": 1, "tool": "tool"}]);
    let granted = json!([{"call": call, "attempt": 1, "claim": claim}]);
    for (verb, asked) in [
        (
            ControlVerb::Claim,
            json!({"claim": ClaimId::generate(), "worker": id, "not_after": chrono::Utc::now(), "jobs": jobs}),
        ),
        (ControlVerb::Heartbeat, json!({"worker": id, "running": [], "slots": 0, "draining": true})),
        (ControlVerb::Release, json!({"worker": id, "jobs": granted})),
        (ControlVerb::Register, worker.registration(&[], &json!({}))),
    ] {
        forbidden(api(nats.request::<_, Value>(&rogue.subject(verb), &asked, ANSWER).await));
    }
    let report = json!({"call": call, "attempt": 1, "claim": claim, "duration_ms": 1, "output": "forged"});
    nats.put(&rogue.results(), &json!({"worker": id, "reports": [report]})).await.unwrap();
    dead_letters(&stack, "results", 1).await;
    assert_eq!(stack.get(call).await.state, CallState::Running);
    let workers: Vec<(String, bool)> = stack.rows("SELECT id, draining FROM workers").await;
    assert_eq!(workers, [(worker.id.to_string(), false)]);
    worker.report(call, 1, Ok("1")).await;
    assert_eq!(stack.output(call).await, "1");
    stack.leaves_calls();
    stack.finish().await;
}

/// In one message, before and after it; and in the same batch from another identity. What is sent twice counts once.
#[tokio::test]
async fn a_report_under_a_wrong_claim_does_not_hide_the_true_one() {
    let stack = Stack::start_leasing(Duration::from_secs(30)).await;
    let spec = ToolSpec { effect: ToolEffect::Read, ..ToolSpec::named("tool") };
    let mut worker = Hand::new(&stack, vec![spec]).await;
    let rogue = Hand::of_identity(&stack, "rogue").await;
    for wrong_first in [true, false] {
        for kind in ["success", "failure"] {
            let call = stack.call("tool", json!({})).await;
            worker.granted().await;
            let report = |claim: ClaimId, output: &str| {
                let mut report = json!({"call": call, "attempt": 1, "claim": claim, "duration_ms": 1});
                if kind == "success" {
                    report["output"] = json!(output);
                } else {
                    report["error"] = json!({"class": "auth", "message": output});
                }
                report
            };
            // Known to it is the id of the call at most: a report of it alone changes nothing.
            let foreign = json!({"worker": rogue.id, "reports": [report(ClaimId::generate(), "foreign")]});
            stack.queue().put(&rogue.results(), &foreign).await.unwrap();
            let mut reports = vec![report(ClaimId::generate(), "wrong"), report(worker.claim_of(call, 1), "true")];
            if !wrong_first {
                reports.reverse();
            }
            reports.push(report(worker.claim_of(call, 1), "sent once more"));
            stack.queue().put(&worker.results(), &json!({"worker": worker.id, "reports": reports})).await.unwrap();
            worker.ingested(worker.grant_of(call, 1)).await;
            let view = stack.ended(call).await;
            match kind {
                "success" => assert_eq!(view.output.unwrap().get(), "\"true\""),
                _ => assert!(view.message.unwrap().contains("true")),
            }
        }
    }
    stack.finish().await;
}
