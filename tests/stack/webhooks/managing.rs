//! What users do with webhooks: errors, tenants, and what is on record.

use redial_proto::{Code, RedriveReply, WebhookEvent, WebhookSecret, WebhookState, WebhookView, subjects::Verb};
use redial_store::{Purpose, WebhookChange};
use redial_test_stack::{Reply, ScriptedHttp, Stack, file, until};
use redial_tools::Tool;
use serde_json::{Value, json};

use super::fixture::{ANSWER, EVENTS, HERE, ask, create, delivered, deliveries, start, subscribe, subscription, test};

#[tokio::test]
async fn another_tenants_webhooks_do_not_exist_and_get_nothing() {
    let (stack, receiver) = start([Reply::status(200)]).await;
    let (acme, globex) = (stack.user("acme", "alice").await, stack.user("globex", "bob").await);
    let request = subscription(&receiver.url("/hook"), &[WebhookEvent::AnyCall]);
    let webhook = request.webhook;
    let created = create(&acme, &request).await;
    for (verb, request) in [
        (Verb::WebhookUpdate, json!({"webhook": webhook, "state": "disabled"})),
        (Verb::WebhookDelete, json!({ "webhook": webhook })),
        (Verb::WebhookRotate, json!({"webhook": webhook, "version": 1})),
        (Verb::WebhookTest, json!({ "webhook": webhook })),
    ] {
        assert_eq!(ask::<Value>(&globex, verb, &request).await, Err(Code::WebhookNotFound), "{verb:?}");
    }
    let store = stack.store(Purpose::Audit).await;
    let tenant: redial_proto::Tenant = "globex".parse().unwrap();
    assert_eq!(store.of(&tenant).webhook(webhook).await.unwrap(), None);
    // The same id is another webhook, with another secret.
    let same = create(&globex, &redial_proto::CreateWebhook { events: vec![WebhookEvent::AnyTask], ..request }).await;
    assert_ne!(same.secret, created.secret);
    let call = json!({"tool": "echo", "arguments": {}});
    for user in [&globex, &acme] {
        let _: redial_proto::SubmitResult = ask(user, Verb::CallSubmit, &call).await.unwrap();
    }
    let request = receiver.arrived(1).await;
    let posted: Value = serde_json::from_slice(&request.body).unwrap();
    let of_acme = format!("calls WHERE id = '{}' AND tenant = 'acme'", posted["data"]["call"].as_str().unwrap());
    assert_eq!(stack.count(&of_acme).await, 1);
    stack.drained(ANSWER).await;
    assert_eq!((deliveries(&stack).await.len(), receiver.requests().len()), (1, 1));
    stack.finish().await;
}

/// The dispatcher that deletes or disables a webhook dies right after that is on record. What has to be cancelled is in the tables.
#[tokio::test]
async fn deliveries_of_a_webhook_that_is_gone_are_cancelled_whoever_dies() {
    let (mut stack, receiver) = start([Reply::status(500)]).await;
    let mut webhooks = Vec::new();
    for _ in 0..4 {
        webhooks.push(subscribe(&stack, &receiver, &[WebhookEvent::AnyCall]).await.webhook.webhook);
    }
    for n in 0..50 {
        stack.call("echo", json!({ "n": n })).await;
    }
    until("all deliveries are on record", async || (deliveries(&stack).await.len() == 200).then_some(())).await;
    stack.stop_dispatchers().await;
    let own: redial_proto::Tenant = "default".parse().unwrap();
    let store = stack.store(Purpose::Dispatch).await;
    let state = async |webhook, state| {
        let change = WebhookChange { state: Some(state), ..WebhookChange::default() };
        store.of(&own).update_webhook(webhook, &change).await.unwrap().unwrap();
    };
    assert_eq!(store.of(&own).delete_webhook(webhooks[0]).await.unwrap(), Some(50));
    assert_eq!(store.of(&own).delete_webhook(webhooks[0]).await.unwrap(), None);
    state(webhooks[1], WebhookState::Disabled).await;
    // It was disabled meanwhile, so what was under way then does not go on.
    state(webhooks[2], WebhookState::Disabled).await;
    state(webhooks[2], WebhookState::Active).await;
    stack.dispatch().await;
    // Only those of the last one.
    stack.counts(50, "calls WHERE tool = 'redial_webhook' AND finished_at IS NULL").await;
    stack.counts(50, EVENTS).await;
    let left: Vec<uuid::Uuid> = stack.values(&format!("SELECT DISTINCT webhook FROM {EVENTS}")).await;
    assert_eq!(left, [webhooks[3]]);
    let seen = stack.call("echo", json!({})).await;
    stack.wait_for_end(seen).await;
    until("it goes on with new ones", async || (deliveries(&stack).await.len() == 202).then_some(())).await;
    stack.leaves_calls();
    stack.finish().await;
}

