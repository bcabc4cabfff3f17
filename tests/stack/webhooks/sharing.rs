//! What one tenant does with its webhooks is in no other tenant's way.

use redial_proto::{Submission, SubmitResult, WebhookEvent, subjects::Verb};
use redial_store::{DeliveryLimits, PendingEvent, Purpose};
use redial_testkit::{Reply, ScriptedHttp, Stack, arguments, until};
use redial_tools::Tool;
use serde_json::json;

use super::fixture::{ANSWER, HERE, create, start, subscription};

/// Calls of the tenant acme that ended long ago, and for each of its webhooks an event of each of them.
async fn backlog(stack: &Stack, calls: i32) {
    sqlx::query(
        "WITH ended AS (
             INSERT INTO calls (id, submitted_at, deadline_at, timeout_ms, notify, tool, pool, effect, tenant, arguments,
                                published_at, attempt, state, finished_at, class, message)
             SELECT ('0000' || substr(gen_random_uuid()::text, 5))::uuid, t.at, t.at, 1000, false, 'echo', 'default', 'read', 'acme', '{}',
                    t.at, 0, 'cancelled', t.at, 'cancelled', 'it was cancelled'
             FROM (SELECT clock_timestamp() - interval '10 min' + n * interval '1 ms' AS at FROM generate_series(1, $1) n) t
             RETURNING tenant, id, finished_at
         )
         INSERT INTO webhook_events (tenant, webhook, subject, event, at)
         SELECT w.tenant, w.id, e.id, 'call.cancelled', e.finished_at FROM webhooks w JOIN ended e USING (tenant)",
    )
    .bind(calls)
    .execute(stack.db())
    .await
    .unwrap();
    // They ended before the webhooks were there, which nobody has to notice.
    sqlx::query("UPDATE webhooks SET since = clock_timestamp() - interval '1 h'").execute(stack.db()).await.unwrap();
}

async fn waiting(stack: &Stack, tenant: &str) -> i64 {
    sqlx::query_scalar("SELECT count(*) FROM webhook_events WHERE tenant = $1 AND delivery IS NULL")
        .bind(tenant)
        .fetch_one(stack.db())
        .await
        .unwrap()
}

/// A stack in which acme has webhooks to `/flood`, as many as wanted, and globex one to `/hook`.
async fn two_tenants(webhooks: usize) -> (Stack, ScriptedHttp) {
    let (stack, receiver) = start([Reply::status(200)]).await;
    receiver.script("/flood", [Reply::status(200)]);
    let (acme, globex) = (stack.user("acme", "ann").await, stack.user("globex", "bob").await);
    for _ in 0..webhooks {
        create(&acme, &subscription(&receiver.url("/flood"), &[WebhookEvent::CallCancelled])).await;
    }
    create(&globex, &subscription(&receiver.url("/hook"), &[WebhookEvent::AnyCall])).await;
    (stack, receiver)
}

/// So many events of acme wait that no other event would have its turn within minutes, if the oldest of all came first.
#[tokio::test]
async fn a_backlog_of_one_tenant_is_in_no_other_tenants_way() {
    let (mut stack, receiver) = two_tenants(20).await;
    stack.stop_dispatchers().await;
    backlog(&stack, 1_500).await;
    stack.dispatch().await;
    let globex = stack.user("globex", "bob").await;
    let call = Submission::new("echo", arguments(json!({})));
    let _: SubmitResult = globex.ask(Verb::CallSubmit, &call, ANSWER).await.unwrap();
    until("the other tenant has its event", async || {
        receiver.requests().iter().any(|request| request.path == "/hook").then_some(())
    })
    .await;
    let left = waiting(&stack, "acme").await;
    assert!(left > 10_000, "{left} events wait still");
    // The rest of the flood would take a minute. The dispatcher writes some of them at this moment, in another order: a deadlock may end this.
    until("they are gone", async || {
        sqlx::query("DELETE FROM webhook_events WHERE delivery IS NULL").execute(stack.db()).await.ok()
    })
    .await;
    stack.leaves_calls();
    stack.finish().await;
}

fn of<'a>(events: &'a [PendingEvent], tenant: &'a str) -> Vec<&'a PendingEvent> {
    events.iter().filter(|event| event.tenant == tenant).collect()
}

#[tokio::test]
async fn tenants_and_their_webhooks_take_turns_within_their_limits() {
    let (mut stack, _receiver) = two_tenants(3).await;
    stack.stop_dispatchers().await;
    backlog(&stack, 300).await;
    sqlx::query(
        "INSERT INTO webhook_events (tenant, webhook, subject, event, at)
         SELECT tenant, id, gen_random_uuid(), 'call.succeeded', clock_timestamp() FROM webhooks WHERE tenant = 'globex'",
    )
    .execute(stack.db())
    .await
    .unwrap();
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

/// All of its webhooks are silent, and more than a worker has slots: some are left to others from the beginning.
#[tokio::test]
async fn many_silent_receivers_of_one_tenant_leave_slots_to_others() {
    let mut stack = Stack::start_leasing(std::time::Duration::from_secs(15)).await;
    stack.work(vec![Tool::echo()]).await;
    stack.deliver_webhooks(HERE).await;
    let (silent, quick) = (ScriptedHttp::start().await, ScriptedHttp::start().await);
    silent.script("/hook", [Reply::status(200).after(std::time::Duration::from_hours(1))]);
    quick.script("/hook", [Reply::status(200)]);
    let (acme, globex) = (stack.user("acme", "ann").await, stack.user("globex", "bob").await);
    for _ in 0..80 {
        create(&acme, &subscription(&silent.url("/hook"), &[WebhookEvent::AnyCall])).await;
    }
    create(&globex, &subscription(&quick.url("/hook"), &[WebhookEvent::AnyCall])).await;
    let call = Submission::new("echo", arguments(json!({})));
    let _: SubmitResult = acme.ask(Verb::CallSubmit, &call, ANSWER).await.unwrap();
    silent.arrived(48).await;
    let _: SubmitResult = globex.ask(Verb::CallSubmit, &call, ANSWER).await.unwrap();
    quick.arrived(1).await;
    // A delivery waits for 15 s for an answer. After that the others have a turn.
    let requests = silent.requests();
    let early = requests.iter().filter(|one| one.at - requests[0].at < std::time::Duration::from_secs(8)).count();
    assert!(early <= 48, "{early} of 80 at once");
    stack.leaves_calls();
    stack.finish().await;
}
