//! A stack with a receiver, and what tests ask of both.

use std::time::Duration;

use redial_proto::{
    CallId, Code, CreateWebhook, RotateWebhook, TestWebhook, TestedWebhook, WebhookEvent, WebhookSecret, subjects::Verb,
};
use redial_queue::Queue;
use redial_test_stack::{Reply, ScriptedHttp, Stack, until};
use redial_tools::{Tool, ToolError};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use uuid::Uuid;

pub(crate) use crate::end_to_end::fixture::ANSWER;

/// Where the tests' receiver listens.
pub(crate) const HERE: &str = "127.0.0.0/8";

pub(crate) async fn ask<R: DeserializeOwned>(queue: &Queue, verb: Verb, request: &impl Serialize) -> Result<R, Code> {
    crate::end_to_end::fixture::ask(queue, verb, request).await.map_err(|error| error.code)
}

/// A stack with the tools `echo` and `fails`, a worker that delivers to this machine, and a receiver that answers so.
pub(crate) async fn start(replies: impl IntoIterator<Item = Reply>) -> (Stack, ScriptedHttp) {
    let mut stack = Stack::start_leasing(Duration::from_secs(15)).await;
    let fails = Tool::new("fails", |_: Value| async { Err::<(), _>(ToolError::auth("no")) });
    stack.work(vec![Tool::echo(), fails]).await;
    stack.deliver_webhooks(HERE).await;
    let receiver = ScriptedHttp::start().await;
    receiver.script("/hook", replies);
    (stack, receiver)
}

pub(crate) fn subscription(url: &str, events: &[WebhookEvent]) -> CreateWebhook {
    let (webhook, url, events) = (Uuid::new_v4(), url.to_owned(), events.to_vec());
    CreateWebhook { webhook, url, events, tools: Vec::new(), agents: Vec::new() }
}

pub(crate) async fn create(queue: &Queue, request: &CreateWebhook) -> WebhookSecret {
    ask(queue, Verb::WebhookCreate, request).await.unwrap()
}

/// Subscribes the receiver to these events.
pub(crate) async fn subscribe(stack: &Stack, receiver: &ScriptedHttp, events: &[WebhookEvent]) -> WebhookSecret {
    create(stack.queue(), &subscription(&receiver.url("/hook"), events)).await
}

pub(crate) async fn rotate(stack: &Stack, webhook: Uuid, version: u32) -> Result<WebhookSecret, Code> {
    ask(stack.queue(), Verb::WebhookRotate, &RotateWebhook { webhook, version }).await
}

/// Sends a test event.
pub(crate) async fn test(stack: &Stack, webhook: Uuid) -> Result<TestedWebhook, Code> {
    ask(stack.queue(), Verb::WebhookTest, &TestWebhook { webhook }).await
}

/// The deliveries on record, oldest first.
pub(crate) async fn deliveries(stack: &Stack) -> Vec<CallId> {
    let ids = stack.values("SELECT id FROM calls WHERE tool = 'redial_webhook' ORDER BY id").await;
    ids.into_iter().map(CallId).collect()
}

/// Waits until so many deliveries have ended, and fails if there are more.
pub(crate) async fn delivered(stack: &Stack, count: usize) -> Vec<CallId> {
    let all = until("the deliveries are on record", async || {
        let all = deliveries(stack).await;
        (all.len() >= count).then_some(all)
    })
    .await;
    assert_eq!(all.len(), count, "{all:?}");
    for call in &all {
        stack.wait_for_end(*call).await;
    }
    all
}

/// Events on record.
pub(crate) const EVENTS: &str = "webhook_events";
