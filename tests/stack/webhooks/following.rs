//! No end is missed, and none is delivered twice.

use chrono::{DateTime, Utc};
use redial_proto::{
    CallId, CallState, DisabledReason, Forget, ForgetReply, Submission, ToolEffect, WebhookEvent, subjects::Verb,
};
use redial_records::NewCall;
use redial_store::{DeliverOutcome, DeliveryLimits, Gone, PendingEvent, Purpose, Span, WebhookDelivery};
use redial_testkit::{Reply, Stack, arguments, until};
use serde_json::{Value, json};
use uuid::Uuid;

use super::fixture::{ANSWER, ask, delivered, deliveries, events, start, subscribe};

const NO_DELIVERIES: &str = "
    CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no delivery'; END $$;
    CREATE TRIGGER no_deliveries BEFORE INSERT ON calls FOR EACH ROW WHEN (NEW.tool = 'redial_webhook') EXECUTE FUNCTION fail()";

/// A dispatcher may lock the same tables in another order, so a statement may be chosen to end a deadlock.
async fn execute(stack: &Stack, statement: &'static str) {
    until("no deadlock ends the statement", async || match sqlx::raw_sql(statement).execute(stack.db()).await {
        Ok(_) => Some(()),
        Err(sqlx::Error::Database(error)) if error.code().as_deref() == Some("40P01") => None,
        Err(error) => panic!("{error}: {statement}"),
    })
    .await;
}

/// The events are on record, and no delivery of them can be written. All dispatchers stop, the cause goes away, and two others
/// start.
#[tokio::test]
async fn events_that_no_dispatcher_could_deliver_are_delivered_once_by_others() {
    let (mut stack, receiver) = start([Reply::status(200)]).await;
    subscribe(&stack, &receiver, &[WebhookEvent::AnyCall]).await;
    execute(&stack, NO_DELIVERIES).await;
    for n in 0..20 {
        stack.call("echo", json!({ "n": n })).await;
    }
    until("the events are on record", async || (events(&stack).await == 20).then_some(())).await;
    stack.stop_dispatchers().await;
    assert_eq!(deliveries(&stack).await.len(), 0);
    execute(&stack, "DROP TRIGGER no_deliveries ON calls").await;
    stack.dispatch().await;
    stack.dispatch().await;
    receiver.arrived(20).await;
    delivered(&stack, 20).await;
    assert_eq!(receiver.requests().len(), 20);
    stack.finish().await;
}

/// Its receiver was down for longer than calls are kept.
#[tokio::test]
async fn retention_keeps_a_call_until_its_event_is_delivered() {
    let (mut stack, receiver) = start([Reply::status(200)]).await;
    subscribe(&stack, &receiver, &[WebhookEvent::AnyCall]).await;
    execute(&stack, NO_DELIVERIES).await;
    let untold = stack.call("echo", json!({})).await;
    until("the event is on record", async || (events(&stack).await == 1).then_some(())).await;
    stack.stop_dispatchers().await;
    execute(
        &stack,
        "SET session_replication_role = replica;
         UPDATE calls SET finished_at = now() - interval '3 h';
         RESET session_replication_role;
         UPDATE webhook_events SET at = now() - interval '3 h';
         INSERT INTO calls (id, submitted_at, deadline_at, timeout_ms, notify, tool, pool, effect, tenant, arguments, published_at,
                            finished_at, state)
         VALUES (first_id(now() - interval '5 h'), now() - interval '5 h', now(), 1, false, 'told', 'default', 'read', 'default', '{}',
                 now(), now() - interval '4 h', 'failed')",
    )
    .await;
    stack.retention = Some(std::time::Duration::from_mins(1));
    stack.dispatch().await;
    until("what was told of before is deleted", async || {
        let told = sqlx::query_scalar::<_, i64>("SELECT count(*) FROM calls WHERE tool = 'told'");
        (told.fetch_one(stack.db()).await.unwrap() == 0).then_some(())
    })
    .await;
    assert_eq!(stack.get(untold).await.state, CallState::Succeeded);
    execute(&stack, "DROP TRIGGER no_deliveries ON calls").await;
    receiver.arrived(1).await;
    delivered(&stack, 1).await;
    stack.finish().await;
}

