//! No end is missed, and none is delivered twice.

use redial_proto::{CallState, WebhookEvent};
use redial_store::{Pass, Purpose};
use redial_test_stack::{Reply, until_within};
use serde_json::json;

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

/// The queue is no order of time, so a transaction of somebody else holds nothing up.
#[tokio::test]
async fn a_long_transaction_delays_no_delivery_and_no_statistics() {
    let (stack, receiver) = start([Reply::status(200)]).await;
    subscribe(&stack, &receiver, &[WebhookEvent::AnyCall]).await;
    let mut long = stack.db().begin().await.unwrap();
    sqlx::query("SELECT pg_current_xact_id()").execute(&mut *long).await.unwrap();
    stack.call("echo", json!({})).await;
    receiver.arrived(1).await;
    delivered(&stack, 1).await;
    stack.counts(0, EVENTS).await;
    stack.counts(0, "untold_ends").await;
    // The statistics are looked at every 15 s. The delivery is a call, too.
    let counted = async || (stack.count("stats WHERE kind = 'call'").await == 2).then_some(());
    until_within(std::time::Duration::from_mins(2), "both calls are counted", counted).await;
    stack.counts(0, "uncounted_calls").await;
    long.rollback().await.unwrap();
    stack.finish().await;
}

/// Several that believe to lead, as one that was stopped for a while does.
#[tokio::test]
async fn each_end_raises_one_event_however_many_follow_them() {
    let (mut stack, receiver) = start([Reply::status(200)]).await;
    subscribe(&stack, &receiver, &[WebhookEvent::AnyCall]).await;
    stack.stop_dispatchers().await;
    let ended = "
        INSERT INTO calls (id, submitted_at, deadline_at, timeout_ms, notify, tool, pool, effect, tenant, arguments, published_at,
                           finished_at, state, class, message)
        SELECT ('0000' || substr(gen_random_uuid()::text, 5))::uuid, now(), now(), 1, false, 'echo', 'default', 'read', 'default', '{}', now(),
               clock_timestamp(), 'cancelled', 'cancelled', 'it was cancelled'
        FROM generate_series(1, 300);
        INSERT INTO untold_ends SELECT id, false, finished_at FROM calls WHERE tool = 'echo'";
    stack.execute(ended).await;
    let store = stack.store(Purpose::Dispatch).await;
    let follow = async || {
        let (mut pass, mut taken) = (Pass::default(), 0);
        loop {
            let followed = store.follow_webhooks(&mut pass, 7).await.unwrap();
            taken += followed.ends;
            if followed.ends == 0 {
                return taken;
            }
        }
    };
    let (a, b, c) = tokio::join!(follow(), follow(), follow());
    assert_eq!((a + b + c, stack.count(EVENTS).await), (300, 300));
    stack.leaves_calls();
    stack.execute("DELETE FROM webhook_events").await;
    stack.finish().await;
}
