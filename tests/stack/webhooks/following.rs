//! No end is missed, and none is delivered twice.

use chrono::{DateTime, Utc};
use redial_proto::{CallState, Submission, WebhookEvent};
use redial_store::{Purpose, Span};
use redial_test_stack::{Reply, Stack, arguments};
use serde_json::{Value, json};

use super::fixture::{EVENTS, delivered, deliveries, start, subscribe};

const NO_DELIVERIES: &str = "
    CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no delivery'; END $$;
    CREATE TRIGGER no_deliveries BEFORE INSERT ON calls FOR EACH ROW WHEN (NEW.tool = 'redial_webhook') EXECUTE FUNCTION fail()";

/// The events are on record, and no delivery of them can be written. All dispatchers stop, the cause goes away, and two others
/// start.
#[tokio::test]
async fn events_that_no_dispatcher_could_deliver_are_delivered_once_by_others() {
    let (mut stack, receiver) = start([Reply::status(200)]).await;
    subscribe(&stack, &receiver, &[WebhookEvent::AnyCall]).await;
    stack.execute(NO_DELIVERIES).await;
    for n in 0..20 {
        stack.call("echo", json!({ "n": n })).await;
    }
    stack.counts(20, EVENTS).await;
    stack.stop_dispatchers().await;
    assert_eq!(deliveries(&stack).await.len(), 0);
    stack.execute("DROP TRIGGER no_deliveries ON calls").await;
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
    stack.execute(NO_DELIVERIES).await;
    let untold = stack.call("echo", json!({})).await;
    stack.counts(1, EVENTS).await;
    stack.stop_dispatchers().await;
    let earlier = "
         SET session_replication_role = replica;
         UPDATE calls SET finished_at = now() - interval '3 h';
         RESET session_replication_role;
         UPDATE webhook_events SET at = now() - interval '3 h';
         INSERT INTO calls (id, submitted_at, deadline_at, timeout_ms, notify, tool, pool, effect, tenant, arguments, published_at,
                            finished_at, state)
         VALUES (first_id(now() - interval '5 h'), now() - interval '5 h', now(), 1, false, 'told', 'default', 'read', 'default', '{}',
                 now(), now() - interval '4 h', 'failed')";
    stack.execute(earlier).await;
    stack.dispatcher.retention = Some(std::time::Duration::from_mins(1));
    stack.dispatch().await;
    stack.counts(0, "calls WHERE tool = 'told'").await;
    assert_eq!(stack.get(untold).await.state, CallState::Succeeded);
    stack.execute("DROP TRIGGER no_deliveries ON calls").await;
    receiver.arrived(1).await;
    delivered(&stack, 1).await;
    stack.finish().await;
}

/// The transaction takes the time of the end, and becomes visible when the look at recent ends is long past it.
#[tokio::test]
async fn an_end_that_becomes_visible_late_is_not_missed() {
    let (stack, receiver) = start([Reply::status(200)]).await;
    subscribe(&stack, &receiver, &[WebhookEvent::CallCancelled]).await;
    // Its tool is known and nobody serves it, so it waits.
    let idle = "INSERT INTO tools (name, spec, registered_by) VALUES ('idle', '{\"name\": \"idle\"}', 'w-1')";
    stack.execute(idle).await;
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
    let began: String = stack.value("SELECT clock_timestamp()::text").await;
    let passed = format!("SELECT clock_timestamp() > '{began}'::timestamptz + interval '7 s'");
    stack.holds("recent ends are looked at from later on", &passed).await;
    late.commit().await.unwrap();
    let request = receiver.arrived(1).await;
    let posted: Value = serde_json::from_slice(&request.body).unwrap();
    assert_eq!((&posted["type"], &posted["data"]["call"]), (&json!("call.cancelled"), &json!(call)));
    delivered(&stack, 1).await;
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
    stack.execute("DELETE FROM webhook_events").await;
    let store = stack.store(Purpose::Dispatch).await;
    let (progress, now) = (followed_until(&stack).await.unwrap(), store.now().await.unwrap());
    let stale = progress - chrono::TimeDelta::minutes(1);
    let span = Span { from: stale, until: now };
    assert!(!store.follow_webhooks(span).await.unwrap());
    assert!(!store.notice_webhooks(span, stale).await.unwrap());
    assert!(!store.set_webhook_progress(Some(stale), Some(now)).await.unwrap());
    assert_eq!((stack.count(EVENTS).await, followed_until(&stack).await), (0, Some(progress)));
    // Whoever knows the progress writes them: they were there to be found.
    assert!(store.notice_webhooks(span, progress).await.unwrap());
    assert_eq!((stack.count(EVENTS).await, followed_until(&stack).await), (1, Some(progress)));
    assert!(store.follow_webhooks(Span { from: progress, until: now }).await.unwrap());
    assert_eq!(followed_until(&stack).await, Some(now));
    stack.leaves_calls();
    stack.finish().await;
}

async fn followed_until(stack: &Stack) -> Option<DateTime<Utc>> {
    stack.value("SELECT followed_until FROM webhook_progress").await
}