fn delivery(event: &PendingEvent) -> WebhookDelivery {
    let call = NewCall {
        id: CallId::generate(),
        tool: "redial_webhook".to_owned(),
        pool: "webhooks".to_owned(),
        effect: ToolEffect::Idempotent,
        tenant: event.tenant.clone(),
        key: None,
        content: None,
        conversation: None,
        arguments: "{}".to_owned(),
        repairs: Vec::new(),
        undeclared: Vec::new(),
        help: None,
        timeout_ms: 1_000,
        retry: None,
        notify: false,
        traceparent: None,
        deadline_ms: 60_000,
        refusal: None,
        redrive_of: None,
        task: None,
        consumer: None,
        submitted_by: None,
    };
    WebhookDelivery { event: event.clone(), call: Some(call) }
}

const fn limits(of_webhook: u32) -> DeliveryLimits {
    DeliveryLimits { each: 10, of_webhook, of_tenant: 10_000, total: 10 }
}

/// Two dispatchers write a delivery of one event at the same time, and one again after a lost reply.
#[tokio::test]
async fn an_event_gets_one_delivery_however_many_write_it() {
    let (mut stack, receiver) = start([Reply::status(200)]).await;
    subscribe(&stack, &receiver, &[WebhookEvent::AnyCall]).await;
    stack.stop_dispatchers().await;
    let store = stack.store(Purpose::Dispatch).await;
    let insert = "INSERT INTO webhook_events (tenant, webhook, subject, event, at)
                  SELECT tenant, id, gen_random_uuid(), 'call.succeeded', clock_timestamp() FROM webhooks";
    execute(&stack, insert).await;
    let event = store.pending_events(limits(10)).await.unwrap().remove(0);
    let written = |outcome: DeliverOutcome| match outcome {
        DeliverOutcome::Written(written) => written.len(),
        DeliverOutcome::Erasing => panic!("nothing is erased"),
    };
    let (one, other) = ([delivery(&event)], [delivery(&event)]);
    let (first, second) = tokio::join!(store.deliver(&one, 1_000), store.deliver(&other, 1_000));
    assert_eq!(written(first.unwrap()) + written(second.unwrap()), 1);
    assert_eq!(written(store.deliver(&one, 1_000).await.unwrap()), 0);
    assert_eq!(deliveries(&stack).await.len(), 1);
    assert!(store.pending_events(limits(10)).await.unwrap().is_empty());
    // No more than this many deliveries are under way.
    execute(&stack, insert).await;
    assert!(store.pending_events(limits(1)).await.unwrap().is_empty());
    assert_eq!(store.pending_events(limits(2)).await.unwrap().len(), 1);
    // An erasure that is under way holds the rest, and a disabled webhook drops it.
    let event = store.pending_events(limits(2)).await.unwrap().remove(0);
    execute(
        &stack,
        "INSERT INTO tombstones (id, tenant, actor, cancels) VALUES (gen_random_uuid(), 'default', 'x', false)",
    )
    .await;
    assert!(store.pending_events(limits(2)).await.unwrap().is_empty());
    assert_eq!(written(store.deliver(&[delivery(&event)], 1_000).await.unwrap()), 0);
    execute(&stack, "DELETE FROM tombstones").await;
    let gone = Gone { tenant: event.tenant.clone(), webhook: event.webhook, at: store.now().await.unwrap() };
    let earlier = Gone { at: chrono::DateTime::UNIX_EPOCH, ..gone.clone() };
    assert!(!store.disable_webhook(&earlier, DisabledReason::Gone).await.unwrap(), "it was enabled since");
    assert!(store.abandoned_deliveries(10).await.unwrap().is_empty());
    assert!(store.disable_webhook(&gone, DisabledReason::Backlog).await.unwrap());
    assert_eq!(store.abandoned_deliveries(10).await.unwrap(), deliveries(&stack).await);
    assert_eq!(written(store.deliver(&[delivery(&event)], 1_000).await.unwrap()), 0);
    // An event that was written while its webhook was disabled.
    execute(&stack, insert).await;
    store.delete_orphaned_events().await.unwrap();
    let waiting = sqlx::query_scalar::<_, i64>("SELECT count(*) FROM webhook_events WHERE delivery IS NULL");
    assert_eq!(waiting.fetch_one(stack.db()).await.unwrap(), 0);
    stack.leaves_calls();
    stack.finish().await;
}

