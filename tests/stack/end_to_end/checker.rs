//! Mutation tests of the checker: each invariant is broken once, and the checker must name it.

use std::collections::BTreeSet;

use chrono::{TimeDelta, Utc};
use redial_proto::{CallId, CallState, TaskId, ToolEffect};
use redial_test_stack::{
    Claims, Ear, Entry, Evidence, Invariant, Stack, Subject, ToolEvent, canary, check, scripted_tool,
};
use serde_json::json;
use sqlx::{AssertSqlSafe, Connection, PgConnection};
use uuid::Uuid;

/// A change of the tables, where `{call}` is a call that succeeded in its second attempt, and the invariant that it breaks.
const CALL_MUTATIONS: [(&str, Invariant); 16] = [
    (
        "DELETE FROM attempts WHERE call_id = '{call}'; DELETE FROM calls WHERE id = '{call}'",
        Invariant::AcknowledgedExists,
    ),
    ("UPDATE calls SET key = 'another' WHERE id = '{call}'", Invariant::AcknowledgedExists),
    (
        "UPDATE calls SET state = 'ready', wake_at = now(), finished_at = NULL WHERE id = '{call}'",
        Invariant::EveryCallEnds,
    ),
    ("DELETE FROM attempts WHERE call_id = '{call}' AND attempt = 1", Invariant::AttemptsWithoutGaps),
    (r#"UPDATE calls SET retry = '{"max_attempts":1}' WHERE id = '{call}'"#, Invariant::AttemptsWithinMax),
    ("UPDATE calls SET state = 'failed' WHERE id = '{call}'", Invariant::OneOutcome),
    ("UPDATE attempts SET class = NULL, output = '1' WHERE call_id = '{call}' AND attempt = 1", Invariant::OneOutcome),
    ("UPDATE attempts SET output = NULL WHERE call_id = '{call}' AND attempt = 2", Invariant::SuccessHasOutput),
    (
        "UPDATE attempts SET ended_at = started_at - interval '1 ms' WHERE call_id = '{call}' AND attempt = 2",
        Invariant::LeasesApart,
    ),
    ("UPDATE attempts SET class = 'lost' WHERE call_id = '{call}' AND attempt = 1", Invariant::NoAttemptLostToOutage),
    (
        "UPDATE attempts SET retry_at = now() + interval '1 min' WHERE call_id = '{call}' AND attempt = 1",
        Invariant::RetriesWhenDue,
    ),
    // The other call of the fixture failed without a retry.
    (
        r#"UPDATE calls SET task_id = '{call}', turn = 1, call_index = 1 WHERE class = 'auth';
           UPDATE calls SET task_id = '{call}', turn = 2, call_index = 1, arguments = '{"fail" : "auth"}', submitted_at = now()
           WHERE id = '{call}'"#,
        Invariant::FailuresRemembered,
    ),
    // The call is of the tenant `default`.
    ("UPDATE calls SET arguments = '{\"a\":\"canary-of-acme\"}' WHERE id = '{call}'", Invariant::TenantsApart),
    (
        "UPDATE attempts SET output = '\"canary-of-acme\"' WHERE call_id = '{call}' AND attempt = 2",
        Invariant::TenantsApart,
    ),
    (
        "INSERT INTO late_reports (call_id, attempt, worker, output) VALUES ('{call}', 1, 'w', '\"canary-of-acme\"')",
        Invariant::TenantsApart,
    ),
    (
        "INSERT INTO tasks (id, tenant, conversation, model, language, spec, input, state, submitted_at, started_at,
                            finished_at, code)
         VALUES (gen_random_uuid(), 'acme', 'c', 'm', 'en', '{}', 'go', 'succeeded', now(), now(), now(), 'answered');
         UPDATE calls SET task_id = (SELECT id FROM tasks), turn = 1, call_index = 1 WHERE id = '{call}'",
        Invariant::TenantsApart,
    ),
];

/// An ended task with two calls and their answers, after another task of its conversation.
const TASK: &str = r#"
    INSERT INTO tasks (id, tenant, conversation, model, language, spec, input, state, submitted_at, started_at,
                       finished_at, code, last_step)
    VALUES ('{call}', 't', 'c', 'm', 'en', '{}', 'go', 'succeeded', now(), now(), now(), 'answered', 2),
           ('00000000-0000-0000-0000-000000000001', 't', 'c', 'm', 'en', '{}', 'before', 'succeeded', now(), now(), now(),
            'answered', 0);
    INSERT INTO task_steps (task_id, n, at, input, decisions)
    VALUES ('{call}', 1, now(), '{}', '[]'), ('{call}', 2, now(), '{}', '[]');
    INSERT INTO messages (tenant, conversation, seq, task_id, at, role, content, calls, call_id) VALUES
        ('t', 'c', 1, '{call}', now(), 'user', 'go', NULL, NULL),
        ('t', 'c', 2, '{call}', now(), 'assistant', '',
         '[{"id":"a","tool":"x","arguments":"{}"},{"id":"b","tool":"x","arguments":"{}"}]', NULL),
        ('t', 'c', 3, '{call}', now(), 'tool', '1', NULL, 'a'),
        ('t', 'c', 4, '{call}', now(), 'tool', '2', NULL, 'b'),
        ('t', 'c', 5, '{call}', now(), 'assistant', 'done', NULL, NULL);
    ALTER TABLE tasks DISABLE TRIGGER USER;"#;

