//! How much of a conversation is read: as much as the engine's own reading says, and no more for a longer one.

use std::collections::BTreeSet;

use rand::{Rng, SeedableRng, rngs::StdRng};
use redial_engine::view::{self, Limits};
use redial_proto::{Message, MessageCall, Role, StoredMessage, TaskId};
use redial_records::{Reach, ReadConversation};
use serde_json::Value;

use crate::fixture::{Fixture, stepped};

const LIMITS: Limits = Limits { context_tokens: 32_000, result_bytes: 16_384, bytes: 256 * 1024 };

fn reach() -> Reach {
    view::reach(&BTreeSet::new(), LIMITS)
}

/// Starts a task whose first step writes these messages, from sequence number 1 on.
async fn conversation(fixture: &Fixture, name: &str, messages: Vec<Message>) -> (TaskId, Vec<StoredMessage>) {
    let task = fixture.submit(name).await;
    let numbered: Vec<(u32, Message)> = (1..).zip(messages).collect();
    let mut at = None;
    let written = fixture.advance([task], |task| {
        at = Some(task.read_at);
        Some(stepped(&task, numbered.clone()))
    });
    assert_eq!(written.await.unwrap().tasks(), [task]);
    fixture.own().cancel_task(task).await.unwrap();
    let stored = |(seq, message)| StoredMessage { seq, task, at: at.unwrap(), message };
    (task, numbered.into_iter().map(stored).collect())
}

/// Reads what one transaction reads; `None`: it has no room for that conversation.
async fn read(fixture: &Fixture, wanted: &[(TaskId, &Reach)]) -> Vec<Option<ReadConversation>> {
    let tasks: Vec<TaskId> = wanted.iter().map(|(task, _)| *task).collect();
    let mut locked = fixture.store.lock_tasks(&tasks, true).await.unwrap();
    let mut read = locked.conversations(&fixture.store, wanted).await.unwrap();
    tasks.iter().map(|task| read.remove(task)).collect()
}

fn result(call: &str, text: String) -> Message {
    Message { call_id: Some(call.to_owned()), tool: Some("look".to_owned()), ..Message::text(Role::Tool, text) }
}

fn asks(text: &str, calls: &[String], arguments: &str) -> Message {
    let call = |id: &String| MessageCall { id: id.clone(), tool: "look".to_owned(), arguments: arguments.to_owned() };
    Message { calls: calls.iter().map(call).collect(), ..Message::text(Role::Assistant, text) }
}

fn random_messages(random: &mut StdRng) -> Vec<Message> {
    let mut messages = vec![Message::text(Role::System, "Be kind."), Message::text(Role::User, "你好")];
    for n in 0..random.random_range(0..40) {
        let mut text = || {
            let most = [20, 1_000, 30_000, 120_000][random.random_range(0..4)];
            "ab 好\n\"😀".chars().cycle().take(random.random_range(0..most) / 2).collect::<String>()
        };
        match n % 7 {
            0 => messages.push(Message { provider: Some(text().into()), ..Message::text(Role::Assistant, text()) }),
            1 => messages.push(Message { by_redial: true, ..Message::text(Role::User, text()) }),
            2 => messages.push(Message::text(Role::User, text())),
            3 => messages.push(Message::text(Role::System, "Be kinder.")),
            _ => {
                let calls = [format!("c{n}_1"), format!("c{n}_2")];
                let beside = if n % 2 == 0 { " \n".to_owned() } else { text() };
                let arguments = serde_json::json!({"text": text()}).to_string();
                messages.push(Message { thought: Some(text()), ..asks(&beside, &calls, &arguments) });
                messages.extend(calls.iter().map(|call| result(call, text())));
            }
        }
    }
    messages
}