/// The transaction takes the time of the end, and becomes visible when the look at recent ends is long past it.
#[tokio::test]
async fn an_end_that_becomes_visible_late_is_not_missed() {
    let (stack, receiver) = start([Reply::status(200)]).await;
    subscribe(&stack, &receiver, &[WebhookEvent::CallCancelled]).await;
    // Its tool is known and nobody serves it, so it waits.
    execute(&stack, "INSERT INTO tools (name, spec, registered_by) VALUES ('idle', '{\"name\": \"idle\"}', 'w-1')")
        .await;
    let call = stack.accepted(&Submission::new("idle", arguments(json!({})))).await;
    let mut late = stack.db().begin().await.unwrap();
    sqlx::query(
        "UPDATE calls SET state = 'cancelled', wake_at = NULL, backlog_at = NULL, finished_at = clock_timestamp(),
                          class = 'cancelled', message = 'it was cancelled' WHERE id = $1",
    )
    .bind(call.0)
    .execute(&mut *late)
    .await
    .unwrap();
    let began = sqlx::query_scalar::<_, chrono::DateTime<chrono::Utc>>("SELECT clock_timestamp()");
    let began = began.fetch_one(&mut *late).await.unwrap();
    until("recent ends are looked at from later on", async || {
        let passed = "SELECT clock_timestamp() > $1 + interval '7 s'";
        sqlx::query_scalar::<_, bool>(passed).bind(began).fetch_one(stack.db()).await.unwrap().then_some(())
    })
    .await;
    late.commit().await.unwrap();
    let request = receiver.arrived(1).await;
    let posted: Value = serde_json::from_slice(&request.body).unwrap();
    assert_eq!((&posted["type"], &posted["data"]["call"]), (&json!("call.cancelled"), &json!(call)));
    delivered(&stack, 1).await;
    stack.finish().await;
}

/// What was found soon is found again behind the fence, and not delivered again.
#[tokio::test]
async fn an_end_that_is_found_twice_is_delivered_once() {
    let (stack, receiver) = start([Reply::status(200)]).await;
    subscribe(&stack, &receiver, &[WebhookEvent::AnyCall]).await;
    let call = stack.call("echo", json!({})).await;
    delivered(&stack, 1).await;
    until("the fence has passed it", async || {
        let passed = "SELECT EXISTS (SELECT FROM webhook_progress, calls
                      WHERE tool = 'redial_webhook' AND followed_until > finished_at)";
        sqlx::query_scalar::<_, bool>(passed).fetch_one(stack.db()).await.unwrap().then_some(())
    })
    .await;
    assert_eq!((deliveries(&stack).await.len(), receiver.requests().len()), (1, 1));
    let store = stack.store(Purpose::Dispatch).await;
    let now = store.now().await.unwrap();
    let all = Span { from: now - chrono::TimeDelta::hours(1), until: now };
    until("nobody follows further meanwhile", async || {
        let progress = followed_until(&stack).await.unwrap();
        store.notice_webhooks(all, progress).await.unwrap().then_some(())
    })
    .await;
    assert_eq!(events(&stack).await, 0, "a third look finds nothing new about {call}");
    stack.finish().await;
}

