//! The migrations go up, down and up again, and describe what they make.

use std::{collections::BTreeSet, fs};

use redial_store::{Purpose, Store, StoreConfig, admin};
use redial_test_stack::Servers;
use sqlx::PgPool;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../migrations");

/// Every object of the schema as one line of text, except the table in which sqlx records migrations.
const SCHEMA: &str = r"
SELECT concat_ws(' ', 'relation', relkind, relname, reloptions, pg_get_viewdef(c.oid), obj_description(c.oid))
FROM pg_class c
WHERE c.relnamespace = 'public'::regnamespace AND relname NOT LIKE '\_sqlx%'
UNION ALL
SELECT concat_ws(' ', 'column', c.relname, attnum, attname, format_type(atttypid, atttypmod), attnotnull, attidentity,
                 pg_get_expr(adbin, adrelid), col_description(c.oid, attnum))
FROM pg_attribute a
JOIN pg_class c ON c.oid = a.attrelid
LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
WHERE c.relnamespace = 'public'::regnamespace AND c.relname NOT LIKE '\_sqlx%' AND attnum > 0 AND NOT attisdropped
UNION ALL
SELECT concat_ws(' ', 'index', indexname, indexdef)
FROM pg_indexes
WHERE schemaname = 'public' AND tablename NOT LIKE '\_sqlx%'
UNION ALL
SELECT concat_ws(' ', 'constraint', conrelid::regclass, conname, pg_get_constraintdef(oid))
FROM pg_constraint
WHERE connamespace = 'public'::regnamespace AND conrelid::regclass::text NOT LIKE '\_sqlx%'
UNION ALL
SELECT concat_ws(' ', 'trigger', tgrelid::regclass, pg_get_triggerdef(oid)) FROM pg_trigger WHERE NOT tgisinternal
UNION ALL
SELECT concat_ws(' ', 'function', pg_get_functiondef(oid)) FROM pg_proc WHERE pronamespace = 'public'::regnamespace
UNION ALL
SELECT concat_ws(' ', 'type', typname) FROM pg_type
WHERE typnamespace = 'public'::regnamespace AND typtype IN ('e', 'd')
";

/// An empty database, and a connection to it.
async fn empty_database(servers: &Servers) -> PgPool {
    admin::create_database(servers.postgres_url(), servers.database()).await.unwrap();
    PgPool::connect(servers.database_url()).await.unwrap()
}

async fn schema(pool: &PgPool) -> BTreeSet<String> {
    let lines: Vec<String> = sqlx::query_scalar(SCHEMA).fetch_all(pool).await.unwrap();
    lines.into_iter().collect()
}

#[tokio::test]
async fn down_leaves_nothing_and_a_second_up_makes_the_same_schema() {
    let servers = Servers::start().await;
    let url = servers.database_url();
    let pool = empty_database(&servers).await;
    let applied = admin::migrate(url).await.unwrap();
    let first = schema(&pool).await;
    assert!(applied > 0 && first.len() > 100, "{applied} migrations made {first:#?}");
    assert_eq!(admin::migrate(url).await.unwrap(), 0, "a migration was applied twice");

    admin::revert_all(url).await.unwrap();
    assert_eq!(schema(&pool).await, BTreeSet::new(), "left by the migrations down");
    let config = StoreConfig { url: url.to_owned(), connections: 1, purpose: Purpose::Dispatch };
    let refused = Store::connect(&config).await.unwrap_err().to_string();
    assert!(refused.contains("migrations are missing"), "{refused}");

    assert_eq!(admin::migrate(url).await.unwrap(), applied);
    let second = schema(&pool).await;
    let differences: Vec<_> = first.symmetric_difference(&second).collect();
    assert!(differences.is_empty(), "the second way up differs: {differences:#?}");
    pool.close().await;
}

#[tokio::test]
async fn another_schema_is_refused_before_the_first_step() {
    let servers = Servers::start().await;
    let pool = empty_database(&servers).await;
    let url = servers.database_url();
    sqlx::query("CREATE SCHEMA app").execute(&pool).await.unwrap();
    for path in ["app, public", "nowhere"] {
        let set = format!("ALTER DATABASE \"{}\" SET search_path = {path}", servers.database());
        sqlx::query(sqlx::AssertSqlSafe(set)).execute(&pool).await.unwrap();
        let refused = admin::migrate(url).await.unwrap_err().to_string();
        assert!(refused.contains("the search_path of this login begins with"), "{refused}");
    }
    assert_eq!(schema(&pool).await, BTreeSet::new());
    pool.close().await;
}

