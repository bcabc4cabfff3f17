//! What a receiver gets, and what becomes of its answers.

use std::collections::{BTreeMap, BTreeSet};

use redial_proto::{CallState, Code, ErrorClass, Submission, WebhookEvent, WebhookState, WebhookView, subjects::Verb};
use redial_test_stack::{Reply, Request, WEBHOOK_KEY, arguments};
use serde_json::{Value, json};

use super::{
    fixture::{ask, delivered, rotate, start, subscribe, test},
    standard::verifies,
};
use crate::agent_loop::erasing::found;

fn body(request: &Request) -> Value {
    serde_json::from_slice(&request.body).unwrap()
}

fn versions(request: &Request) -> usize {
    request.header("webhook-signature").unwrap().split(' ').count()
}

#[tokio::test]
async fn an_end_is_posted_once_and_verified_by_the_standard_library() {
    let (stack, receiver) = start([Reply::status(204)]).await;
    let secret = subscribe(&stack, &receiver, &[WebhookEvent::AnyCall]).await.secret;
    let mut submission = Submission::new("echo", arguments(json!({"city": "北京", "raw": 1.0})));
    (submission.key, submission.conversation) = (Some("order-17".to_owned()), Some("c".to_owned()));
    let call = stack.accepted(&submission).await;
    let request = receiver.arrived(1).await;
    assert_eq!((request.method.as_str(), request.path.as_str()), ("POST", "/hook"));
    assert_eq!(request.header("content-type"), Some("application/json"));
    assert_eq!(request.header("webhook-id"), Some(format!("evt_{}", call.0.simple()).as_str()));
    assert_ne!(verifies(&secret, &request), Some(false));
    assert_ne!(verifies("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", &request), Some(true), "another secret");
    let changed = Request { body: request.text().replace("echo", "ecko").into_bytes(), ..request.clone() };
    assert_ne!(verifies(&secret, &changed), Some(true), "another body");
    let posted = body(&request);
    assert_eq!(posted["type"], "call.succeeded");
    let data = &posted["data"];
    assert_eq!((&data["call"], &data["tool"], &data["state"]), (&json!(call), &json!("echo"), &json!("succeeded")));
    assert_eq!(
        (&data["key"], &data["conversation"], &data["output"]["city"]),
        (&json!("order-17"), &json!("c"), &json!("北京"))
    );
    assert_eq!((&data["link"], &data["cut"]), (&json!(format!("/v1/calls/{call}")), &Value::Null));
    let delivery = delivered(&stack, 1).await[0];
    let view = stack.get(delivery).await;
    assert_eq!((view.state, view.output.unwrap().get()), (CallState::Succeeded, r#"{"status":204}"#));
    // The delivery raises no event: the next one is that of the next call.
    let failed = stack.call("fails", json!({})).await;
    let second = receiver.arrived(2).await;
    assert_eq!((&body(&second)["type"], &body(&second)["data"]["call"]), (&json!("call.failed"), &json!(failed)));
    assert_eq!(body(&second)["data"]["feedback"]["class"], "auth", "what a model would read is there, too");
    delivered(&stack, 2).await;
    assert_eq!(receiver.requests().len(), 2);
    // Neither the key nor what is derived from it is in any table.
    for canary in [WEBHOOK_KEY, secret.strip_prefix("whsec_").unwrap()] {
        assert_eq!(found(&stack, canary).await, BTreeMap::new());
    }
    stack.finish().await;
}

#[tokio::test]
async fn a_failure_is_tried_again_under_the_same_id_and_a_pause_is_obeyed() {
    let busy = Reply::status(429).header("retry-after", "2");
    let (stack, receiver) = start([]).await;
    // The target is allowed, so only that redirects are not followed keeps the request away from it.
    let redirect = Reply::status(302).header("location", &receiver.url("/inside"));
    receiver.script("/hook", [redirect, Reply::hang_up(), busy, Reply::status(200)]);
    receiver.script("/inside", [Reply::status(200)]);
    let secret = subscribe(&stack, &receiver, &[WebhookEvent::CallSucceeded]).await.secret;
    stack.call("echo", json!({})).await;
    let last = receiver.arrived(4).await;
    let delivery = delivered(&stack, 1).await[0];
    let view = stack.get(delivery).await;
    assert_eq!((view.state, view.attempts), (CallState::Succeeded, 4));
    let classes: Vec<Option<ErrorClass>> = view.attempts_made.iter().map(|attempt| attempt.class).collect();
    let (unavailable, limited) = (Some(ErrorClass::Unavailable), Some(ErrorClass::RateLimited));
    assert_eq!(classes, [unavailable, unavailable, limited, None]);
    let requests = receiver.requests();
    assert!(requests[3].at - requests[2].at >= std::time::Duration::from_secs(2), "it asked for a pause");
    assert!(requests.iter().all(|request| request.path == "/hook"), "{requests:?}");
    let ids: BTreeSet<_> = requests.iter().map(|request| request.header("webhook-id")).collect();
    assert_eq!((ids.len(), requests.len()), (1, 4));
    // A later try may come after rotations.
    assert_eq!((versions(&requests[0]), versions(&last)), (1, 3));
    assert_ne!(verifies(&secret, &last), Some(false));
    stack.finish().await;
}

#[tokio::test]
async fn gone_disables_a_webhook_until_it_is_enabled() {
    let (stack, receiver) = start([Reply::status(410)]).await;
    let webhook = subscribe(&stack, &receiver, &[WebhookEvent::AnyCall]).await.webhook.webhook;
    stack.call("echo", json!({})).await;
    let delivery = delivered(&stack, 1).await[0];
    let view = stack.get(delivery).await;
    assert_eq!((view.state, view.class, view.attempts), (CallState::Failed, Some(ErrorClass::BusinessRule), 1));
    stack.counts(1, "webhooks WHERE state = 'disabled' AND reason = 'gone'").await;
    assert_eq!(test(&stack, webhook).await.unwrap_err(), Code::WrongState);
    let missed = stack.call("echo", json!({"n": 2})).await;
    stack.wait_for_end(missed).await;
    receiver.script("/hook", [Reply::status(200)]);
    let update = json!({"webhook": webhook, "state": "active"});
    let view: WebhookView = ask(stack.queue(), Verb::WebhookUpdate, &update).await.unwrap();
    assert_eq!((view.state, view.reason), (WebhookState::Active, None));
    let seen = stack.call("echo", json!({"n": 3})).await;
    let request = receiver.arrived(2).await;
    assert_eq!(body(&request)["data"]["call"], json!(seen), "what happened meanwhile is not delivered");
    delivered(&stack, 2).await;
    stack.finish().await;
}

#[tokio::test]
async fn both_secrets_sign_for_a_day_after_a_rotation() {
    let (stack, receiver) = start([Reply::status(200)]).await;
    let first = subscribe(&stack, &receiver, &[WebhookEvent::AnyCall]).await;
    let webhook = first.webhook.webhook;
    let second = rotate(&stack, webhook, 1).await.unwrap();
    assert_eq!(second.webhook.secret_version, 2);
    assert_ne!(second.secret, first.secret);
    assert_eq!(rotate(&stack, webhook, 1).await.unwrap(), second, "the reply may have been lost");
    assert_eq!(rotate(&stack, webhook, 3).await.unwrap_err(), Code::WrongState);
    stack.call("echo", json!({})).await;
    let request = receiver.arrived(1).await;
    assert_eq!(versions(&request), 2);
    assert_ne!(verifies(&first.secret, &request), Some(false));
    assert_ne!(verifies(&second.secret, &request), Some(false));
    delivered(&stack, 1).await;
    stack.execute("UPDATE webhooks SET previous_until = clock_timestamp()").await;
    stack.call("echo", json!({})).await;
    let request = receiver.arrived(2).await;
    assert_eq!(versions(&request), 1);
    assert_ne!(verifies(&first.secret, &request), Some(true));
    assert_ne!(verifies(&second.secret, &request), Some(false));
    delivered(&stack, 2).await;
    stack.finish().await;
}
