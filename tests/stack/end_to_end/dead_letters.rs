//! How many dead letters of one sender are kept.

use redial_proto::subjects::Intake;
use redial_test_stack::Stack;

/// Waits until so many of these are on record.
async fn are(stack: &Stack, condition: &str, wanted: i64) {
    stack.counts(wanted, &format!("dead_letters WHERE {condition}")).await;
}

async fn insert(stack: &Stack, values: &str) {
    let into = "INSERT INTO dead_letters (source, tenant, identity, code, message, payload)";
    stack.execute(&format!("{into} {values}")).await;
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
        are(&stack, "source = 'intake' AND tenant = 'acme'", left).await;
    }
    are(&stack, "payload = 'garbage'", 2).await;
    are(&stack, "source = 'intake' AND tenant = 'acme' AND message ~ '^[0-9]+$' AND message::int <= 6002", 0).await;
    are(&stack, "identity = 'tools'", 300).await;
    stack.raw_nats().await.publish("redial.results.tools", b"garbage").await;
    are(&stack, "identity = 'tools'", 256).await;
    are(&stack, "identity = 'tools' AND payload = 'garbage'", 1).await;
    are(&stack, "tenant = 'globex' OR identity = 'acme'", 2).await;
    stack.wait_until_empty().await;
    stack.finish().await;
}