#[tokio::test]
async fn a_migration_that_fails_leaves_nothing_and_the_next_run_goes_on() {
    let servers = Servers::start().await;
    let pool = empty_database(&servers).await;
    let url = servers.database_url();
    sqlx::query("CREATE TABLE tasks ()").execute(&pool).await.unwrap();
    let failed = admin::migrate(url).await.unwrap_err().to_string();
    assert!(
        failed.contains("\"tasks\" already exists; nothing of it is left, and 3 before it were applied"),
        "{failed}"
    );
    sqlx::query("DROP TABLE tasks").execute(&pool).await.unwrap();
    assert!(admin::migrate(url).await.unwrap() > 0);
    pool.close().await;
}

#[tokio::test]
async fn processes_may_migrate_one_database_at_the_same_time() {
    let servers = Servers::start().await;
    let pool = empty_database(&servers).await;
    // Creating a database that exists is not an error either: several processes may do so.
    admin::create_database(servers.postgres_url(), servers.database()).await.unwrap();
    let url = servers.database_url();
    let (first, second) = tokio::join!(admin::migrate(url), admin::migrate(url));
    assert!(first.unwrap() + second.unwrap() > 0);
    let applied: i64 = sqlx::query_scalar("SELECT count(*) FROM _sqlx_migrations").fetch_one(&pool).await.unwrap();
    let known = fs::read_dir(FOLDER).unwrap().count() / 2;
    assert_eq!(applied, i64::try_from(known).unwrap(), "each migration is applied once");
    assert_eq!(admin::migrate(url).await.unwrap(), 0, "nothing is left to do");
    pool.close().await;
}

#[tokio::test]
async fn a_database_of_a_newer_version_is_used_and_one_of_another_is_refused() {
    let servers = Servers::start().await;
    let pool = empty_database(&servers).await;
    let url = servers.database_url();
    admin::migrate(url).await.unwrap();
    let config = StoreConfig { url: url.to_owned(), connections: 1, purpose: Purpose::Dispatch };
    // As after going back to this version.
    let newer = "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
                 VALUES (29991231235959, 'of a newer version', true, '', 0)";
    sqlx::query(newer).execute(&pool).await.unwrap();
    Store::connect(&config).await.unwrap().close().await;
    assert_eq!(admin::migrate(url).await.unwrap(), 0, "going back needs no migration");
    sqlx::query("UPDATE _sqlx_migrations SET version = version - 1").execute(&pool).await.unwrap();
    let refused = Store::connect(&config).await.unwrap_err().to_string();
    assert!(refused.contains("migrations are missing"), "{refused}");
    let refused = admin::migrate(url).await.unwrap_err().to_string();
    assert!(refused.contains("of another version of Redial: use that version, or a new database"), "{refused}");
    pool.close().await;
}

#[tokio::test]
async fn every_table_view_and_column_of_a_view_has_a_comment() {
    let servers = Servers::start().await;
    let pool = empty_database(&servers).await;
    admin::migrate(servers.database_url()).await.unwrap();
    let silent: Vec<String> = sqlx::query_scalar(
        r"SELECT c.relname FROM pg_class c
          WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'v') AND c.relname NOT LIKE '\_sqlx%'
              AND obj_description(c.oid) IS NULL
          UNION ALL
          SELECT c.relname || '.' || a.attname FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
          WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'v' AND a.attnum > 0
              AND col_description(c.oid, a.attnum) IS NULL",
    )
    .fetch_all(&pool)
    .await
    .unwrap();
    assert!(silent.is_empty(), "without a comment: {silent:?}");
    pool.close().await;
}

#[test]
fn every_migration_is_dated_named_by_a_verb_and_reversible() {
    let names: BTreeSet<String> =
        fs::read_dir(FOLDER).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    let up: Vec<&str> = names.iter().filter_map(|name| name.strip_suffix(".up.sql")).collect();
    assert_eq!(names.len(), 2 * up.len(), "{names:?}");
    for migration in up {
        assert!(names.contains(&format!("{migration}.down.sql")), "{migration} cannot be reverted");
        let (date, name) = migration.split_once('_').unwrap();
        assert!(date.len() == 14 && date.bytes().all(|byte| byte.is_ascii_digit()), "{migration} is not dated");
        let verb = name.split('_').next().unwrap();
        assert!(
            ["create", "add", "alter", "drop", "rename", "fill", "list", "order", "validate"].contains(&verb),
            "{migration} names no verb"
        );
    }
}
