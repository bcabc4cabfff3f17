//! Statements that are executed for each call are planned once, whatever they are executed with, and find their rows by key.

use std::fs;

use serde_json::Value;
use sqlx::{AssertSqlSafe, PgConnection, raw_sql};

use crate::fixture::{Fixture, bare_call};

/// What a statement has around values that the planner should not see.
const HIDDEN: &str = "(SELECT $";

/// Returns a value of a type that names no row.
fn value(of: &str) -> &'static str {
    match of {
        "uuid" => "'00000000-0000-0000-0000-000000000000'",
        "integer" | "bigint" => "1",
        "text" => "''",
        "timestamp with time zone" => "now()",
        list if list.ends_with("[]") => "'{}'",
        other => panic!("no value of {other}"),
    }
}

/// Prepares a statement; returns how it is executed.
async fn prepare(db: &mut PgConnection, statement: &str) -> String {
    // The marks of the library say what is never null.
    let statement = statement.replace("!\"", "\"");
    raw_sql(AssertSqlSafe(format!("PREPARE hidden AS {statement}"))).execute(&mut *db).await.unwrap();
    let types: Vec<String> =
        sqlx::query_scalar("SELECT unnest(parameter_types)::text FROM pg_prepared_statements WHERE name = 'hidden'")
            .fetch_all(&mut *db)
            .await
            .unwrap();
    format!("EXECUTE hidden ({})", types.iter().map(|of| value(of)).collect::<Vec<_>>().join(", "))
}

/// Collects the scans of tables in a plan, as name of the table, index and condition.
fn scans(plan: &Value, found: &mut Vec<(String, String, String)>) {
    let text = |name: &str| plan[name].as_str().unwrap_or_default().to_owned();
    if text("Node Type").ends_with("Scan") && plan["Relation Name"].is_string() {
        found.push((text("Relation Name"), text("Index Name"), text("Index Cond")));
    }
    plan["Plans"].as_array().into_iter().flatten().for_each(|inner| scans(inner, found));
}

#[tokio::test]
async fn statements_of_each_call_are_planned_once_and_find_rows_by_key() {
    let fixture = Fixture::open().await;
    let mut db = fixture.db.acquire().await.unwrap();
    // As a dispatcher's connections. The tables are empty: what is planned now is executed when they are full.
    let settings =
        ["seqscan", "hashjoin", "mergejoin", "bitmapscan"].map(|way| format!("SET enable_{way} = off;")).concat();
    raw_sql(AssertSqlSafe(settings + "SET jit = off")).execute(&mut *db).await.unwrap();
    let mut checked = 0;
    for file in fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/sql")).unwrap() {
        let path = file.unwrap().path();
        let statement = fs::read_to_string(&path).unwrap();
        if !statement.contains(HIDDEN) {
            continue;
        }
        let execute = prepare(&mut db, &statement).await;
        for _ in 0..8 {
            raw_sql(AssertSqlSafe(execute.clone())).execute(&mut *db).await.unwrap();
        }
        let plans: (i64, i64) =
            sqlx::query_as("SELECT generic_plans, custom_plans FROM pg_prepared_statements WHERE name = 'hidden'")
                .fetch_one(&mut *db)
                .await
                .unwrap();
        assert_eq!(plans, (3, 5), "Postgres plans {} again for each execution", path.display());
        let explain = AssertSqlSafe(format!("EXPLAIN (FORMAT JSON) {execute}"));
        let plan: Value = sqlx::query_scalar(explain).persistent(false).fetch_one(&mut *db).await.unwrap();
        let mut found = Vec::new();
        scans(&plan[0]["Plan"], &mut found);
        assert!(!found.is_empty(), "{} reads no table: {plan}", path.display());
        for (table, index, condition) in found {
            let finds = if table.starts_with("calls") || table.starts_with("attempts") { "id = " } else { "=" };
            assert!(condition.contains(finds), "{} walks over {table} by {index}: {condition:?}", path.display());
        }
        raw_sql("DEALLOCATE hidden").execute(&mut *db).await.unwrap();
        checked += 1;
    }
    assert!(checked >= 5, "{checked} statements hide values");
}

/// They are looked up one by one, so a repetition would be a second row.
#[tokio::test]
async fn ended_calls_are_read_as_all_others_and_once_each() {
    let fixture = Fixture::open().await;
    let (ended, open) = (bare_call(), bare_call());
    fixture.store.submit(&[ended.clone(), open.clone()], 10_000).await.unwrap();
    raw_sql(AssertSqlSafe(format!(
        "INSERT INTO attempts (call_id, attempt, worker, started_at, ended_at, duration_ms, output)
             VALUES ('{0}', 1, 'worker-1', now(), now(), 3, '[1]');
         INSERT INTO late_reports (call_id, attempt, worker, class) VALUES ('{0}', 1, 'worker-2', 'timeout');
         UPDATE calls SET state = 'succeeded', attempt = 1, worker = 'worker-1', backlog_at = NULL, wake_at = NULL, finished_at = now()
             WHERE id = '{0}'",
        ended.id.0
    )))
    .execute(&fixture.db)
    .await
    .unwrap();
    let twice = [ended.id, open.id, ended.id, open.id];
    assert_eq!(fixture.store.load(&twice).await.unwrap().len(), 2);
    let of_ended = fixture.store.records_of_ended(&twice).await.unwrap();
    let usual = fixture.store.records_of(&[ended.id]).await.unwrap();
    let [of_ended, usual] = [of_ended, usual].map(|records| serde_json::to_value(records).unwrap());
    assert_eq!(of_ended, usual);
    assert_eq!(
        (of_ended[0]["attempts_made"].as_array().unwrap().len(), of_ended[0]["late_reports"].as_array().unwrap().len()),
        (1, 1)
    );
}
