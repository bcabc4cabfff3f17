//! Agents are offered the tools that workers have, or had until a moment ago.

use std::time::Duration;

use redial_test_stack::{Stack, until};
use redial_worker::Tool;

use super::fixture::{Fixture, answer, book_tool, says};

/// Runs a task; the tools that the model was offered.
async fn offered(fixture: &Fixture) -> Vec<String> {
    assert_eq!(answer(&fixture.run("go").await), "done");
    let body = fixture.body(fixture.asked() - 1);
    let name = |tool: &serde_json::Value| tool["function"]["name"].as_str().unwrap().to_owned();
    body["tools"].as_array().unwrap().iter().map(name).collect()
}

/// A stack with `echo`, whose worker with `book` was just stopped.
async fn without_book(lease: Duration) -> Fixture {
    let mut stack = Stack::start_leasing(lease).await;
    stack.work(vec![book_tool()]).await;
    stack.stop_workers().await;
    let fixture = Fixture::over(stack, vec![Tool::echo()]).await;
    fixture.small([says("done")]);
    fixture
}

/// When everything starts again, dispatchers are often first: a turn must not miss the tools of workers that come later.
#[tokio::test]
async fn after_a_long_outage_agents_are_offered_what_workers_had_before_it() {
    let mut fixture = without_book(Duration::from_secs(20)).await;
    fixture.stack.stop_dispatchers().await;
    let outage = "UPDATE workers SET last_seen_at = now() - interval '30 min', live_until = now() - interval '29 min'";
    fixture.stack.execute(outage).await;
    fixture.stack.dispatch().await;
    assert_eq!(offered(&fixture).await, ["book", "echo"]);
    fixture.close().await;
}

#[tokio::test]
async fn a_tool_is_offered_until_its_last_worker_was_gone_for_two_minutes() {
    let mut fixture = without_book(Duration::from_secs(6)).await;
    assert_eq!(offered(&fixture).await, ["book", "echo"], "a worker that was just stopped may be replaced by another");
    let earlier = "UPDATE workers SET last_seen_at = last_seen_at - interval '2 min' WHERE tools = '{book}'";
    fixture.stack.execute(earlier).await;
    until("the tool is not offered", async || (offered(&fixture).await == ["echo"]).then_some(())).await;
    fixture.stack.work(vec![book_tool()]).await;
    assert_eq!(offered(&fixture).await, ["book", "echo"], "a worker has it again");
    fixture.close().await;
}
