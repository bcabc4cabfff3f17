//! What nobody reads any more is deleted, and nothing else; and what was not counted yet is kept.

use std::time::Duration;

use redial_proto::CallId;
use redial_test_stack::{Servers, Stack, until, until_within};
use uuid::Uuid;

#[tokio::test]
async fn without_a_retention_only_leftovers_are_deleted() {
    let mut stack = Stack::on(Servers::start().await).await;
    let rows = "
        INSERT INTO workers (id, version, tools, started_at, slots, last_seen_at)
        SELECT name, '1', '{}', now(), 1, now() - age
        FROM (VALUES (interval '25 hours', 'gone'), (interval '23 hours', 'silent')) v (age, name);
        INSERT INTO late_reports (call_id, attempt, worker, received_at, output)
        SELECT gen_random_uuid(), 1, name, now() - age, '1'
        FROM (VALUES (interval '31 days', 'old'), (interval '29 days', 'young')) v (age, name);
        INSERT INTO dead_letters (source, received_at, code, message, payload)
        SELECT 'intake', received_at, 'invalid_message', worker, '' FROM late_reports;
        INSERT INTO actions (at, tenant, user_name, role, door, verb, targets, target_count, result, changed)
        SELECT now() - age, 'default', name, 'operate', 'nats', 'calls.redrive', '{x}', 1, result, 1
        FROM (VALUES (interval '367 days', 'old', 'done'), (interval '365 days', 'kept', 'done'),
                     (interval '31 days', 'idle', 'forbidden'), (interval '29 days', 'new', 'forbidden')) v (age, name, result)";
    stack.execute(rows).await;
    stack.dispatch().await;
    until("old rows are deleted", async || {
        let workers = stack.values::<String>("SELECT id FROM workers").await;
        let reports = stack.values::<String>("SELECT worker FROM late_reports").await;
        let letters = stack.values::<String>("SELECT message FROM dead_letters").await;
        let actions = stack.values::<String>("SELECT user_name FROM actions ORDER BY id").await;
        (workers == ["silent"] && reports == ["young"] && letters == ["young"] && actions == ["kept", "new"])
            .then_some(())
    })
    .await;
    stack.execute("DELETE FROM late_reports").await;
    stack.finish().await;
}

#[tokio::test]
async fn an_error_in_tasks_does_not_keep_calls_from_being_deleted() {
    let mut stack = Stack::on(Servers::start().await).await;
    // Its id says that it was submitted long ago.
    let old = Uuid::from_u128(7 << 76 | 1);
    let rows = format!(
        "INSERT INTO calls (id, submitted_at, deadline_at, timeout_ms, notify, tool, pool, effect, tenant, arguments,
                            published_at, finished_at, state)
         VALUES ('{old}', 'epoch', 'epoch', 1, false, 't', 'default', 'read', 'default', '{{}}', 'epoch', 'epoch', 'failed');
         INSERT INTO tasks (id, tenant, conversation, model, language, spec, input, state, submitted_at, finished_at, code)
         VALUES ('{old}', 'default', 'c', 'm', 'en', '{{}}', 'i', 'failed', 'epoch', 'epoch', 'failed');
         CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'on purpose'; END $$;
         CREATE TRIGGER kept BEFORE DELETE ON tasks FOR EACH ROW EXECUTE FUNCTION refuse()"
    );
    stack.execute(&rows).await;
    stack.dispatcher.retention = Some(Duration::from_mins(1));
    stack.dispatch().await;
    stack.counts(0, "calls").await;
    stack.stop_dispatchers().await;
    assert_eq!(stack.values::<Uuid>("SELECT id FROM tasks").await, [old]);
    stack.execute("DROP TRIGGER kept ON tasks; DELETE FROM tasks").await;
    stack.finish().await;
}

/// A call of a tool of this name that ended this long ago.
async fn ended(stack: &Stack, tool: &str, ago: &str) {
    let age = Duration::from_hours(1).as_millis();
    // Ids begin with the time of submission: an hour ago.
    let id = Uuid::from_u128(CallId::generate().0.as_u128() - (age << 80));
    let call = format!(
        "INSERT INTO calls (id, submitted_at, deadline_at, timeout_ms, notify, tool, pool, effect, tenant, arguments,
                            finished_at, state, class)
         VALUES ('{id}', now() - interval '1 h', now(), 1, false, '{tool}', 'default', 'read', 'default', '{{}}',
                 now() - interval '{ago}', 'cancelled', 'cancelled')"
    );
    stack.execute(&call).await;
}

#[tokio::test]
async fn retention_keeps_calls_until_they_are_counted() {
    let mut stack = Stack::on(Servers::start().await).await;
    ended(&stack, "counted", "30 min").await;
    ended(&stack, "not_counted", "10 min").await;
    let queued = "INSERT INTO uncounted_calls SELECT id, finished_at FROM calls WHERE tool = 'not_counted'";
    stack.execute(queued).await;
    // Nothing is counted before the call is deleted: a dispatcher does both at once, and passes over what is locked.
    let mut lock = stack.db().begin().await.unwrap();
    let locked = "SELECT pg_advisory_xact_lock(hashtextextended('statistics', 0))";
    sqlx::query(locked).execute(&mut *lock).await.unwrap();
    stack.dispatcher.retention = Some(Duration::from_mins(1));
    stack.dispatch().await;
    stack.holds("a call is deleted", "SELECT count(*) < 2 FROM calls").await;
    assert_eq!(stack.values::<String>("SELECT tool FROM calls").await, ["not_counted"]);
    lock.rollback().await.unwrap();
    // The statistics are looked at every 15 s.
    let counted = "stats WHERE kind = 'call' AND tool = 'not_counted'";
    let counted = async || (stack.count(counted).await == 1).then_some(());
    until_within(Duration::from_mins(2), "the other one is counted", counted).await;
    stack.finish().await;
}
