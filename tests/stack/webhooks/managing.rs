//! What users do with webhooks: errors, tenants, and what is on record.

use redial_proto::{
    Code, DeleteWebhook, DeletedWebhook, RedriveReply, RotateWebhook, TestWebhook, TestedWebhook, WebhookEvent,
    WebhookSecret, WebhookState, WebhookView, subjects::Verb,
};
use redial_store::{Purpose, WebhookChange};
use redial_testkit::{Reply, ScriptedHttp, Servers, Stack, until};
use redial_tools::Tool;
use serde_json::{Value, json};

use super::fixture::{HERE, ask, create, delivered, deliveries, events, set_state, start, subscribe, subscription};

#[tokio::test]
async fn a_webhook_is_created_once_and_every_mistake_is_named() {
    let stack = Stack::start().await;
    let request = subscription("https://example.com/hook", &[WebhookEvent::AnyCall]);
    let created = create(stack.queue(), &request).await;
    assert!(created.secret.starts_with("whsec_"));
    assert_eq!(create(stack.queue(), &request).await, created, "the reply may have been lost");
    let other = redial_proto::CreateWebhook { url: "https://example.com/other".to_owned(), ..request.clone() };
    assert_eq!(ask::<Value>(stack.queue(), Verb::WebhookCreate, &other).await, Err(Code::IdempotencyConflict));
    for (field, value) in [
        ("url", json!("ftp://example.com")),
        ("url", json!("https://me:secret@example.com")),
        ("events", json!([])),
        ("tools", json!(["a.b"])),
    ] {
        let mut wrong = serde_json::to_value(&request).unwrap();
        wrong[field] = value;
        assert_eq!(ask::<Value>(stack.queue(), Verb::WebhookCreate, &wrong).await, Err(Code::InvalidValue), "{wrong}");
    }
    let mut unknown = serde_json::to_value(&request).unwrap();
    unknown["events"] = json!(["call.finished"]);
    assert_eq!(ask::<Value>(stack.queue(), Verb::WebhookCreate, &unknown).await, Err(Code::InvalidMessage));
    let own: redial_proto::Tenant = "default".parse().unwrap();
    let store = stack.store(Purpose::Audit).await;
    assert_eq!(store.of(&own).webhooks().await.unwrap(), [created.webhook]);
    stack.finish().await;
}

#[tokio::test]
async fn a_dispatcher_without_a_key_says_what_to_set() {
    let mut stack = Stack::on(Servers::start().await).await;
    stack.webhook_key = None;
    stack.dispatch().await;
    let request = subscription("https://example.com/hook", &[WebhookEvent::AnyCall]);
    let refused: Result<Value, _> = ask(stack.queue(), Verb::WebhookCreate, &request).await;
    assert_eq!(refused, Err(Code::InvalidConfiguration));
    stack.finish().await;
}

#[tokio::test]
async fn another_tenants_webhooks_do_not_exist_and_get_nothing() {
    let (stack, receiver) = start([Reply::status(200)]).await;
    let (acme, globex) = (stack.user("acme", "alice").await, stack.user("globex", "bob").await);
    let request = subscription(&receiver.url("/hook"), &[WebhookEvent::AnyCall]);
    let webhook = request.webhook;
    let created = create(&acme, &request).await;
    let update = json!({"webhook": webhook, "state": "disabled"});
    assert_eq!(ask::<Value>(&globex, Verb::WebhookUpdate, &update).await, Err(Code::WebhookNotFound));
    assert_eq!(
        ask::<Value>(&globex, Verb::WebhookDelete, &DeleteWebhook { webhook }).await,
        Err(Code::WebhookNotFound)
    );
    let rotate = RotateWebhook { webhook, version: 1 };
    assert_eq!(ask::<Value>(&globex, Verb::WebhookRotate, &rotate).await, Err(Code::WebhookNotFound));
    assert_eq!(ask::<Value>(&globex, Verb::WebhookTest, &TestWebhook { webhook }).await, Err(Code::WebhookNotFound));
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
    let tenant: String = sqlx::query_scalar("SELECT tenant FROM calls WHERE id = $1::uuid")
        .bind(posted["data"]["call"].as_str().unwrap().parse::<uuid::Uuid>().unwrap())
        .fetch_one(stack.db())
        .await
        .unwrap();
    assert_eq!(tenant, "acme");
    stack.drained(super::fixture::ANSWER).await;
    assert_eq!((deliveries(&stack).await.len(), receiver.requests().len()), (1, 1));
    stack.finish().await;
}

