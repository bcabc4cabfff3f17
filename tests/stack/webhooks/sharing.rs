//! What one tenant does with its webhooks is in no other tenant's way.

use redial_proto::WebhookEvent;
use redial_store::{DeliveryLimits, PendingEvent, Purpose};
use redial_test_stack::{Reply, Stack};

use super::fixture::{create, start, subscription};

/// 300 calls of the tenant acme that ended long ago, and for each of its webhooks an event of each of them.
async fn backlog(stack: &Stack) {
    let backlog = "
         WITH ended AS (
             INSERT INTO calls (id, submitted_at, deadline_at, timeout_ms, notify, tool, pool, effect, tenant, arguments,
                                published_at, attempt, state, finished_at, class, message)
             SELECT ('0000' || substr(gen_random_uuid()::text, 5))::uuid, t.at, t.at, 1000, false, 'echo', 'default', 'read', 'acme', '{}',
                    t.at, 0, 'cancelled', t.at, 'cancelled', 'it was cancelled'
             FROM (SELECT clock_timestamp() - interval '10 min' + n * interval '1 ms' AS at FROM generate_series(1, 300) n) t
             RETURNING tenant, id, finished_at
         )
         INSERT INTO webhook_events (tenant, webhook, subject, event, at)
         SELECT w.tenant, w.id, e.id, 'call.cancelled', e.finished_at FROM webhooks w JOIN ended e USING (tenant)";
    stack.execute(backlog).await;
    // They ended before the webhooks were there, which nobody has to notice.
    stack.execute("UPDATE webhooks SET since = clock_timestamp() - interval '1 h'").await;
}

fn of<'a>(events: &'a [PendingEvent], tenant: &'a str) -> Vec<&'a PendingEvent> {
    events.iter().filter(|event| event.tenant == tenant).collect()
}

#[tokio::test]
async fn tenants_and_their_webhooks_take_turns_within_their_limits() {
    let (mut stack, receiver) = start([Reply::status(200)]).await;
    let (acme, globex) = (stack.user("acme", "ann").await, stack.user("globex", "bob").await);
    for _ in 0..3 {
        create(&acme, &subscription(&receiver.url("/hook"), &[WebhookEvent::CallCancelled])).await;
    }
    create(&globex, &subscription(&receiver.url("/hook"), &[WebhookEvent::AnyCall])).await;
    stack.stop_dispatchers().await;
    backlog(&stack).await;
    let event = "INSERT INTO webhook_events (tenant, webhook, subject, event, at)
                 SELECT tenant, id, gen_random_uuid(), 'call.succeeded', clock_timestamp() FROM webhooks
                 WHERE tenant = 'globex'";
    stack.execute(event).await;
    let store = stack.store(Purpose::Dispatch).await;
    let limits = DeliveryLimits { each: 64, of_webhook: 1_000, of_tenant: 200, total: 100 };
    let events = store.pending_events(limits).await.unwrap();
    assert_eq!((events.len(), of(&events, "acme").len()), (100, 99));
    let place = events.iter().position(|event| event.tenant == "globex").unwrap();
    assert!(place < 2, "{place}: its first event has its turn before the second one of the other tenant");
    let first: std::collections::HashSet<_> = of(&events, "acme")[..3].iter().map(|event| event.webhook).collect();
    assert_eq!(first.len(), 3, "each webhook of a tenant has its turn");
    // One webhook takes what its tenant may have under way. The others still have their part.
    let taken =
        "UPDATE webhook_events SET delivery = gen_random_uuid() WHERE tenant = 'acme' AND (webhook, subject) IN (
                     SELECT webhook, subject FROM webhook_events WHERE webhook = $1 LIMIT 200)";
    let webhook = of(&events, "acme")[0].webhook;
    sqlx::query(taken).bind(webhook).execute(stack.db()).await.unwrap();
    let events = store.pending_events(limits).await.unwrap();
    let part = usize::try_from(limits.of_tenant / redial_proto::webhook::MAX_WEBHOOKS).unwrap();
    assert_eq!((of(&events, "acme").len(), of(&events, "globex").len()), (2 * part, 1));
    assert!(of(&events, "acme").iter().all(|event| event.webhook != webhook));
    stack.verdict().await;
}