/// It was stopped for so long that another dispatcher took the lead, delivered everything, and deleted what is over.
#[tokio::test]
async fn a_leader_that_resumes_late_writes_no_event_again() {
    let (mut stack, receiver) = start([Reply::status(200)]).await;
    subscribe(&stack, &receiver, &[WebhookEvent::AnyCall]).await;
    stack.call("echo", json!({})).await;
    delivered(&stack, 1).await;
    stack.stop_dispatchers().await;
    execute(&stack, "DELETE FROM webhook_events").await;
    let store = stack.store(Purpose::Dispatch).await;
    let (progress, now) = (followed_until(&stack).await.unwrap(), store.now().await.unwrap());
    let stale = progress - chrono::TimeDelta::minutes(1);
    let span = Span { from: stale, until: now };
    assert!(!store.follow_webhooks(span).await.unwrap());
    assert!(!store.notice_webhooks(span, stale).await.unwrap());
    assert!(!store.set_webhook_progress(Some(stale), Some(now)).await.unwrap());
    assert_eq!((events(&stack).await, followed_until(&stack).await), (0, Some(progress)));
    // Whoever knows the progress writes them: they were there to be found.
    assert!(store.notice_webhooks(span, progress).await.unwrap());
    assert_eq!((events(&stack).await, followed_until(&stack).await), (1, Some(progress)));
    assert!(store.follow_webhooks(Span { from: progress, until: now }).await.unwrap());
    assert_eq!(followed_until(&stack).await, Some(now));
    stack.leaves_calls();
    stack.finish().await;
}

/// More failed deliveries than one statement can read within its time: here it fails at 2,000 of them.
#[tokio::test]
async fn a_long_time_without_dispatchers_is_caught_up_with_in_steps() {
    let (mut stack, receiver) = start([Reply::status(200)]).await;
    subscribe(&stack, &receiver, &[WebhookEvent::CallCancelled]).await;
    until("ends are followed", async || followed_until(&stack).await).await;
    stack.stop_dispatchers().await;
    execute(
        &stack,
        "UPDATE webhook_progress SET followed_until = clock_timestamp() - interval '1 h';
         UPDATE webhooks SET since = clock_timestamp() - interval '2 h';
         INSERT INTO calls (id, submitted_at, deadline_at, timeout_ms, notify, tool, pool, effect, tenant, arguments,
                            published_at, attempt, state, finished_at, class, message)
         SELECT ('0000' || substr(gen_random_uuid()::text, 5))::uuid, t.at, t.at, 1000, false, 'redial_webhook', 'webhooks', 'idempotent', 'default', '{}',
                t.at, 1, 'failed', t.at, 'business_rule', 'no'
         FROM (SELECT clock_timestamp() - interval '50 min' + n * interval '1 ms' AS at FROM generate_series(1, 2500) n) t;
         INSERT INTO attempts (call_id, attempt, worker, started_at, ended_at, class, message, details)
         SELECT id, 1, 'w-1', finished_at, finished_at, class, message, '[]' FROM calls WHERE tool = 'redial_webhook';
         INSERT INTO calls (id, submitted_at, deadline_at, timeout_ms, notify, tool, pool, effect, tenant, arguments,
                            published_at, attempt, state, finished_at, class, message)
         SELECT ('0000' || substr(gen_random_uuid()::text, 5))::uuid, t.at, t.at, 1000, false, 'echo', 'default', 'read', 'default', '{}',
                t.at, 0, 'cancelled', t.at, 'cancelled', 'it was cancelled'
         FROM (SELECT clock_timestamp() - interval '40 min' AS at) t",
    )
    .await;
    // Counts what the planner has a statement read, which is forgotten at its end.
    execute(
        &stack,
        "CREATE FUNCTION counted(details json) RETURNS json STABLE LANGUAGE plpgsql AS $$
         DECLARE n int := COALESCE(NULLIF(current_setting('test.read', true), ''), '0')::int + 1;
         BEGIN
             PERFORM set_config('test.read', n::text, true);
             IF n > 4000 THEN RAISE EXCEPTION 'the statement reads too much'; END IF;
             RETURN details;
         END $$;
         ALTER TABLE attempts RENAME TO all_attempts;
         DO $$ BEGIN EXECUTE (SELECT 'CREATE VIEW attempts AS SELECT '
             || string_agg(CASE column_name WHEN 'details' THEN 'counted(details) AS details' ELSE column_name END, ', ')
             || ' FROM all_attempts'
             FROM information_schema.columns WHERE table_schema = 'public' AND table_name = 'all_attempts'); END $$",
    )
    .await;
    let last = sqlx::query_scalar("SELECT finished_at FROM calls WHERE state = 'cancelled'");
    let last: DateTime<Utc> = last.fetch_one(stack.db()).await.unwrap();
    let store = stack.store(Purpose::Dispatch).await;
    let all = Span { from: followed_until(&stack).await.unwrap(), until: last };
    assert!(store.gone_receivers(all).await.is_err(), "one statement cannot read all of it");
    stack.dispatch().await;
    until("all of it is followed", async || (followed_until(&stack).await? > last).then_some(())).await;
    execute(&stack, "DROP VIEW attempts; ALTER TABLE all_attempts RENAME TO attempts").await;
    let posted: Value = serde_json::from_slice(&receiver.arrived(1).await.body).unwrap();
    assert_eq!(posted["type"], "call.cancelled");
    // Neither these failures nor that cancel happened.
    stack.verdict().await;
}

