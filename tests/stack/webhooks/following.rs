//! No end is missed, and none is delivered twice.

use chrono::{DateTime, Utc};
use redial_proto::{CallState, Submission, WebhookEvent};
use redial_store::{Purpose, Span};
use redial_test_stack::{Reply, Stack, arguments, until};
use serde_json::{Value, json};

use super::fixture::{delivered, deliveries, events, start, subscribe};

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

async fn followed_until(stack: &Stack) -> Option<DateTime<Utc>> {
    sqlx::query_scalar("SELECT followed_until FROM webhook_progress").fetch_one(stack.db()).await.unwrap()
}
