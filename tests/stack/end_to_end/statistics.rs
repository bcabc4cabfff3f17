//! Dispatchers keep the statistics, and retention waits for them.

use std::time::Duration;

use redial_dispatcher::DispatcherConfig;
use redial_proto::CallId;
use redial_queue::QueueConfig;
use redial_test_stack::{Servers, Stack, until, until_within};
use sqlx::AssertSqlSafe;
use tokio_util::sync::CancellationToken;

/// A call of a tool of this name that ended this long ago.
async fn ended(stack: &Stack, tool: &str, ago: &str) {
    let age = Duration::from_hours(1).as_millis();
    // Ids begin with the time of submission: an hour ago.
    let id = uuid::Uuid::from_u128(CallId::generate().0.as_u128() - (age << 80));
    let call = format!(
        "INSERT INTO calls (id, submitted_at, deadline_at, timeout_ms, notify, tool, pool, effect, tenant, arguments,
                            finished_at, state, class)
         VALUES ('{id}', now() - interval '1 h', now(), 1, false, '{tool}', 'default', 'read', 'default', '{{}}',
                 now() - interval '{ago}', 'cancelled', 'cancelled')"
    );
    sqlx::raw_sql(AssertSqlSafe(call)).execute(stack.db()).await.unwrap();
}

async fn names(stack: &Stack, statement: &'static str) -> Vec<String> {
    sqlx::query_scalar(statement).fetch_all(stack.db()).await.unwrap()
}

#[tokio::test]
async fn retention_keeps_calls_until_they_are_counted() {
    let stack = Stack::on(Servers::start().await).await;
    ended(&stack, "counted", "30 min").await;
    ended(&stack, "not_counted", "10 min").await;
    sqlx::raw_sql("UPDATE stats_progress SET rolled_until = now() - interval '20 min'")
        .execute(stack.db())
        .await
        .unwrap();
    // Nothing is counted before the call is deleted: a dispatcher does both at once, and passes over what is locked.
    let mut lock = stack.db().begin().await.unwrap();
    sqlx::query("SELECT rolled_until FROM stats_progress FOR UPDATE").execute(&mut *lock).await.unwrap();
    let queue = QueueConfig { url: stack.servers.nats_url().to_owned(), ..QueueConfig::default() };
    let retention = Some(Duration::from_mins(1));
    let config = DispatcherConfig { retention, ..DispatcherConfig::new(queue, stack.servers.database_url()) };
    let shutdown = CancellationToken::new();
    let running = tokio::spawn(redial_dispatcher::run(config, shutdown.clone(), || ()));
    let kept = "SELECT tool FROM calls";
    until("a call is deleted", async || (names(&stack, kept).await.len() < 2).then_some(())).await;
    assert_eq!(names(&stack, kept).await, ["not_counted"]);
    lock.rollback().await.unwrap();
    // The statistics are looked at every 15 s.
    until_within(Duration::from_mins(2), "the other one is counted", async || {
        (names(&stack, "SELECT tool FROM call_stats").await == ["not_counted"]).then_some(())
    })
    .await;
    shutdown.cancel();
    running.await.unwrap().unwrap();
    stack.finish().await;
}