async fn followed_until(stack: &Stack) -> Option<DateTime<Utc>> {
    sqlx::query_scalar("SELECT followed_until FROM webhook_progress").fetch_one(stack.db()).await.unwrap()
}

#[tokio::test]
async fn nothing_is_followed_while_there_is_no_webhook() {
    let (stack, receiver) = start([Reply::status(200)]).await;
    let early = stack.call("echo", json!({})).await;
    stack.wait_for_end(early).await;
    assert_eq!(followed_until(&stack).await, None);
    subscribe(&stack, &receiver, &[WebhookEvent::AnyCall]).await;
    let later = stack.call("echo", json!({})).await;
    let posted: Value = serde_json::from_slice(&receiver.arrived(1).await.body).unwrap();
    assert_eq!(posted["data"]["call"], json!(later), "what ended before the webhook was there raises no event");
    delivered(&stack, 1).await;
    stack.finish().await;
}

/// A delivery holds what is on record of its call, so an erasure of the conversation finds it.
#[tokio::test]
async fn an_erasure_takes_the_deliveries_with_it() {
    let (stack, receiver) = start([Reply::status(200)]).await;
    subscribe(&stack, &receiver, &[WebhookEvent::AnyCall]).await;
    let mut submission = Submission::new("echo", arguments(json!({"passport": "X123"})));
    submission.conversation = Some("c".to_owned());
    let call = stack.accepted(&submission).await;
    assert_eq!(stack.ended(call).await.state, CallState::Succeeded);
    delivered(&stack, 1).await;
    let forget = Forget { conversation: Some("c".to_owned()), erasure: Some(Uuid::now_v7()), ..Forget::default() };
    until("it is erased", async || {
        let reply: ForgetReply = ask(stack.queue(), Verb::ConversationForget, &forget).await.unwrap();
        reply.done.then_some(())
    })
    .await;
    let left: i64 = sqlx::query_scalar("SELECT count(*) FROM calls").fetch_one(stack.db()).await.unwrap();
    assert_eq!(left, 0, "the call and its delivery are gone");
    let _ = ANSWER;
    // The call is gone, which a client was told of.
    stack.verdict().await;
}
