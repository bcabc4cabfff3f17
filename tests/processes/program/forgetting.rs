//! `redial tools forget`: removes a tool that no live worker has, and no other.

use redial_proto::{Submission, SubmitStatus, ToolEffect};
use redial_test_stack::{Stack, arguments, scripted_tool};
use redial_tools::Tool;
use serde_json::{Value, json};

use super::run_alone;

#[tokio::test]
async fn a_tool_that_no_worker_has_is_forgotten() {
    let mut stack = Stack::start().await;
    let removed = |stack: &Stack, name: &str| scripted_tool(name, ToolEffect::Read, &stack.ledger);
    stack.work(vec![removed(&stack, "removed"), removed(&stack, "other")]).await;
    stack.stop_workers().await;
    stack.work(vec![Tool::echo()]).await;
    let waiting = [stack.call("removed", json!({"n": 1})).await, stack.call("removed", json!({"n": 2})).await];
    let forget = async |tool: &str, more: &[&str]| {
        let line = [&["tools", "forget", tool, "--nats-url", stack.servers.nats_url()], more].concat();
        run_alone(&line).await
    };

    let served = forget("echo", &[]).await;
    served.failed(1, &["a live worker has the tool \"echo\" and would register it again", "[wrong_state]\n"]);
    let unknown = forget("remove", &["--json"]).await;
    let error: Value = serde_json::from_str(&unknown.err).unwrap_or_else(|_| panic!("{}", unknown.err));
    assert_eq!((unknown.code, error["error"]["code"].as_str()), (1, Some("unknown_tool")));
    assert!(unknown.err.contains("did you mean \\\"removed\\\"?"), "{}", unknown.err);

    let done = forget("removed", &[]).await;
    assert_eq!((done.code, done.out.as_str()), (0, "tool removed is forgotten: new calls of it are refused\n"));
    assert!(done.err.contains("still waiting for a worker until the deadline: 2 calls;"), "{}", done.err);
    assert_eq!(forget("other", &["--json"]).await.out, "{\"tool\":\"other\",\"waiting\":0}\n");
    let again = stack.submit(&Submission::new("removed", arguments(json!({})))).await;
    assert_eq!(again.status, SubmitStatus::Refused);
    // What waits still runs, should a worker register the tool again.
    stack.work(vec![removed(&stack, "removed")]).await;
    for call in waiting {
        stack.output(call).await;
    }
    stack.finish().await;
}