/// A change of that task, and the invariant that it breaks.
const TASK_MUTATIONS: [(&str, Option<Invariant>); 15] = [
    ("", None),
    (
        "UPDATE tasks SET state = 'running', finished_at = NULL, code = NULL WHERE id = '{call}'",
        Some(Invariant::EveryTaskEnds),
    ),
    ("DELETE FROM task_steps WHERE task_id = '{call}' AND n = 1", Some(Invariant::StepsWithoutGaps)),
    ("UPDATE tasks SET finished_at = now() + interval '1 s' WHERE id <> '{call}'", Some(Invariant::OneTaskAtATime)),
    ("DELETE FROM messages WHERE task_id = '{call}' AND seq = 1", Some(Invariant::MessagesWithoutGaps)),
    ("DELETE FROM messages WHERE task_id = '{call}' AND seq = 4", Some(Invariant::OneAnswerPerCall)),
    ("DELETE FROM messages WHERE task_id = '{call}' AND seq >= 4", Some(Invariant::OneAnswerPerCall)),
    ("UPDATE tasks SET answer = 'canary-of-t' WHERE id = '{call}'", None),
    ("UPDATE tasks SET answer = 'a canary-of-acme.' WHERE id = '{call}'", Some(Invariant::TenantsApart)),
    ("UPDATE messages SET content = 'canary-of-tx' WHERE seq = 5", Some(Invariant::TenantsApart)),
    ("UPDATE messages SET tenant = 'acme'", Some(Invariant::TenantsApart)),
    (
        r#"UPDATE task_steps SET input = '{"a":"canary-of-t canary-of-acme"}' WHERE n = 2"#,
        Some(Invariant::TenantsApart),
    ),
    (
        "INSERT INTO task_inbox (task_id, kind, message) VALUES ('{call}', 'cancel', 'canary-of-acme')",
        Some(Invariant::TenantsApart),
    ),
    (
        "INSERT INTO dead_letters (source, code, message, payload, tenant)
         VALUES ('intake', 'c', 'm', convert_to('\\ canary-of-acme', 'UTF8'), 't')",
        Some(Invariant::TenantsApart),
    ),
    (
        "INSERT INTO actions (tenant, user_name, role, door, verb, targets, target_count)
         VALUES ('t', 'u', 'operate', 'nats', 'calls.redrive', '{canary-of-acme}', 1)",
        Some(Invariant::TenantsApart),
    ),
];

/// A change of the recorded guarantees and executions, and the invariant that it breaks on unchanged tables.
type ClaimsMutation = (fn(&mut Claims, CallId), Invariant);

const CLAIMS_MUTATIONS: [ClaimsMutation; 11] = [
    (|claims, _| hears(claims, Some("globex")), Invariant::TenantsApart),
    (|claims, _| hears(claims, None), Invariant::TenantsApart),
    (|claims, _| claims.tasks.push(TaskId::generate()), Invariant::AcknowledgedExists),
    (|claims, _| claims.intake_keys.push("lost".to_owned()), Invariant::AcknowledgedExists),
    (|claims, call| again(claims, call, 2, ToolEvent::Effect), Invariant::EffectsWithinAttempts),
    (|claims, call| again(claims, call, 1, ToolEvent::Effect), Invariant::UnsafeOnce),
    (|claims, call| claims.cancelled.push((call, Utc::now() - TimeDelta::hours(1))), Invariant::NothingAfterCancel),
    (
        |claims, call| {
            claims.cancelled.push((call, Utc::now()));
            again(claims, call, 2, ToolEvent::Started);
        },
        Invariant::NothingAfterCancel,
    ),
    (|claims, call| overlapping(claims, call), Invariant::LeasesApart),
    (
        |claims, call| claims.tool_events.retain(|entry| entry.call != call || entry.event != ToolEvent::Effect),
        Invariant::EffectsWithinAttempts,
    ),
    (
        |claims, call| {
            let first = claims.tool_events.iter_mut().find(|entry| entry.call == call).unwrap();
            "another".clone_into(&mut first.key);
        },
        Invariant::OneKey,
    ),
];

fn again(claims: &mut Claims, call: CallId, attempt: u32, event: ToolEvent) {
    let at = Utc::now() + TimeDelta::seconds(1);
    claims.tool_events.push(Entry { at, event, call, attempt, key: call.to_string(), execution: Uuid::nil() });
}

/// Somebody received a message of the tenant `acme`.
fn hears(claims: &mut Claims, tenant: Option<&str>) {
    let ear = Ear::new("somebody", tenant);
    ear.hear("an inbox", format!("{{\"output\":\"{}\"}}", canary("acme")).as_bytes());
    claims.heard.push(ear.heard());
}

