//! Erased means gone: a word that was put into every place that a conversation reaches is in no column of any table afterwards,
//! it does not come back, and nothing of others is missing.

use std::{collections::BTreeMap, time::Duration};

use redial_proto::{
    AgentSpec, CallId, ClaimId, Code, Forget, ForgetCounts, Report, ReportBatch, Submission, SubmitResult, TaskId,
    TaskResult, TaskState, TaskSubmission, UserRole, WorkerId, WorkerIdentity,
    subjects::{self, Intake, Verb},
};
use redial_queue::Queue;
use redial_test_stack::{Reply, ScriptedHttp, Stack, arguments, until};
use serde_json::{json, value::RawValue};
use uuid::Uuid;

use super::fixture::{Fixture, agent, book_tool, calls, http_tools, says, task};
use crate::end_to_end::erasing::{forget, of};

const CANARY: &str = "CANARY7f3a";
const ANSWER: Duration = Duration::from_secs(30);

/// The tables in which a text is, each with the columns that hold it.
pub(crate) async fn found(stack: &Stack, text: &str) -> BTreeMap<String, Vec<String>> {
    let columns = "SELECT table_name::text, column_name::text, data_type::text FROM information_schema.columns
                   JOIN information_schema.tables USING (table_schema, table_name)
                   WHERE table_schema = 'public' AND table_type = 'BASE TABLE'
                       AND table_name NOT IN (SELECT relname FROM pg_class WHERE relispartition)";
    let columns: Vec<(String, String, String)> = stack.rows(columns).await;
    assert!(columns.len() > 100);
    let mut found = BTreeMap::<String, Vec<String>>::new();
    for (table, column, kind) in columns {
        let value = if kind == "bytea" { format!("encode({column}, 'escape')") } else { format!("{column}::text") };
        if stack.count(&format!("{table} WHERE {value} LIKE '%{text}%'")).await > 0 {
            found.entry(table).or_default().push(column);
        }
    }
    found
}

/// The rows of every table but for those that change by themselves.
async fn rows(stack: &Stack) -> BTreeMap<String, i64> {
    let tables = "SELECT table_name::text FROM information_schema.tables
                  WHERE table_schema = 'public' AND table_type = 'BASE TABLE'
                      AND table_name NOT IN ('task_inbox', 'tombstones', 'actions', 'retry_budgets', 'stats',
                                             'uncounted_calls', 'untold_ends')";
    let mut rows = BTreeMap::new();
    for table in stack.values::<String>(tables).await {
        let count = stack.count(&table).await;
        rows.insert(table, count);
    }
    rows
}

/// Submits a task of which the checker does not learn: it will not be on record.
async fn submit_task(user: &Queue, submission: &TaskSubmission) -> TaskId {
    let result: TaskResult = user.ask_as(submission.role(), Verb::TaskSubmit, submission, ANSWER).await.unwrap();
    result.task.unwrap_or_else(|| panic!("{result:?}"))
}

async fn submit(user: &Queue, submission: &Submission) -> CallId {
    let result: SubmitResult = user.ask(Verb::CallSubmit, submission, ANSWER).await.unwrap();
    result.call.unwrap_or_else(|| panic!("{result:?}"))
}

