//! Rows of all tables as JSON, and databases made of them.

use std::{borrow::Cow, fs, path::Path};

use chrono::{DateTime, SecondsFormat, Utc};
use redial_store::admin;
use redial_testkit::Servers;
use regex::{Captures, Regex};
use serde::Deserialize;
use serde_json::value::RawValue;
use sqlx::{AssertSqlSafe, Connection, PgConnection, PgPool, migrate::Migrator};

use crate::version;

const MIGRATIONS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../migrations");

/// Tables whose rows belong to a database, and not to what it holds.
const OF_THE_DATABASE: [&str; 4] = ["_sqlx_migrations", "call_partitions", "page_key", "record_version"];

/// Tables with their columns that can be written.
const TABLES: &str = "
SELECT c.relname, string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum)
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
    AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
GROUP BY c.relname ORDER BY c.relname";

/// Lets identity columns go on behind the rows that are there.
const SEQUENCES: &str = "
SELECT format('SELECT setval(%L, COALESCE(max(%I), 1)) FROM %I', pg_get_serial_sequence(c.relname, a.attname), a.attname, c.relname)
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
WHERE c.relnamespace = 'public'::regnamespace AND a.attidentity <> ''";

#[derive(Deserialize)]
struct Line {
    table: String,
    row: Box<RawValue>,
}

async fn tables(db: &mut PgConnection) -> Vec<(String, String)> {
    let all: Vec<(String, String)> = sqlx::query_as(TABLES).fetch_all(db).await.unwrap();
    all.into_iter().filter(|(table, _)| !OF_THE_DATABASE.contains(&table.as_str())).collect()
}

/// All rows, a line each; and the tables that have none.
pub(crate) async fn dump(pool: &PgPool) -> (String, Vec<String>) {
    let mut db = pool.acquire().await.unwrap();
    let (mut lines, mut empty) = (String::new(), Vec::new());
    for (table, _) in tables(&mut db).await {
        let question = format!("SELECT to_json(t)::text FROM \"{table}\" t ORDER BY 1");
        let rows: Vec<String> = sqlx::query_scalar(AssertSqlSafe(question)).fetch_all(&mut *db).await.unwrap();
        for row in &rows {
            lines.push_str(&format!("{{\"table\":\"{table}\",\"row\":{row}}}\n"));
        }
        if rows.is_empty() {
            empty.push(table);
        }
    }
    (lines, empty)
}

/// The newest migration of a database.
pub(crate) async fn newest_migration(pool: &PgPool) -> i64 {
    sqlx::query_scalar("SELECT max(version) FROM _sqlx_migrations").fetch_one(pool).await.unwrap()
}

/// Times that are the beginnings of hours or days of statistics.
const OF_STATISTICS: [&str; 3] = ["hour", "rolled_until", "days_until"];

/// Rows whose times are moved, so that the latest submission is now: what was open goes on as if it had been interrupted a moment ago,
/// however old the samples are.
fn up_to_now(rows: &str) -> String {
    let fields = Regex::new(r#""(\w+)":"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|\+00:00))""#).unwrap();
    let time = |text: &str| DateTime::parse_from_rfc3339(text).unwrap().to_utc();
    let submitted = fields.captures_iter(rows).filter(|field| &field[1] == "submitted_at");
    let age = Utc::now() - submitted.map(|field| time(&field[2])).max().unwrap();
    let moved = |field: &Captures<'_>| {
        let (name, was) = (&field[1], &field[2]);
        if OF_STATISTICS.contains(&name) {
            return field[0].to_owned();
        }
        format!("\"{name}\":\"{}\"", (time(was) + age).to_rfc3339_opts(SecondsFormat::Micros, true))
    };
    fields.replace_all(rows, moved).into_owned()
}

/// Makes the database of a version, with its rows.
pub(crate) async fn restore(servers: &Servers, folder: &Path) {
    admin::create_database(servers.postgres_url(), servers.database()).await.unwrap();
    let mut db = PgConnection::connect(servers.database_url()).await.unwrap();
    let newest = version(folder).migration;
    let all = Migrator::new(Path::new(MIGRATIONS)).await.unwrap();
    let earlier = all.migrations.iter().filter(|migration| migration.version <= newest).cloned().collect();
    let migrator = Migrator { migrations: Cow::Owned(earlier), ..Migrator::DEFAULT };
    migrator.run_direct(None, &mut db, false).await.unwrap();
    // Without triggers and foreign keys: the rows come in any order, and ended ones as they are.
    sqlx::raw_sql("SET session_replication_role = replica").execute(&mut db).await.unwrap();
    let columns: std::collections::HashMap<String, String> = tables(&mut db).await.into_iter().collect();
    for table in columns.keys() {
        sqlx::query(AssertSqlSafe(format!("DELETE FROM \"{table}\""))).execute(&mut db).await.unwrap();
    }
    let rows = fs::read_to_string(folder.join("records.jsonl")).unwrap();
    for line in up_to_now(&rows).lines() {
        let Line { table, row } = serde_json::from_str(line).unwrap();
        let names = &columns[&table];
        let insert = format!(
            "INSERT INTO \"{table}\" ({names}) OVERRIDING SYSTEM VALUE
             SELECT {names} FROM json_populate_record(NULL::\"{table}\", $1::json)"
        );
        sqlx::query(AssertSqlSafe(insert)).bind(row.get()).execute(&mut db).await.unwrap();
    }
    let sequences: Vec<String> = sqlx::query_scalar(SEQUENCES).fetch_all(&mut db).await.unwrap();
    for sequence in sequences {
        sqlx::raw_sql(AssertSqlSafe(sequence)).execute(&mut db).await.unwrap();
    }
    db.close().await.unwrap();
}
