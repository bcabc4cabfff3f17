//! The checker names what does not hold. The mutations of a running system violate most invariants; here tables and claims are
//! changed so that the others are violated, too.

use std::collections::BTreeSet;

use redial_proto::{CallId, CallState, ToolEffect};
use redial_test_stack::{Claims, Ear, Evidence, Invariant, Stack, canary, check};
use serde_json::json;
use sqlx::{AssertSqlSafe, Connection, PgConnection};

use crate::mutations::violated;

/// A change of the tables, where `{call}` is a call that succeeded in its second attempt, and the invariant that it violates, if it
/// violates one.
const CHANGES: [(&str, Option<Invariant>); 7] = [
    ("UPDATE calls SET state = 'failed' WHERE id = '{call}'", Some(Invariant::OneOutcome)),
    ("UPDATE attempts SET output = NULL WHERE call_id = '{call}' AND attempt = 2", Some(Invariant::SuccessHasOutput)),
    (
        "UPDATE attempts SET class = 'lost' WHERE call_id = '{call}' AND attempt = 1",
        Some(Invariant::NoAttemptLostToOutage),
    ),
    (
        "INSERT INTO tasks (id, tenant, conversation, model, language, spec, input, state, submitted_at, started_at,
                            finished_at, code)
         VALUES ('{call}', 't', 'c', 'm', 'en', '{}', 'go', 'succeeded', now(), now(), now(), 'answered');
         INSERT INTO messages (tenant, conversation, seq, task_id, at, role, content)
         VALUES ('t', 'c', 2, '{call}', now(), 'user', 'go')",
        Some(Invariant::MessagesWithoutGaps),
    ),
    // It is of the tenant `default`.
    (r#"UPDATE calls SET arguments = '{"a":"canary-of-default"}' WHERE id = '{call}'"#, None),
    (r#"UPDATE calls SET arguments = '{"a":"canary-of-defaultx"}' WHERE id = '{call}'"#, Some(Invariant::TenantsApart)),
    (
        "INSERT INTO late_reports (call_id, attempt, worker, output) VALUES ('{call}', 1, 'w', '\"a canary-of-acme.\"')",
        Some(Invariant::TenantsApart),
    ),
];

/// An unsafe call that succeeded in its second attempt; the first one had no effect.
async fn fixture() -> (Stack, CallId) {
    let mut stack = Stack::with_tool(ToolEffect::Unsafe).await;
    let call = stack.call("tool", json!({"fail": "unavailable", "times": 1, "harmless": true})).await;
    assert_eq!(stack.ended(call).await.state, CallState::Succeeded);
    stack.stop_workers().await;
    stack.stop_dispatchers().await;
    (stack, call)
}

/// The evidence with this change of the tables, which is rolled back.
async fn with_change(db: &mut PgConnection, change: &str, call: CallId) -> Evidence {
    let mut transaction = db.begin().await.unwrap();
    let protection = "ALTER TABLE calls DISABLE TRIGGER ended_calls_never_change, DROP CONSTRAINT calls_check,
                      DROP CONSTRAINT calls_check1; ALTER TABLE attempts DROP CONSTRAINT attempts_check;";
    let statements = format!("{protection} {}", change.replace("{call}", &call.to_string()));
    sqlx::raw_sql(AssertSqlSafe(statements)).execute(&mut *transaction).await.unwrap();
    let evidence = Evidence::read(&mut transaction).await;
    transaction.rollback().await.unwrap();
    evidence
}

fn named(evidence: &Evidence, claims: &Claims) -> BTreeSet<Invariant> {
    check(evidence, claims).into_iter().map(|violation| violation.invariant).collect()
}

#[tokio::test]
async fn every_invariant_is_violated_somewhere_and_named() {
    let (stack, call) = fixture().await;
    let mut claims = stack.claims_made();
    let clean = stack.evidence().await;
    assert_eq!(named(&clean, &claims), BTreeSet::new());
    let mut found: BTreeSet<Invariant> = violated().collect();
    let mut db = stack.db().acquire().await.unwrap();
    for (change, invariant) in CHANGES {
        let named = named(&with_change(&mut db, change, call).await, &claims);
        assert!(invariant.map_or(named.is_empty(), |one| named.contains(&one)), "{change}: found was {named:?}");
        found.extend(invariant);
    }
    let ear = Ear::new("somebody of another tenant", Some("globex"));
    ear.hear("an inbox", format!("{{\"output\":\"{}\"}}", canary("acme")).as_bytes());
    let heard = Claims { heard: vec![ear.heard()], ..claims.clone() };
    assert_eq!(named(&clean, &heard), BTreeSet::from([Invariant::TenantsApart]));
    "another".clone_into(&mut claims.tool_events[0].key);
    assert_eq!(named(&clean, &claims), BTreeSet::from([Invariant::OneKey]));
    found.insert(Invariant::OneKey);
    assert_eq!(found, Invariant::ALL.iter().copied().collect());
    drop(db);
    stack.finish().await;
}