#[tokio::test]
async fn what_waits_for_a_deleted_or_disabled_webhook_is_dropped_and_what_is_under_way_is_cancelled() {
    let (mut stack, receiver) = start([Reply::status(500)]).await;
    let first = subscribe(&stack, &receiver, &[WebhookEvent::AnyCall]).await.webhook.webhook;
    stack.call("echo", json!({})).await;
    receiver.arrived(1).await;
    let deleted: DeletedWebhook =
        ask(stack.queue(), Verb::WebhookDelete, &DeleteWebhook { webhook: first }).await.unwrap();
    assert_eq!(deleted.cancelled, 1);
    let gone: Result<Value, _> = ask(stack.queue(), Verb::WebhookDelete, &DeleteWebhook { webhook: first }).await;
    assert_eq!(gone, Err(Code::WebhookNotFound));
    let second = subscribe(&stack, &receiver, &[WebhookEvent::AnyCall]).await.webhook.webhook;
    stack.call("echo", json!({})).await;
    until("a delivery to the second is on record", async || (deliveries(&stack).await.len() == 2).then_some(())).await;
    set_state(&stack, second, WebhookState::Disabled).await;
    stack.drained(super::fixture::ANSWER).await;
    until("no event is left", async || (events(&stack).await == 0).then_some(())).await;
    let actions: Vec<(String, Option<String>)> =
        sqlx::query_as("SELECT verb, result FROM actions ORDER BY id").fetch_all(stack.db()).await.unwrap();
    let done = |verb: &str, result: &str| (verb.to_owned(), Some(result.to_owned()));
    assert_eq!(
        actions,
        [
            done("webhooks.create", "done"),
            done("webhooks.delete", "done"),
            done("webhooks.delete", "webhook_not_found"),
            done("webhooks.create", "done"),
            done("webhooks.update", "done"),
        ]
    );
    stack.leaves_jobs();
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
    let open = async || {
        let open = "SELECT count(*) FROM calls WHERE tool = 'redial_webhook' AND finished_at IS NULL";
        sqlx::query_scalar::<_, i64>(open).fetch_one(stack.db()).await.unwrap()
    };
    until("only the deliveries of the last one are open", async || (open().await == 50).then_some(())).await;
    until("three webhooks have no event left", async || (events(&stack).await == 50).then_some(())).await;
    let left: Vec<uuid::Uuid> = sqlx::query_scalar("SELECT DISTINCT webhook FROM webhook_events WHERE NOT ended")
        .fetch_all(stack.db())
        .await
        .unwrap();
    assert_eq!(left, [webhooks[3]]);
    let seen = stack.call("echo", json!({})).await;
    stack.wait_for_end(seen).await;
    until("it goes on with new ones", async || (deliveries(&stack).await.len() == 202).then_some(())).await;
    stack.leaves_calls();
    stack.finish().await;
}

