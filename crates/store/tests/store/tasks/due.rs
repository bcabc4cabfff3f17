//! What looks for due calls cost while somebody holds an old snapshot, as a `pg_dump` does for an hour: Postgres removes no dead entry of
//! an index then.

use redial_records::NewCall;
use serde_json::Value;

use crate::fixture::{Fixture, bare_call};

const CALLS: usize = 4_000;

/// The looks for what is due, with their parameters' types and values; `$mark` is where a look begins.
const LOOKS: [(&str, &str, &str); 8] = [
    (include_str!("../../../sql/lock_due_calls.sql"), "bigint, timestamptz", "300, $mark, $mark, '{}'"),
    (include_str!("../../../sql/next_wake.sql"), "timestamptz, timestamptz", "$mark, $mark, 1, '{}'"),
    (include_str!("../../../sql/due_calls.sql"), "timestamptz, timestamptz", "$mark, $mark, '{}', 300"),
    (include_str!("../../../sql/due_tasks.sql"), "bigint, uuid[], bigint, timestamptz", "300, '{}', $item, $mark"),
    (include_str!("../../../sql/lowest_due_tasks.sql"), "bigint, timestamptz", "$item, $mark"),
    (include_str!("../../../sql/waiting.sql"), "", "'{tool}', '{f}', '{default}', ARRAY[$mark]"),
    (include_str!("../../../sql/waiting_tenants.sql"), "", "'{tool}', '{f}', '{\"\"}', '{x}', 100, ARRAY[$mark]"),
    (
        include_str!("../../../sql/feed.sql"),
        "text, boolean, timestamptz, bigint, text, text, bigint, bigint, timestamptz, bigint, text",
        "'tool', false, $mark, 100, 'default', 'default', 1, 1, NULL, 0, 'default'",
    ),
];

/// Counts the pages that a look touches.
async fn pages(fixture: &Fixture, statement: &str, types: &str, values: &str) -> f64 {
    let mut db = fixture.db.acquire().await.unwrap();
    // As a dispatcher's connections.
    sqlx::raw_sql("SET enable_seqscan = off; SET enable_bitmapscan = off; SET jit = off")
        .execute(&mut *db)
        .await
        .unwrap();
    let types = if types.is_empty() { String::new() } else { format!("({types})") };
    sqlx::raw_sql(sqlx::AssertSqlSafe(format!("DEALLOCATE ALL; PREPARE look {types} AS {statement}")))
        .execute(&mut *db)
        .await
        .unwrap();
    let explain = format!("EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE look ({values})");
    let plan: Value =
        sqlx::query_scalar(sqlx::AssertSqlSafe(explain)).persistent(false).fetch_one(&mut *db).await.unwrap();
    let plan = &plan[0]["Plan"];
    let number = |name: &str| plan[name].as_f64().unwrap();
    number("Shared Hit Blocks") + number("Shared Read Blocks")
}

#[tokio::test]
async fn looks_do_not_walk_over_what_ended_while_a_snapshot_was_held() {
    let fixture = Fixture::open().await;
    let mut dump = fixture.db.begin().await.unwrap();
    sqlx::raw_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM workers")
        .execute(&mut *dump)
        .await
        .unwrap();
    let calls: Vec<NewCall> = (0..CALLS).map(|_| bare_call()).collect();
    for calls in calls.chunks(1_000) {
        fixture.store.submit(calls, 3_600_000).await.unwrap();
    }
    for change in [
        // All waited a minute ago, and were due.
        "UPDATE calls SET tool = 'tool', tenant = 'default', backlog_at = clock_timestamp() - interval '1 min',
             wake_at = clock_timestamp() - interval '1 min'",
        "UPDATE calls SET backlog_at = NULL",
        // They have ended.
        "UPDATE calls SET state = 'cancelled', wake_at = NULL, finished_at = clock_timestamp()",
        // Tasks had items and were due.
        "INSERT INTO task_inbox (task_id, kind) SELECT id, 'start' FROM calls, generate_series(1, 5)",
        "DELETE FROM task_inbox",
    ] {
        sqlx::query(change).execute(&fixture.db).await.unwrap();
    }
    let item: i64 =
        sqlx::query_scalar("SELECT last_value FROM task_inbox_id_seq").fetch_one(&fixture.db).await.unwrap();
    for (statement, types, values) in LOOKS {
        let statement = statement.replace("!\"", "\"");
        let looks = async |mark: &str, item: &str| {
            pages(&fixture, &statement, types, &values.replace("$mark", mark).replace("$item", item)).await
        };
        let whole = looks("NULL::timestamptz", "NULL").await;
        let short = looks("clock_timestamp() - interval '1 s'", &item.to_string()).await;
        println!("from the lowest entry on: {whole} pages; from a second ago on: {short}");
        assert!(whole > 100.0 && short < whole / 3.0, "{whole} and {short} pages: {statement:.80}");
    }
    dump.rollback().await.unwrap();
}
