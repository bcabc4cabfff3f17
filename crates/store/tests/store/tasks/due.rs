//! What looks for due calls cost while somebody holds an old snapshot, as a `pg_dump` does for an hour: Postgres removes no dead entry of
//! an index then.

use redial_records::NewCall;
use serde_json::Value;

use crate::fixture::{Fixture, bare_call};

const CALLS: usize = 4_000;

/// Pages that a look touches which begins so many seconds ago, or at the lowest entry.
async fn pages(fixture: &Fixture, statement: &str, begins: Option<f64>) -> f64 {
    let mut db = fixture.db.acquire().await.unwrap();
    // As a dispatcher's connections.
    sqlx::raw_sql("SET enable_seqscan = off; SET enable_bitmapscan = off; SET jit = off")
        .execute(&mut *db)
        .await
        .unwrap();
    let begins = begins.map_or("NULL".to_owned(), |ago| format!("clock_timestamp() - {ago} * interval '1 s'"));
    let values = if statement.contains("FOR UPDATE") { ["300", &begins, &begins] } else { [&begins, &begins, "1"] };
    let types = if statement.contains("FOR UPDATE") { "bigint, timestamptz" } else { "timestamptz, timestamptz" };
    sqlx::raw_sql(sqlx::AssertSqlSafe(format!("DEALLOCATE ALL; PREPARE look ({types}) AS {statement}")))
        .execute(&mut *db)
        .await
        .unwrap();
    let explain = format!("EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE look ({})", values.join(", "));
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
    // They were due a minute ago, and have ended.
    for change in [
        "UPDATE calls SET backlog_at = NULL, wake_at = clock_timestamp() - interval '1 min'",
        "UPDATE calls SET state = 'cancelled', wake_at = NULL, finished_at = clock_timestamp()",
    ] {
        sqlx::query(change).execute(&fixture.db).await.unwrap();
    }
    for statement in [include_str!("../../../sql/lock_due_calls.sql"), include_str!("../../../sql/next_wake.sql")] {
        let statement = statement.replace("!\"", "\"");
        let (whole, short) = (pages(&fixture, &statement, None).await, pages(&fixture, &statement, Some(1.0)).await);
        println!("from the lowest entry on: {whole} pages; from a second ago on: {short}");
        assert!(whole > 150.0 && short < 30.0, "{whole} and {short} pages: {statement:.80}");
    }
    dump.rollback().await.unwrap();
}