/// Two at once, both of which count before either is on record, unless one waits for the other.
#[tokio::test]
async fn creators_at_once_do_not_exceed_the_limits() {
    let stack = Stack::start().await;
    for statement in [
        "INSERT INTO webhooks (tenant, id, created_by, content, url, events, tools, agents, key_id)
         SELECT 'default', gen_random_uuid(), 'x', gen_random_uuid(), 'https://x', '{call.*}', '{}', '{}', 'k'
         FROM generate_series(1, 99)",
        "INSERT INTO redrives (tenant, id, filter, dry_run, rate, state, created_by, next_at)
         SELECT 'default', gen_random_uuid(), '{}', true, 1, 'counting', 'x', clock_timestamp() + interval '1 day'
         FROM generate_series(1, 19)",
        "CREATE FUNCTION waits() RETURNS trigger LANGUAGE plpgsql AS $$
         BEGIN PERFORM pg_advisory_xact_lock_shared(4711); RETURN NEW; END $$",
        "CREATE TRIGGER waits BEFORE INSERT ON webhooks FOR EACH ROW EXECUTE FUNCTION waits()",
        "CREATE TRIGGER waits BEFORE INSERT ON redrives FOR EACH ROW EXECUTE FUNCTION waits()",
    ] {
        sqlx::raw_sql(statement).execute(stack.db()).await.unwrap();
    }
    let both_wait = async || {
        until("both wait", async || {
            let waiting = "SELECT count(*) FROM pg_stat_activity
                           WHERE datname = current_database() AND wait_event_type = 'Lock' AND wait_event = 'advisory'";
            (sqlx::query_scalar::<_, i64>(waiting).fetch_one(stack.db()).await.unwrap() == 2).then_some(())
        })
        .await;
    };
    let webhook = || serde_json::to_value(subscription("https://example.com/hook", &[WebhookEvent::AnyCall])).unwrap();
    let redrive = || json!({"redrive": uuid::Uuid::new_v4(), "filter": {"state": "failed"}, "dry_run": true});
    for (verb, requests, too_many) in [
        (Verb::WebhookCreate, [webhook(), webhook()], Code::TooLarge),
        (Verb::RedriveCreate, [redrive(), redrive()], Code::WrongState),
    ] {
        let mut lock = stack.db().begin().await.unwrap();
        sqlx::query("SELECT pg_advisory_xact_lock(4711)").execute(&mut *lock).await.unwrap();
        let release = async {
            both_wait().await;
            lock.rollback().await.unwrap();
        };
        let create = async |request: &Value| ask::<Value>(stack.queue(), verb, request).await;
        let (one, other, ()) = tokio::join!(create(&requests[0]), create(&requests[1]), release);
        let refused: Vec<Code> = [one, other].into_iter().filter_map(Result::err).collect();
        assert_eq!(refused, [too_many], "{verb:?}");
    }
    stack.verdict().await;
}

#[tokio::test]
async fn nobody_submits_deliveries_and_agents_are_not_offered_them() {
    let (stack, _receiver) = start([Reply::status(200)]).await;
    let call = json!({"tool": "redial_webhook", "arguments": {"url": "http://127.0.0.1/"}});
    let result: redial_proto::SubmitResult = ask(stack.queue(), Verb::CallSubmit, &call).await.unwrap();
    assert_eq!(result.error.unwrap().code, Code::Forbidden);
    assert_eq!(deliveries(&stack).await.len(), 0);
    stack.finish().await;
}

/// The tenant's list names what its users may call. Deliveries come with its webhooks.
#[tokio::test]
async fn a_tenant_with_a_list_of_tools_redrives_its_deliveries() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("access.toml");
    let access = "[dispatcher]\npassword = \"$A\"\n[tenants.default]\ntools = [\"echo\"]\n";
    std::fs::write(&file, access).unwrap();
    let mut stack = Stack::on(Servers::start().await).await;
    stack.access = Some(file);
    stack.dispatch().await;
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
    stack.drained(super::fixture::ANSWER).await;
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
    let view: WebhookView = ask(
        stack.queue(),
        Verb::WebhookUpdate,
        &json!({"webhook": request.webhook, "events": ["call.*"], "tools": []}),
    )
    .await
    .unwrap();
    assert_eq!((view.events, view.tools.len()), (vec![WebhookEvent::AnyCall], 0));
    let _: TestedWebhook =
        ask(stack.queue(), Verb::WebhookTest, &TestWebhook { webhook: request.webhook }).await.unwrap();
    receiver.arrived(3).await;
    stack.drained(super::fixture::ANSWER).await;
    stack.finish().await;
}
