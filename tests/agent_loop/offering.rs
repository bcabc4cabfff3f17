//! Agents are offered the tools that workers have, or had until a moment ago.

use redial_testkit::{Stack, until};
use redial_worker::Tool;

use crate::fixture::{Fixture, answer, book_tool, says};

/// Runs a task; the tools that the model was offered.
async fn offered(fixture: &Fixture) -> Vec<String> {
    assert_eq!(answer(&fixture.run("go").await), "done");
    let body = fixture.body(fixture.asked() - 1);
    let name = |tool: &serde_json::Value| tool["function"]["name"].as_str().unwrap().to_owned();
    body["tools"].as_array().unwrap().iter().map(name).collect()
}

#[tokio::test]
async fn a_tool_is_offered_until_its_last_worker_was_gone_for_two_minutes() {
    let mut stack = Stack::start().await;
    stack.work(vec![book_tool()]).await;
    stack.stop_workers().await;
    let mut fixture = Fixture::over(stack, vec![Tool::echo()]).await;
    fixture.small([says("done")]);
    assert_eq!(offered(&fixture).await, ["book", "echo"], "a worker that was just stopped may be replaced by another");
    let earlier = "UPDATE workers SET last_seen_at = last_seen_at - interval '2 min' WHERE tools = '{book}'";
    sqlx::query(earlier).execute(fixture.stack.db()).await.unwrap();
    until("the tool is not offered", async || (offered(&fixture).await == ["echo"]).then_some(())).await;
    fixture.stack.work(vec![book_tool()]).await;
    assert_eq!(offered(&fixture).await, ["book", "echo"], "a worker has it again");
    fixture.close().await;
}
