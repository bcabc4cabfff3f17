//! What a rogue worker tries with credentials of its own.

use redial_proto::{CallId, ClaimId, Submission, SubmitResult, subjects::Verb};
use redial_testkit::{arguments, until};
use serde_json::json;

use super::world::{ANSWER, World};
use crate::nats_permissions::client::Client;

#[tokio::test]
async fn a_rogue_worker_reaches_nothing_of_other_identities() {
    let world = World::start().await;
    let mut rogue = world.raw("worker.rogue").await;
    for subject in [
        ">",
        "redial.>",
        "redial.worker.>",
        "redial.worker.tools.>",
        "_INBOX_worker.>",
        "_INBOX_worker.tools.>",
        "_INBOX.>",
        "redial.jobs.>",
        "redial.events.>",
        "redial.api.>",
        "redial.ctl.>",
    ] {
        rogue.subscribe(subject).await;
    }
    let alice = world.user("acme.alice").await;
    let submission = Submission::new("echo", arguments(json!({"n": 1})));
    let call = alice.ask::<_, SubmitResult>(Verb::CallSubmit, &submission, ANSWER).await.unwrap().call.unwrap();
    // Claims, heartbeats, releases, registrations and reports of others, and of pools that it does not have.
    let claim = json!({"claim": ClaimId::generate(), "worker": "tools-000000000000",
        "jobs": [{"call": call, "attempt": 1, "tool": "echo"}]});
    for subject in [
        "redial.ctl.tools.default.claim",
        "redial.ctl.rogue.default.claim",
        "redial.ctl.rogue.+.claim",
        "redial.ctl.rogue.models+other.claim",
        "redial.ctl.models.models.register",
        "redial.results.tools",
    ] {
        rogue.publish(subject, "_INBOX_worker.rogue.stolen", "", &claim.to_string()).await;
    }
    for subject in [
        "$JS.API.CONSUMER.MSG.NEXT.JOBS.default",
        "$JS.API.CONSUMER.MSG.NEXT.JOBS.models",
        "$JS.API.CONSUMER.MSG.NEXT.RESULTS.dispatchers",
        "$JS.API.STREAM.DELETE.JOBS",
        "$JS.API.STREAM.PURGE.INTAKE",
        "$JS.API.CONSUMER.DELETE.JOBS.default",
        "$JS.API.STREAM.MSG.GET.INTAKE",
    ] {
        rogue.publish(subject, "_INBOX_worker.rogue.stolen", "", r#"{"batch":10,"expires":1000000000}"#).await;
    }
    own_subjects_are_checked(&mut rogue, call).await;
    // The call has run where it may, and after that the server has answered once more on the same connection: whatever the
    // rogue could have heard or stolen has arrived.
    until("the call has ended", async || (world.count("calls WHERE state = 'succeeded'").await == 1).then_some(()))
        .await;
    rogue.request("redial.ctl.rogue.other.heartbeat", "{}").await;
    let mine = |subject: &str| subject.starts_with("_INBOX_worker.rogue.") && !subject.ends_with("stolen");
    assert!(rogue.messages.iter().all(|message| mine(&message.subject)), "{:?}", rogue.messages);
    assert_eq!(world.count("attempts WHERE worker LIKE 'rogue%'").await, 0);
    world.stop().await;
}

/// Within its own subjects, the worker's id and the tool's pool are checked by the dispatcher.
async fn own_subjects_are_checked(rogue: &mut Client, call: CallId) {
    for (worker, code) in [("tools-000000000000", "forbidden"), ("rogue-000000000000", "")] {
        let claim = json!({"claim": ClaimId::generate(), "worker": worker,
            "jobs": [{"call": call, "attempt": 1, "tool": "echo"}]});
        let answer = rogue.request("redial.ctl.rogue.other.claim", &claim.to_string()).await;
        let answer: serde_json::Value = serde_json::from_str(&answer.body).unwrap();
        if code.is_empty() {
            assert_eq!(answer["grants"], json!([]), "a tool of another pool is not granted");
        } else {
            assert_eq!(answer["code"], code);
        }
    }
    let registration = json!({"worker": "rogue-000000000000", "started_at": "2026-11-23T00:00:00Z", "slots": 1, "version": "1",
        "tools": [{"name": "echo", "description": "", "parameters": {"type": "object"}, "pool": "default"}]});
    let answer = rogue.request("redial.ctl.rogue.other.register", &registration.to_string()).await;
    assert!(answer.body.contains("forbidden"), "{}", answer.body);
}