#[tokio::test]
async fn a_conversation_is_read_as_the_engine_says() {
    let fixture = Fixture::open().await;
    let mut random = StdRng::seed_from_u64(7);
    for n in 0..40 {
        let (task, stored) = conversation(&fixture, &format!("c{n}"), random_messages(&mut random)).await;
        let pruned: BTreeSet<String> =
            stored.iter().filter_map(|stored| stored.message.call_id.clone()).filter(|_| random.random()).collect();
        let limits = Limits {
            context_tokens: random.random_range(500..60_000),
            result_bytes: random.random_range(256..40_000),
            bytes: random.random_range(4_000..256_000),
        };
        for pruned in [BTreeSet::new(), pruned] {
            let reach = view::reach(&pruned, limits);
            let found = read(&fixture, &[(task, &reach)]).await.remove(0).unwrap();
            let expected = view::read(&stored, &reach);
            assert_eq!(found.from, expected.from, "conversation {n}, {reach:?}");
            assert_eq!(found, expected, "conversation {n}, {reach:?}");
        }
    }
}

#[tokio::test]
async fn a_transaction_reads_a_few_mb_and_leaves_the_rest_to_the_next() {
    let fixture = Fixture::open().await;
    let mut tasks = Vec::new();
    for n in 0..40 {
        let texts = (0..4).map(|_| Message::text(Role::User, "x".repeat(60_000))).collect();
        tasks.push(conversation(&fixture, &format!("long{n}"), texts).await.0);
    }
    let short = conversation(&fixture, "short", vec![Message::text(Role::User, "Hello")]).await.0;
    let reach = view::reach(&BTreeSet::new(), Limits { context_tokens: 100_000, ..LIMITS });
    let wanted: Vec<(TaskId, &Reach)> = tasks.iter().map(|task| (*task, &reach)).collect();
    let mut locked = fixture.store.lock_tasks(&tasks, true).await.unwrap();
    let first = locked.conversations(&fixture.store, &wanted[..15]).await.unwrap();
    let second = locked.conversations(&fixture.store, &wanted[15..]).await.unwrap();
    assert_eq!((first.len(), second.len()), (15, 2), "in several statements no more than in one");
    drop(locked);
    tasks.push(short);
    let mut rounds = 0;
    while !tasks.is_empty() {
        let wanted: Vec<(TaskId, &Reach)> = tasks.iter().map(|task| (*task, &reach)).collect();
        let found = read(&fixture, &wanted).await;
        let bytes: u64 = found.iter().flatten().map(ReadConversation::bytes).sum();
        assert!((1..=4 * 1024 * 1024).contains(&bytes), "{bytes}");
        assert!(rounds > 0 || found.last().unwrap().is_some(), "what takes little is not left behind");
        let mut left = found.iter().map(Option::is_none);
        tasks.retain(|_| left.next().unwrap());
        rounds += 1;
    }
    // 40 times 240,000 bytes.
    assert_eq!(rounds, 3);
}

#[tokio::test]
async fn a_conversation_that_takes_more_than_a_transaction_may_read_is_read_alone() {
    let fixture = Fixture::open().await;
    let calls: Vec<String> = (0..100).map(|n| format!("c1_{n}")).collect();
    let mut messages = vec![Message::text(Role::User, "Look."), asks("", &calls, "{}")];
    messages.extend(calls.iter().map(|call| result(call, "x".repeat(500_000))));
    let huge = conversation(&fixture, "huge", messages).await.0;
    let small = conversation(&fixture, "small", vec![Message::text(Role::User, "Hello")]).await.0;
    let reach = view::reach(&BTreeSet::new(), Limits { result_bytes: 100_000, ..LIMITS });
    let found = read(&fixture, &[(huge, &reach), (small, &reach)]).await;
    let bytes = found[0].as_ref().unwrap().bytes();
    assert!((100 * 100_000..100 * 140_000).contains(&bytes), "only what can be shown of each result: {bytes}");
    assert!(found[1].is_some(), "what takes little is read in any case");
    let found = read(&fixture, &[(small, &reach), (huge, &reach)]).await;
    assert!(found[0].is_some() && found[1].is_none());
}

// ---- Cost ----

/// What Postgres did for a statement.
#[derive(Clone, Copy, Debug)]
struct Cost {
    /// Rows that were fetched from the table of messages, or found in its indexes.
    rows: f64,
    /// Pages that were looked at.
    pages: f64,
}

