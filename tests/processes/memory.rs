//! How much memory a dispatcher takes.

use chrono::{DateTime, Utc};
use redial_proto::ToolEffect;
use redial_store::Purpose;
use redial_test_stack::{Process, Stack, scripted_tool, until_within};

use crate::new_task::new_task;

const CONVERSATIONS: usize = 64;
/// Messages of 50 KB of each conversation. Read completely, they would be three times as many bytes as are allowed.
const MESSAGES: i32 = 300;
const MOST_BYTES: usize = 300 << 20;

/// The most memory that a process has taken so far, in bytes.
fn peak(process: &Process) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{}/status", process.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let kilobytes: usize = line.trim().strip_suffix(" kB").unwrap().parse().unwrap();
    kilobytes * 1024
}

/// Exchanges with results of 50 KB, of a task that is long gone.
async fn fill(stack: &Stack, conversation: &str) {
    let add = "INSERT INTO messages (tenant, conversation, seq, task_id, at, role, content, calls, call_id, tool)
        SELECT 'default', $1, n, gen_random_uuid(), now(), CASE WHEN is_result THEN 'tool' ELSE 'assistant' END,
            repeat('x', 50000),
            CASE WHEN NOT is_result THEN json_build_array(json_build_object('id', 'c' || n + 1, 'tool', 't', 'arguments', '{}')) END,
            CASE WHEN is_result THEN 'c' || n END, CASE WHEN is_result THEN 't' END
        FROM generate_series(1, $2) n, LATERAL (SELECT n % 2 = 0 AS is_result) x";
    sqlx::query(add).bind(conversation).bind(MESSAGES).execute(stack.db()).await.unwrap();
}

#[tokio::test]
async fn many_giant_conversations_at_once_take_little_memory_and_do_not_delay_others() {
    let mut stack = Stack::start().await;
    stack.play_models(vec![scripted_tool("small", ToolEffect::Read, &stack.ledger)]).await;
    stack.stop_workers().await;
    stack.stop_dispatchers().await;
    let mut tasks = Vec::new();
    for n in 0..CONVERSATIONS {
        let conversation = format!("giant {n}");
        fill(&stack, &conversation).await;
        tasks.push(new_task(&conversation));
    }
    let store = stack.store(Purpose::Dispatch).await;
    store.submit_tasks(&tasks).await.unwrap();
    store.submit_tasks(&[new_task("small")]).await.unwrap();
    let dispatcher = stack.process(env!("CARGO_BIN_EXE_redial"), "dispatcher", &[]);
    let every = async || (stack.count("tasks WHERE state = 'waiting'").await == 0).then_some(());
    until_within(std::time::Duration::from_mins(2), "every task asks its model", every).await;
    let peak = peak(&dispatcher);
    assert!(peak < MOST_BYTES, "{} MiB", peak >> 20);
    let requests = "SELECT min((arguments ->> 'bytes')::int), max(length(arguments::text)) FROM calls
                    WHERE conversation LIKE 'giant%'";
    let (shortest, on_record): (i32, i32) = stack.rows(requests).await[0];
    assert!(shortest > 50_000 && on_record < 4_000, "{shortest}, on record {on_record}");
    let started = async |which: &str| -> DateTime<Utc> {
        stack.value(&format!("SELECT max(started_at) FROM tasks WHERE conversation LIKE '{which}'")).await
    };
    let (small, giant) = (started("small").await, started("giant%").await);
    assert!(small < giant, "it was submitted last, and did not wait for all others: {small}, {giant}");
    // No task wrote the messages, so that there is nothing to check.
    stack.execute("TRUNCATE tasks, task_inbox, task_steps, messages, calls").await;
    stack.leaves_calls();
    stack.finish().await;
}
