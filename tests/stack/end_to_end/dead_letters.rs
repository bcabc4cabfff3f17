//! Whose dead letters are, and how many of one sender are kept.

use redial_proto::{
    ToolSpec, UserRole,
    subjects::{Intake, intake},
};
use redial_test_stack::{Stack, until};
use serde_json::json;

use super::by_hand::Hand;

/// Waits until so many of these are on record.
async fn count(stack: &Stack, condition: &str, wanted: i64) {
    let question = format!("SELECT count(*) FROM dead_letters WHERE {condition}");
    until(&format!("{wanted} dead letters where {condition}"), async || {
        let found = sqlx::query_scalar::<_, i64>(sqlx::AssertSqlSafe(question.clone()));
        (found.fetch_one(stack.db()).await.unwrap() == wanted).then_some(())
    })
    .await;
}

async fn insert(stack: &Stack, values: &str) {
    let statement = format!("INSERT INTO dead_letters (source, tenant, identity, code, message, payload) {values}");
    sqlx::raw_sql(sqlx::AssertSqlSafe(statement)).execute(stack.db()).await.unwrap();
}

#[tokio::test]
async fn the_subject_says_whose_a_dead_letter_is() {
    let stack = Stack::start().await;
    let mut worker = Hand::new(&stack, vec![ToolSpec::named("read")]).await;
    let call = stack.call("read", json!({})).await;
    worker.granted().await;
    let acme = stack.user("acme", "alice").await;
    let mut nats = stack.raw_nats().await;
    let lie = json!({"tool": "read", "argument": 1, "tenant": "globex", "identity": "root"}).to_string();
    nats.publish(&intake(acme.tenant(), acme.user(), UserRole::Submit, Intake::Calls), lie.as_bytes()).await;
    nats.publish("redial.intake.calls", lie.as_bytes()).await;
    count(&stack, "source = 'intake' AND tenant = 'acme' AND identity IS NULL", 1).await;
    count(&stack, "source = 'intake' AND tenant IS NULL AND identity IS NULL", 1).await;
    nats.publish(&worker.results(), lie.as_bytes()).await;
    count(&stack, "source = 'results' AND tenant IS NULL AND identity = 'manual'", 1).await;
    // Whose call it is, the call on record tells.
    let odd = json!({"worker": worker.id, "reports": [{"call": call, "attempt": "first"}]});
    stack.queue().put(&worker.results(), &odd).await.unwrap();
    count(&stack, "source = 'results' AND tenant = 'default' AND identity = 'manual'", 1).await;
    worker.report(call, 1, Ok("1")).await;
    stack.finish().await;
}

/// Garbage must not fill the database, and must not displace what others sent.
#[tokio::test]
async fn the_newest_of_a_sender_are_kept() {
    let stack = Stack::start().await;
    let many = "SELECT 'intake', 'acme', NULL, 'invalid_message', n::text, '' FROM generate_series(1, 16000) n";
    insert(&stack, many).await;
    let large = "SELECT 'results', NULL, 'tools', 'invalid_message', n::text, convert_to(repeat('x', 1048576), 'UTF8')
                 FROM generate_series(1, 300) n";
    insert(&stack, large).await;
    insert(&stack, "VALUES ('intake', 'globex', NULL, 'x', 'x', 'x'), ('results', NULL, 'acme', 'x', 'x', 'x')").await;
    let acme = stack.user("acme", "alice").await;
    // Each statement deletes a bounded number.
    for left in [11_001, 10_000] {
        acme.put_intake(Intake::Calls, b"garbage".as_slice().into(), None).await.unwrap();
        count(&stack, "source = 'intake' AND tenant = 'acme'", left).await;
    }
    count(&stack, "payload = 'garbage'", 2).await;
    count(&stack, "source = 'intake' AND tenant = 'acme' AND message ~ '^[0-9]+$' AND message::int <= 6002", 0).await;
    count(&stack, "identity = 'tools'", 300).await;
    stack.raw_nats().await.publish("redial.results.tools", b"garbage").await;
    count(&stack, "identity = 'tools'", 256).await;
    count(&stack, "identity = 'tools' AND payload = 'garbage'", 1).await;
    count(&stack, "tenant = 'globex' OR identity = 'acme'", 2).await;
    stack.wait_until_empty().await;
    stack.finish().await;
}