/// Measures what it costs to read a conversation for a model turn.
async fn cost(fixture: &Fixture, conversation: &str) -> Cost {
    let reach = reach();
    let statement =
        format!("EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {}", include_str!("../../../sql/conversations.sql"));
    let mut db = fixture.db.acquire().await.unwrap();
    // As a dispatcher's connections.
    let planner =
        "SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_bitmapscan = off;
                   SET jit = off";
    sqlx::raw_sql(planner).execute(&mut *db).await.unwrap();
    let plan: Value = sqlx::query_scalar(sqlx::AssertSqlSafe(statement))
        .bind(vec!["default"])
        .bind(vec![conversation])
        .bind(vec![i64::try_from(reach.shown_bytes).unwrap()])
        .bind(vec![i64::try_from(reach.stored_bytes).unwrap()])
        .bind(vec![i32::try_from(reach.message_bytes).unwrap()])
        .bind(vec![i32::try_from(reach.result_bytes).unwrap()])
        .bind(vec![i32::try_from(reach.old_result_bytes).unwrap()])
        .bind(vec![""])
        .bind(4_i64 << 20)
        .bind(true)
        .fetch_one(&mut *db)
        .await
        .unwrap();
    let plan = &plan[0]["Plan"];
    let number = |value: &Value| value.as_f64().unwrap_or_default();
    Cost { rows: rows(plan), pages: number(&plan["Shared Hit Blocks"]) + number(&plan["Shared Read Blocks"]) }
}

/// Counts the rows that the nodes of a plan fetched from the table of messages.
fn rows(plan: &Value) -> f64 {
    let number = |name: &str| plan[name].as_f64().unwrap_or_default();
    let own = if plan["Relation Name"] == "messages" {
        (number("Actual Rows") + number("Rows Removed by Filter")) * number("Actual Loops")
    } else {
        0.0
    };
    own + plan["Plans"].as_array().into_iter().flatten().map(rows).sum::<f64>()
}

/// Adds messages of 50 KB to a conversation that begins with instructions and a question. `exchanges`: every other one is a
/// tool's result, else all are the assistant's.
async fn fill(fixture: &Fixture, conversation: &str, count: i32, exchanges: bool) {
    let begin = "INSERT INTO messages (tenant, conversation, seq, task_id, at, role, content)
        VALUES ('default', $1, 1, gen_random_uuid(), now(), 'system', 'Be kind.'),
               ('default', $1, 2, gen_random_uuid(), now(), 'user', 'Look.')";
    sqlx::query(begin).bind(conversation).execute(&fixture.db).await.unwrap();
    let add = "INSERT INTO messages (tenant, conversation, seq, task_id, at, role, content, calls, call_id, tool)
        SELECT 'default', $1, n, gen_random_uuid(), now(), CASE WHEN is_result THEN 'tool' ELSE 'assistant' END,
            repeat('x', 50000),
            CASE WHEN asks THEN json_build_array(json_build_object('id', 'c' || n + 1, 'tool', 't', 'arguments', '{}')) END,
            CASE WHEN is_result THEN 'c' || n END, CASE WHEN is_result THEN 't' END
        FROM generate_series(3, $2) n,
            LATERAL (SELECT $3 AND n % 2 = 0 AS is_result, $3 AND n % 2 = 1 AS asks) x";
    sqlx::query(add).bind(conversation).bind(count).bind(exchanges).execute(&fixture.db).await.unwrap();
}

#[tokio::test]
async fn a_turn_of_a_long_conversation_costs_what_its_twentieth_message_did() {
    let fixture = Fixture::open().await;
    // As if texts could not be compressed: pages are counted.
    sqlx::raw_sql("ALTER TABLE messages ALTER content SET STORAGE EXTERNAL").execute(&fixture.db).await.unwrap();
    for exchanges in [false, true] {
        let (short, long) = (format!("short {exchanges}"), format!("long {exchanges}"));
        fill(&fixture, &short, 20, exchanges).await;
        fill(&fixture, &long, 5_000, exchanges).await;
        sqlx::raw_sql("VACUUM ANALYZE messages").execute(&fixture.db).await.unwrap();
        let (short, long) = (cost(&fixture, &short).await, cost(&fixture, &long).await);
        println!("exchanges: {exchanges}; 20 messages: {short:?}; many: {long:?}");
        assert!(long.rows <= 1.5 * short.rows && long.rows > 0.0, "{short:?} and {long:?}");
        assert!(long.pages <= 1.5 * short.pages && long.pages > 0.0, "{short:?} and {long:?}");
    }
}
