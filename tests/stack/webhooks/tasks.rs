//! Events of tasks.

use redial_proto::{AgentRef, TaskSubmission, WebhookEvent};
use redial_test_stack::{Reply, ScriptedHttp, Stack, file};
use serde_json::{Value, json};

use super::fixture::{HERE, create, delivered, subscription};
use crate::http::model::{model, says};

#[tokio::test]
async fn a_task_that_succeeded_is_posted_with_its_answer() {
    let agents = file("agents", "[agents.travel]\nmodel = \"small\"\n");
    let mut stack = Stack::start_with(|stack| stack.dispatcher.agents = Some(agents)).await;
    stack.play_models(vec![model("small", [says("It is booked.")])]).await;
    stack.deliver_webhooks(HERE).await;
    let receiver = ScriptedHttp::start().await;
    receiver.script("/hook", [Reply::status(200)]);
    // The turns of its model are calls, and raise no event.
    create(stack.queue(), &subscription(&receiver.url("/hook"), &[WebhookEvent::AnyTask, WebhookEvent::AnyCall])).await;
    let id = stack.task(&TaskSubmission::new("Book a room.", AgentRef::Name("travel".into()))).await;
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
