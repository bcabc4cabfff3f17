//! Events of tasks.

use redial_proto::{
    AgentRef, TaskSubmission, WebhookEvent,
    turn::{TurnReply, TurnRequest},
};
use redial_test_stack::{Reply, ScriptedHttp, Stack, unique_path};
use redial_tools::Tool;
use serde_json::{Value, json};

use super::fixture::{HERE, create, delivered, subscription};

/// A stack with the agents `travel` and `hotels`, whose model answers at once, and a receiver.
async fn with_agents() -> (Stack, ScriptedHttp) {
    let mut stack = Stack::start().await;
    stack.stop_dispatchers().await;
    let path = unique_path("agents");
    std::fs::write(&path, "[agents.travel]\nmodel = \"small\"\n[agents.hotels]\nmodel = \"small\"\n").unwrap();
    stack.agents = Some(path);
    stack.dispatch().await;
    let small = Tool::new("small", |_: TurnRequest| async {
        TurnReply { text: Some("It is booked.".to_owned()), ..TurnReply::default() }
    });
    stack.play_models(vec![small]).await;
    stack.deliver_webhooks(HERE).await;
    let receiver = ScriptedHttp::start().await;
    receiver.script("/hook", [Reply::status(200)]);
    (stack, receiver)
}

fn task(agent: &str) -> TaskSubmission {
    TaskSubmission::new("Book a room.", AgentRef::Name(agent.into()))
}

#[tokio::test]
async fn a_task_that_succeeded_is_posted_with_its_answer() {
    let (stack, receiver) = with_agents().await;
    // The turns of its model are calls, and raise no event.
    create(stack.queue(), &subscription(&receiver.url("/hook"), &[WebhookEvent::AnyTask, WebhookEvent::AnyCall])).await;
    let id = stack.task(&task("travel")).await;
    let request = receiver.arrived(1).await;
    assert_eq!(request.header("webhook-id"), Some(format!("evt_{}", id.0.simple()).as_str()));
    let posted: Value = serde_json::from_slice(&request.body).unwrap();
    assert_eq!(posted["type"], "task.succeeded");
    let data = &posted["data"];
    assert_eq!((&data["task"], &data["state"], &data["agent"]), (&json!(id), &json!("succeeded"), &json!("travel")));
    assert_eq!((&data["answer"], &data["input"]), (&json!("It is booked."), &json!("Book a room.")));
    assert_eq!(data["link"], json!(format!("/v1/tasks/{id}")));
    delivered(&stack, 1).await;
    stack.finish().await;
}
