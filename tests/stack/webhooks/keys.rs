//! Dispatchers that got another key.

use redial_proto::{Code, WebhookEvent, WebhookSecret, subjects::Verb};
use redial_test_stack::{Reply, ScriptedHttp, Stack};
use redial_tools::{Tool, WebhookKey};

use super::{
    fixture::{HERE, ask, create, rotate, subscription, test},
    standard::verifies,
};

/// A webhook whose secret is derived from another key delivers nothing, so nobody is told that it works, or what its secret is.
#[tokio::test]
async fn a_webhook_of_another_key_is_named_until_its_secret_is_rotated() {
    let mut stack = Stack::start().await;
    let receiver = ScriptedHttp::start().await;
    receiver.script("/hook", [Reply::status(200)]);
    let request = subscription(&receiver.url("/hook"), &[WebhookEvent::AnyCall]);
    let created = create(stack.queue(), &request).await;
    stack.stop_dispatchers().await;
    stack.dispatcher.webhook_key = WebhookKey::new("another-canary-key-of-tests-0123456789").ok();
    stack.dispatch().await;
    stack.work(vec![Tool::echo()]).await;
    stack.deliver_webhooks(HERE).await;
    let webhook = request.webhook;
    let again: Result<WebhookSecret, Code> = ask(stack.queue(), Verb::WebhookCreate, &request).await;
    assert_eq!(again.unwrap_err(), Code::InvalidConfiguration, "it would be another secret than before");
    assert_eq!(test(&stack, webhook).await.unwrap_err(), Code::InvalidConfiguration);
    let rotated = rotate(&stack, webhook, 1).await.unwrap();
    assert_ne!(rotated.secret, created.secret);
    assert_eq!(rotate(&stack, webhook, 1).await.unwrap(), rotated, "the reply may have been lost");
    assert_eq!(create(stack.queue(), &request).await, rotated);
    let tested = test(&stack, webhook).await.unwrap();
    assert_eq!(stack.output(tested.call).await, r#"{"status":200}"#);
    assert_ne!(verifies(&rotated.secret, &receiver.arrived(1).await), Some(false));
    // A dispatcher that still has the old key says so, too.
    stack.stop_dispatchers().await;
    stack.dispatcher.webhook_key = WebhookKey::new(redial_test_stack::WEBHOOK_KEY).ok();
    stack.dispatch().await;
    assert_eq!(rotate(&stack, webhook, 1).await.unwrap_err(), Code::InvalidConfiguration);
    stack.finish().await;
}
