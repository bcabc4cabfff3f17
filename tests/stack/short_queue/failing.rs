//! A part of feeding the queue that fails keeps no other from its turn.

use redial_test_stack::{Servers, Stack, unique_path};

use super::fixture::{LONG, busy, submit, tool};
use crate::mutations::{
    statements::{self, Replacement},
    wire::Hits,
};

/// What is listed in `broken` fails as if it took too long: looks at what waits, and searches for the calls of a tool.
const BREAKABLE: [Replacement; 2] = [
    (
        "AS i (tool, retry, tenant, since, n)",
        "AS i (tool, retry, tenant, since, n) CROSS JOIN LATERAL works('waiting') w",
    ),
    (
        "AS i (tool, retry, after, before, since)",
        "AS i (tool, retry, after, before, since) CROSS JOIN LATERAL works(i.tool) w",
    ),
];
const WORKS: &str = "CREATE TABLE broken (part text NOT NULL);
                     CREATE SEQUENCE failures;
                     CREATE FUNCTION works(name text) RETURNS int LANGUAGE plpgsql AS $$ BEGIN
                         IF EXISTS (SELECT FROM broken WHERE part = name) THEN
                             PERFORM nextval('failures');
                             RAISE EXCEPTION 'on purpose' USING ERRCODE = 'query_canceled';
                         END IF;
                         RETURN 1;
                     END $$";

#[tokio::test]
async fn calls_are_fed_while_other_parts_of_a_round_fail() {
    let mut stack = Stack::on(Servers::start().await).await;
    stack.execute(WORKS).await;
    let (_wire, through) =
        statements::before(stack.servers.database_url(), &BREAKABLE.map(|part| (part, Hits::default()))).await;
    let nats = stack.servers.nats_url().to_owned();
    stack.dispatch_between(&nats, &through).await;
    let release = unique_path("release");
    busy(&mut stack, "default", "good", &release).await;
    stack.work(vec![tool(&stack, "broken").pool("other")]).await;
    submit(&stack, "good", 10).await;
    // A search comes first: afterwards rounds may know for a moment where calls waited.
    for (part, published) in [("broken", 1), ("waiting", 2)] {
        let ready = |condition: &str| format!("calls WHERE tool = 'good' AND state = 'ready' AND {condition}");
        stack.counts(10, &ready(&format!("backlog_at IS NULL AND publish_no = {published}"))).await;
        stack.execute(&format!("INSERT INTO broken VALUES ('{part}')")).await;
        // As another dispatcher does.
        stack
            .execute(
                "UPDATE calls SET backlog_at = submitted_at, backlog_retry = false, wake_at = deadline_at
                 WHERE tool = 'good' AND state = 'ready'",
            )
            .await;
        stack.counts(10, &ready(&format!("backlog_at IS NULL AND publish_no = {}", published + 1))).await;
        stack.holds(&format!("{part} has failed"), "SELECT is_called FROM failures").await;
        stack.execute("TRUNCATE broken; ALTER SEQUENCE failures RESTART").await;
    }
    std::fs::write(&release, "").unwrap();
    stack.drained(LONG).await;
    stack.finish().await;
}
