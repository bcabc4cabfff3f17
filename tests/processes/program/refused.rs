//! What others choose makes no lines of a log.

use std::time::Duration;

use chrono::Utc;
use redial_proto::{
    ANY_POOL, CallId, ClaimId, ClaimReply, WorkerId, WorkerIdentity,
    subjects::{self, ControlVerb},
};
use redial_test_stack::{Servers, Stack};
use serde_json::json;

#[tokio::test]
async fn refused_claims_of_an_identity_are_one_line_whatever_they_name() {
    let stack = Stack::on(Servers::start().await).await;
    let dispatcher = stack.process(env!("CARGO_BIN_EXE_redial"), "dispatcher", &[]);
    dispatcher.line("Dispatcher started").await;
    let identity = WorkerIdentity::of_name("rogue");
    let subject = subjects::control(&identity, ANY_POOL, ControlVerb::Claim);
    for n in 0..20 {
        let job = json!({"call": CallId::generate(), "attempt": 1, "tool": format!("tool-{n}")});
        let worker = WorkerId::generate(&identity);
        let claim = json!({"claim": ClaimId::generate(), "worker": worker, "not_after": Utc::now(), "jobs": [job]});
        let reply: ClaimReply = stack.queue().request(&subject, &claim, Duration::from_secs(30)).await.unwrap();
        assert!(reply.grants.is_empty());
    }
    dispatcher.terminate();
    assert!(dispatcher.ended().await.success(), "{}", dispatcher.output());
    let output = dispatcher.output();
    let told: Vec<&str> = output.lines().filter(|line| line.contains("Refused a claim")).collect();
    assert!(told.len() == 1 && told[0].contains("rogue"), "{told:#?}");
    stack.finish().await;
}