/// The tenant's list names what its users may call. Deliveries come with its webhooks.
#[tokio::test]
async fn a_tenant_with_a_list_of_tools_redrives_its_deliveries() {
    let access = file("access", "[dispatcher]\npassword = \"$A\"\n[tenants.default]\ntools = [\"echo\"]\n");
    let mut stack = Stack::start_with(|stack| stack.dispatcher.access = Some(access)).await;
    stack.work(vec![Tool::echo()]).await;
    stack.deliver_webhooks(HERE).await;
    let receiver = ScriptedHttp::start().await;
    receiver.script("/hook", [Reply::status(410), Reply::status(200)]);
    subscribe(&stack, &receiver, &[WebhookEvent::AnyCall]).await;
    stack.call("echo", json!({})).await;
    let delivery = delivered(&stack, 1).await[0];
    // With other arguments it would be a delivery that the user makes up.
    let edited = json!({"calls": [delivery], "arguments": {"url": receiver.url("/hook")}});
    let reply: RedriveReply = ask(stack.queue(), Verb::CallRedrive, &edited).await.unwrap();
    assert_eq!(reply.results[0].error.as_ref().unwrap().code, Code::Forbidden);
    let again = stack.redrive(delivery).await.call.unwrap();
    assert_eq!(stack.output(again).await, r#"{"status":200}"#);
    stack.finish().await;
}

#[tokio::test]
async fn filters_by_tool_and_type_hold() {
    let (stack, receiver) = start([Reply::status(200)]).await;
    let mut request = subscription(&receiver.url("/hook"), &[WebhookEvent::CallFailed, WebhookEvent::CallRefused]);
    request.tools = vec!["fails".to_owned(), "unheard_of".to_owned()];
    let secret: WebhookSecret = create(stack.queue(), &request).await;
    assert_eq!(secret.webhook.tools, request.tools);
    stack.call("echo", json!({})).await;
    let unknown = json!({"tool": "unheard_of", "arguments": {}});
    let refused: redial_proto::SubmitResult = ask(stack.queue(), Verb::CallSubmit, &unknown).await.unwrap();
    let failed = stack.call("fails", json!({})).await;
    receiver.arrived(2).await;
    stack.drained(ANSWER).await;
    let mut posted: Vec<(String, Value)> = receiver
        .requests()
        .iter()
        .map(|request| serde_json::from_slice::<Value>(&request.body).unwrap())
        .map(|body| (body["type"].as_str().unwrap().to_owned(), body["data"]["call"].clone()))
        .collect();
    posted.sort_by(|one, other| one.0.cmp(&other.0));
    assert_eq!(
        posted,
        [("call.failed".to_owned(), json!(failed)), ("call.refused".to_owned(), json!(refused.call.unwrap()))]
    );
    let update = json!({"webhook": request.webhook, "events": ["call.*"], "tools": []});
    let view: WebhookView = ask(stack.queue(), Verb::WebhookUpdate, &update).await.unwrap();
    assert_eq!((view.events, view.tools.len()), (vec![WebhookEvent::AnyCall], 0));
    test(&stack, request.webhook).await.unwrap();
    receiver.arrived(3).await;
    stack.drained(ANSWER).await;
    let call = json!({"tool": "redial_webhook", "arguments": {"url": "http://127.0.0.1/"}});
    let result: redial_proto::SubmitResult = ask(stack.queue(), Verb::CallSubmit, &call).await.unwrap();
    assert_eq!(result.error.unwrap().code, Code::Forbidden, "nobody submits deliveries");
    stack.finish().await;
}