/// A second execution of the last attempt, within the first one.
fn overlapping(claims: &mut Claims, call: CallId) {
    let of_call = |entry: &&Entry| entry.call == call && entry.attempt == 2 && entry.event != ToolEvent::Effect;
    let first: Vec<Entry> = claims.tool_events.iter().filter(of_call).cloned().collect();
    claims.tool_events.extend(first.into_iter().map(|entry| Entry { execution: Uuid::nil(), ..entry }));
}

fn named(evidence: &Evidence, claims: &Claims, call: Option<CallId>) -> BTreeSet<Invariant> {
    let violations = check(evidence, claims).into_iter();
    let about = violations.filter(|violation| call.is_none_or(|call| violation.about == Subject::Call(call)));
    about.map(|violation| violation.invariant).collect()
}

/// An unsafe call that succeeded in its second attempt; the first one had no effect.
async fn fixture() -> (Stack, CallId) {
    let mut stack = Stack::start().await;
    stack.work(vec![scripted_tool("tool", ToolEffect::Unsafe, &stack.ledger)]).await;
    let call = stack.call("tool", json!({"fail": "unavailable", "times": 1, "harmless": true})).await;
    assert_eq!(stack.ended(call).await.state, CallState::Succeeded);
    stack.call("tool", json!({"fail": "auth"})).await;
    stack.drained(std::time::Duration::from_secs(10)).await;
    stack.stop_workers().await;
    stack.stop_dispatchers().await;
    (stack, call)
}

/// The evidence with this change of the tables, which is rolled back.
async fn with_mutation(db: &mut PgConnection, mutation: &str, call: CallId) -> Evidence {
    let mut transaction = db.begin().await.unwrap();
    let protection = "ALTER TABLE calls DISABLE TRIGGER ended_calls_never_change, DROP CONSTRAINT calls_check,
                      DROP CONSTRAINT calls_check1; ALTER TABLE attempts DROP CONSTRAINT attempts_check;";
    let statements = format!("{protection} {}", mutation.replace("{call}", &call.to_string()));
    sqlx::raw_sql(AssertSqlSafe(statements)).execute(&mut *transaction).await.unwrap();
    let evidence = Evidence::read(&mut transaction).await;
    transaction.rollback().await.unwrap();
    evidence
}

#[tokio::test]
async fn every_mutation_is_found() {
    let (stack, call) = fixture().await;
    let claims = stack.claims_made();
    let clean = stack.evidence().await;
    assert_eq!(named(&clean, &claims, None), BTreeSet::new());
    let mut broken = BTreeSet::new();
    let mut db = stack.db().acquire().await.unwrap();
    for (mutation, invariant) in CALL_MUTATIONS {
        let found = named(&with_mutation(&mut db, mutation, call).await, &claims, Some(call));
        assert!(found.contains(&invariant), "{mutation} breaks {invariant:?}, found was {found:?}");
        broken.insert(invariant);
    }
    for (mutation, invariant) in TASK_MUTATIONS {
        let found = named(&with_mutation(&mut db, &format!("{TASK}{mutation}"), call).await, &claims, None);
        assert!(
            invariant.map_or(found.is_empty(), |wanted| found.contains(&wanted)),
            "{mutation}: found was {found:?}"
        );
        broken.extend(invariant);
    }
    for (n, (mutation, invariant)) in CLAIMS_MUTATIONS.into_iter().enumerate() {
        let mut claims = claims.clone();
        mutation(&mut claims, call);
        let found = named(&clean, &claims, None);
        assert!(found.contains(&invariant), "mutation {n} breaks {invariant:?}, found was {found:?}");
        broken.insert(invariant);
    }
    assert_eq!(broken, Invariant::ALL.iter().copied().collect(), "every invariant was broken once");
    drop(db);
    stack.finish().await;
}

#[tokio::test]
#[should_panic(expected = "violations of {EveryCallEnds}")]
async fn a_test_that_leaves_a_running_call_fails() {
    let mut stack = Stack::start().await;
    stack.work(vec![scripted_tool("tool", ToolEffect::Read, &stack.ledger)]).await;
    stack.call("tool", json!({"hold": "/nonexistent"})).await;
    stack.ledger.reaches(ToolEvent::Started, 1).await;
    stack.finish().await;
}

#[tokio::test]
#[should_panic(expected = "messages are left on JOBS")]
async fn a_test_that_leaves_a_job_fails() {
    let stack = Stack::start().await;
    let spec = redial_proto::ToolSpec::named("tool");
    super::by_hand::Hand::new(&stack, vec![spec]).await;
    let call = stack.call("tool", json!({})).await;
    stack.cancel(call).await;
    // Nobody takes it.
    let left = json!({"call": call, "attempt": 1, "tool": "tool"});
    stack.queue().put("redial.jobs.nobody.tool", &left).await.unwrap();
    stack.finish().await;
}

#[tokio::test]
#[should_panic(expected = "the test did not finish its stack")]
async fn a_test_that_drops_its_stack_fails() {
    drop(Stack::start().await);
}
