//! The primary is lost with its last commits, because none of them waited for the standby.

use std::time::Duration;

use redial_proto::{CallState, Submission, ToolEffect};
use redial_test_stack::{Servers, Stack, ToolEvent, arguments, scripted_tool, unique_path};
use serde_json::json;

/// Nothing ends it here: the worker would not stop an unsafe tool, but others would be looked for.
const LEASE: Duration = Duration::from_secs(20);

/// The commits that are lost are the registration of the worker and the grant. On the new primary the call waits in the backlog as if
/// it had never been started, and goes to the first worker with the tool, which runs it already.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "nightly: servers of its own with a standby"]
async fn an_unsafe_tool_whose_grant_was_lost_runs_once() {
    let mut stack = Stack::on(Servers::start().await.with_standby().await).await;
    stack.dispatcher.lease = LEASE;
    stack.dispatch().await;
    let tool = |stack: &Stack| vec![scripted_tool("pay", ToolEffect::Unsafe, &stack.ledger)];
    stack.work(tool(&stack)).await;
    stack.stop_workers().await;
    let release = unique_path("release");
    let orders = arguments(json!({"hold": release}));
    let call = stack.accepted(&Submission::new("pay", orders)).await;
    stack.servers.pair().unwrap().leave_standby_behind().await;
    let worker = stack.work(tool(&stack)).await;
    stack.ledger.reaches(ToolEvent::Started, 1).await;
    let of_call = format!("FROM calls WHERE id = '{call}'");
    let claim: uuid::Uuid = stack.value(&format!("SELECT claim_id {of_call}")).await;

    stack.fail_over().await;
    let lost: bool = stack.value(&format!("SELECT attempt = 0 AND claim_id IS NULL {of_call}")).await;
    assert!(lost, "the standby has the grant");
    let taken_back = format!("SELECT state = 'running' AND claim_id = '{claim}' AND worker = '{worker}' {of_call}");
    stack.holds("the grant is on record again", &taken_back).await;
    std::fs::write(&release, "").unwrap();
    let view = stack.ended(call).await;
    assert_eq!((view.state, view.attempts), (CallState::Succeeded, 1));
    let counts = [ToolEvent::Started, ToolEvent::Effect].map(|event| stack.ledger.count(event, call));
    assert_eq!(counts, [1, 1]);
    stack.finish().await;
}