/// Everything that a conversation can leave behind, with this text in each place where one has a say.
async fn fill(world: &World, client: &Queue, conversation: &str, text: &str) -> (TaskId, CallId) {
    let World { fixture, broken } = world;
    let stack = &fixture.stack;
    let (unknown, wrong) = (format!("no_{text}"), format!(r#"{{"departure_city":"{text}","seats":99}}"#));
    let damaged = format!(r#"{{"departureCity":"{text}","seats":"2",}}"#);
    fixture.small([
        calls("", &[("book", wrong), (&unknown, "{}".to_owned())]),
        calls("", &[("book", damaged), ("broken", format!(r#"{{"x":"{text}"}}"#))]),
        says(&format!("Booked from {text}.")),
    ]);
    broken.script("/broken", [Reply::status(503).body(text), Reply::status(409).body(text)]);
    let agent = AgentSpec { system: format!("You book trips for {text}."), ..agent() };
    let named = Some(conversation.to_owned());
    let submission = TaskSubmission {
        conversation: named.clone(),
        key: Some(format!("key-{text}")),
        ..task(&format!("A trip for {text}."), agent)
    };
    let talk = submit_task(client, &submission).await;
    stack.task_is(talk, |state| state == TaskState::Succeeded).await;
    let bare = |tool: &str, key: &str| Submission {
        conversation: named.clone(),
        key: Some(format!("{key}-{text}")),
        ..Submission::new(tool, arguments(json!({"x": text})))
    };
    broken.script("/broken", [Reply::status(409).body(text)]);
    let call = submit(client, &bare("broken", "bare")).await;
    stack.wait_for_end(call).await;
    submit(client, &bare(&format!("unknown_{text}"), "refused")).await;
    report(stack, call, text).await;
    let mut nats = stack.raw_nats().await;
    let intake = subjects::intake(client.tenant(), client.user(), UserRole::Submit, Intake::Calls);
    let odd = json!({"tool": "book", "argument": {"x": text}, "conversation": conversation});
    nats.publish(&intake, odd.to_string().as_bytes()).await;
    let cut = format!(r#"{{"tool":"book","conversation":"{conversation}","arguments":{{"x":"{text}"#);
    nats.publish(&intake, cut.as_bytes()).await;
    (talk, call)
}

/// A report that comes too late, and one that cannot be read.
async fn report(stack: &Stack, call: CallId, word: &str) {
    let identity = WorkerIdentity::of_name("late");
    let worker = WorkerId::generate(&identity);
    let mut notices = stack.queue().subscribe(&subjects::worker(&worker)).await.unwrap();
    let output = Some(RawValue::from_string(format!("{word:?}")).unwrap());
    let late = Report { call, attempt: 7, claim: ClaimId::generate(), duration_ms: 1, output, error: None };
    let reports = ReportBatch { worker, reports: vec![serde_json::value::to_raw_value(&late).unwrap()] };
    let results = subjects::results(&identity);
    stack.queue().put(&results, &reports).await.unwrap();
    let odd = json!({"worker": reports.worker, "reports": [{"call": call, "attempt": 1, "duration_ms": word, "output": word}]});
    stack.queue().put(&results, &odd).await.unwrap();
    let notice = tokio::time::timeout(ANSWER, notices.next()).await.unwrap();
    let ingested = serde_json::from_slice::<redial_proto::ControlMessage>(&notice).unwrap().ingested;
    assert_eq!(ingested, [late.grant_ref()]);
}

async fn letters(stack: &Stack, count: i64) {
    stack.holds("the dead letters are kept", &format!("SELECT count(*) >= {count} FROM dead_letters")).await;
    stack.wait_until_empty().await;
}

/// A stack with models, and with a tool that fails as its own server says.
struct World {
    fixture: Fixture,
    broken: ScriptedHttp,
}

impl World {
    async fn open() -> Self {
        let broken = ScriptedHttp::start().await;
        let quick = "effect = \"read\"\nretry = { initial = \"1ms\", cap = \"1ms\", max_attempts = 2 }";
        let mut tools = http_tools(&broken, &["broken"], quick);
        tools.push(book_tool());
        Self { fixture: Fixture::open(tools).await, broken }
    }
}

#[tokio::test]
async fn erased_means_gone_and_of_others_nothing_is_missing() {
    let world = World::open().await;
    let stack = &world.fixture.stack;
    let (ann, bob) = (stack.user("acme", "ann").await, stack.user("default", "bob").await);
    fill(&world, &bob, "talk-1", "others").await;
    letters(stack, 3).await;
    let of_others = rows(stack).await;
    fill(&world, &ann, "talk-2", "CANARY_2").await;
    letters(stack, 6).await;
    let others = rows(stack).await;

    let (talk, call) = fill(&world, &ann, "talk-1", CANARY).await;
    letters(stack, 9).await;
    let everywhere = found(stack, CANARY).await;
    let tables: Vec<&str> = everywhere.keys().map(String::as_str).collect();
    assert_eq!(
        tables,
        ["attempts", "call_keys", "calls", "dead_letters", "late_reports", "messages", "task_steps", "tasks"],
        "the word is where it can be: {everywhere:?}"
    );
    let request = of(Some("talk-1"));
    let counted = forget(&ann, &Forget { dry_run: true, ..request.clone() }).await;
    assert_eq!(found(stack, CANARY).await, everywhere, "a dry run changes nothing");
    let erased = forget(&ann, &request).await;
    assert_eq!(erased.counts, counted.counts);
    assert_eq!((erased.counts.tasks, erased.counts.late_reports, erased.counts.dead_letters), (1, 1, 3));
    assert_eq!(found(stack, CANARY).await, BTreeMap::new());
    assert_eq!(rows(stack).await, others);
    let again = forget(&ann, &request).await;
    assert_eq!((again.counts, again.erased_at), (erased.counts, erased.erased_at), "it is the same erasure");

    // What still reports about it is ingested, and leaves nothing.
    report(stack, call, CANARY).await;
    letters(stack, 7).await;
    assert_eq!(found(stack, CANARY).await, BTreeMap::new());
    let told = "DELETE FROM dead_letters WHERE id = (SELECT max(id) FROM dead_letters) RETURNING message";
    assert_eq!(stack.value::<String>(told).await, "it names a call that is not on record, so its content was not kept");
    assert_eq!(found(stack, &talk.to_string()).await, BTreeMap::new());
    the_tenant_is_erased_with_everything_of_it(stack, &ann, of_others).await;
    world.fixture.close().await;
}

/// What it has besides its other conversation, of which the rest is of others.
async fn the_tenant_is_erased_with_everything_of_it(stack: &Stack, ann: &Queue, others: BTreeMap<String, i64>) {
    stack.execute(OF_TENANTS).await;
    let request = of(None);
    let counted = forget(ann, &Forget { dry_run: true, ..request.clone() }).await;
    let erased = forget(ann, &request).await;
    assert_eq!((erased.counts.tasks, erased.counts.dead_letters, erased.counts.tokens), (1, 3, 1));
    assert!(erased.counts.statistics >= 40 + 50);
    assert_eq!(ForgetCounts { statistics: 0, ..erased.counts }, counted.counts);
    assert_eq!(found(stack, "CANARY").await, BTreeMap::new());
    let mut left = rows(stack).await;
    for table in ["tokens", "redrives", "webhooks"] {
        assert_eq!(left.insert(table.to_owned(), others[table]), Some(others[table] + 1), "{table}");
    }
    assert_eq!(left, others);
    let named = found(stack, "acme").await;
    assert_eq!(named.keys().collect::<Vec<_>>(), ["actions", "tombstones"], "{named:?}");
    assert_eq!(stack.count("stats WHERE tenant = 'other'").await, 40);
    assert_eq!(stack.value::<String>("SELECT actor FROM tombstones WHERE conversation IS NULL").await, "ann");
}

/// What has no conversation, of acme and of another tenant.
const OF_TENANTS: &str = "
    INSERT INTO stats SELECT 'call', now() - n * interval '9 days', tenant, 'book', 'succeeded', '', '', '{1}', '{}'
    FROM generate_series(1, 40) n, UNNEST(ARRAY['acme', 'other']) tenant;
    INSERT INTO stats SELECT 'model', now() - n * interval '9 days', 'acme', 'book', '', 'scripted', '', '{1, 1}', '{}'
    FROM generate_series(1, 50) n;
    INSERT INTO tokens (id, tenant, user_name, roles, sha256, created_by)
    SELECT repeat(letter, 12), tenant, 'x', '{read}', decode(repeat('00', 32), 'hex'), tenant || '.x'
    FROM (VALUES ('a', 'acme'), ('b', 'other')) v (letter, tenant);
    INSERT INTO redrives (tenant, id, filter, dry_run, rate, state, created_by, finished_at, next_at)
    SELECT tenant, gen_random_uuid(), '{}', true, 1, 'done', 'x', now(), NULL
    FROM UNNEST(ARRAY['acme', 'other']) tenant;
    INSERT INTO webhooks (tenant, id, created_by, content, url, events, tools, agents, key_id)
    SELECT tenant, gen_random_uuid(), 'x', gen_random_uuid(), 'https://example.com/', '{task.*}', '{}', '{}', 'k'
    FROM UNNEST(ARRAY['acme', 'other']) tenant";

/// Whoever began it is gone. Until it is finished, no model is shown what is left of the conversation.
#[tokio::test]
async fn an_erasure_that_was_left_half_way_is_finished_before_the_conversation_goes_on() {
    let world = World::open().await;
    let (fixture, stack) = (&world.fixture, &world.fixture.stack);
    let (_, call) = fill(&world, stack.queue(), "talk-1", CANARY).await;
    letters(stack, 3).await;
    let left = "INSERT INTO tombstones (id, tenant, conversation, actor, cancels, until_at, next_at, phase)
                VALUES (gen_random_uuid(), 'default', 'talk-1', 'ann', false, now(), now() + interval '1 h', 'letters')";
    stack.execute(left).await;
    let next = TaskSubmission { conversation: Some("talk-1".into()), ..task("Another trip.", agent()) };
    fixture.small([says("Gladly.")]);
    let result: TaskResult = stack.queue().ask_as(next.role(), Verb::TaskSubmit, &next, ANSWER).await.unwrap();
    assert_eq!(result.error.map(|error| error.code), Some(Code::BeingErased), "it is refused at once");
    // Nobody can be told to send it again.
    let (user, key) = (stack.queue(), "sent without a reply");
    let sent = TaskSubmission { key: Some(key.to_owned()), ..next };
    user.put(&subjects::intake(user.tenant(), user.user(), sent.role(), Intake::Tasks), &sent).await.unwrap();
    let next = format!("SELECT id FROM tasks WHERE key = '{key}'");
    let next = TaskId(until("it is on record", async || stack.values::<Uuid>(&next).await.pop()).await);
    let looked = format!("SELECT wake_at > submitted_at + interval '2 s' FROM tasks WHERE id = '{next}'");
    stack.holds("it was looked at, and waits", &looked).await;
    assert_eq!(stack.task_report(next).await.task.state, TaskState::Waiting);
    let redriven = stack.redrive(call).await;
    assert!(redriven.error.is_some_and(|error| error.message.contains("is being erased")));

    stack.execute("UPDATE tombstones SET next_at = now() - interval '1 min'").await;
    let report = stack.task_ended(next).await;
    assert_eq!((report.messages[0].seq, report.task.state), (1, TaskState::Succeeded));
    assert_eq!(fixture.seen(fixture.asked() - 1).len(), 2, "the model sees the new conversation only");
    stack.counts(0, "tombstones WHERE erased_at IS NULL").await;
    assert_eq!(found(stack, CANARY).await, BTreeMap::new());
    world.fixture.close().await;
}
