//! The roles of `deploy/roles.sql` on a real Postgres: the owner migrates, dispatchers work with rights on rows only, and the
//! reader asks everything and writes nothing.

use std::{path::Path, process::Stdio};

use redial_proto::TokenId;
use redial_store::{Purpose, Store, StoreConfig, TokenFilter};
use redial_test_stack::{Process, Servers, until};
use sqlx::{Connection, PgConnection, postgres::PgConnectOptions, raw_sql};
use tokio::{process::Command, sync::Mutex};

use crate::audit_commands::fixture::ended;

const REDIAL: &str = env!("CARGO_BIN_EXE_redial");
const ROLES: &str = include_str!("../../deploy/roles.sql");

/// Roles belong to the whole cluster, which the tests of this file share.
static APPLYING: Mutex<()> = Mutex::const_new(());

/// The test's database with its roles.
pub(crate) struct Database {
    pub(crate) servers: Servers,
}

impl Database {
    pub(crate) async fn create() -> Self {
        let servers = Servers::start().await;
        redial_store::admin::create_database(servers.postgres_url(), servers.database()).await.unwrap();
        let database = Self { servers };
        let mut superuser = PgConnection::connect(database.servers.database_url()).await.unwrap();
        let _applying = APPLYING.lock().await;
        // It may be repeated.
        for _ in 0..2 {
            raw_sql(ROLES).execute(&mut superuser).await.unwrap();
        }
        for role in ["owner", "dispatcher", "reader", "gateway"] {
            let set = format!("ALTER ROLE redial_{role} PASSWORD 'secret'");
            raw_sql(sqlx::AssertSqlSafe(set)).execute(&mut superuser).await.unwrap();
        }
        database
    }

    fn url(&self, role: &str) -> String {
        let (_, address) = self.servers.database_url().rsplit_once('@').unwrap();
        format!("postgres://redial_{role}:secret@{address}")
    }

    /// A command with the login of a role; its output.
    pub(crate) async fn redial(&self, role: &str, arguments: &[&str]) -> String {
        let mut command = Command::new(REDIAL);
        command.args(arguments).stdin(Stdio::null()).kill_on_drop(true);
        command.env("REDIAL_NATS_URL", self.servers.nats_url()).env("REDIAL_DATABASE_URL", self.url(role));
        let done = ended(command).await;
        assert_eq!(done.code, 0, "redial {arguments:?} as {role}: {}", done.err);
        done.out
    }

    fn start(&self, arguments: &[&str]) -> Process {
        Process::start(Path::new(REDIAL), |command| {
            command.args(arguments).env("REDIAL_NATS_URL", self.servers.nats_url());
            command.env("REDIAL_LOG_FORMAT", "json");
            if arguments[0] == "dispatcher" {
                command.env("REDIAL_DATABASE_URL", self.url("dispatcher"));
            }
        })
    }

    /// Every statement is refused for want of a right.
    async fn refuses(&self, role: &str, statements: &[&'static str]) {
        let mut connection = PgConnection::connect(&self.url(role)).await.unwrap();
        // A default of the role, which it may change; its rights hold without it.
        raw_sql("SET default_transaction_read_only = off").execute(&mut connection).await.unwrap();
        for statement in statements {
            let refused = raw_sql(*statement).execute(&mut connection).await.unwrap_err();
            let code = refused.as_database_error().and_then(|error| error.code().map(std::borrow::Cow::into_owned));
            assert_eq!(code.as_deref(), Some("42501"), "{role}: {statement}: {refused}");
        }
    }
}

#[tokio::test]
async fn each_role_can_do_its_work_and_nothing_else() {
    let database = Database::create().await;
    assert!(database.redial("owner", &["migrate"]).await.starts_with("applied"));
    let dispatcher = database.start(&["dispatcher", "--retention", "1m"]);
    let worker = database.start(&["worker"]);
    worker.line("Worker started").await;
    let output = database.redial("reader", &["call", "echo", r#"{"n": 1}"#, "--wait"]).await;
    assert_eq!(output.trim(), r#"{"n": 1}"#);
    let call = database.redial("reader", &["history", "--json"]).await;
    let call: serde_json::Value = serde_json::from_str(call.lines().next().unwrap()).unwrap();
    let id = call["call"].as_str().unwrap();
    let questions: [&[&str]; 8] = [
        &["show", id],
        &["tasks"],
        &["stats"],
        &["stats", "--by", "worker"],
        &["tools"],
        &["workers", "--all"],
        &["dead-letters"],
        &["history", "--argument", "/n=1"],
    ];
    for question in questions {
        database.redial("reader", question).await;
    }
    for process in [worker, dispatcher] {
        process.interrupt();
        assert!(process.ended().await.success(), "{}", process.output());
        assert!(!process.output().contains("permission denied"), "{}", process.output());
    }

    let structure = [
        "DROP TABLE calls",
        "TRUNCATE attempts",
        "CREATE TABLE mine (n int)",
        "CREATE TEMPORARY TABLE mine (n int)",
        "CREATE FUNCTION mine() RETURNS int LANGUAGE sql AS 'SELECT 1'",
        "DROP TABLE calls_1",
        "CREATE ROLE mine",
        "GRANT redial_owner TO redial_dispatcher",
        "COPY calls TO PROGRAM 'cat'",
        "SELECT pg_read_file('/etc/passwd')",
    ];
    database.refuses("dispatcher", &structure).await;
    database.refuses("reader", &["DELETE FROM calls", "TRUNCATE calls"]).await;
    let writes = ["INSERT INTO job_stream DEFAULT VALUES", "UPDATE tools SET name = name", "CREATE TABLE mine (n int)"];
    database.refuses("reader", &writes).await;
    let functions = [
        "SELECT add_call_partitions(interval '1 year', interval '1 h')",
        "SELECT drop_call_partition(1, now(), 0)",
        "SELECT needed_calls(1, now(), 0)",
    ];
    database.refuses("reader", &functions).await;
    database.refuses("gateway", &functions).await;
    let large = ["SELECT lo_create(0)", "SELECT lo_from_bytea(0, 'x')", "SELECT lo_creat(-1)"];
    database.refuses("reader", &large).await;
    database.refuses("dispatcher", &large).await;
}

/// Roles that were there before the table, and the table before the roles: the rights are the same.
#[tokio::test]
async fn only_gateways_and_dispatchers_learn_hashes_of_tokens_and_the_key_of_pages() {
    let database = Database::create().await;
    database.redial("owner", &["migrate"]).await;
    let id: TokenId = "aaaaaaaaaaaa".parse().unwrap();
    for _ in 0..2 {
        let mut owner = PgConnection::connect(&database.url("owner")).await.unwrap();
        let insert = "INSERT INTO tokens (id, tenant, user_name, roles, sha256, created_by)
                      VALUES ('aaaaaaaaaaaa', 'acme', 'alice', '{read}', decode(repeat('00', 32), 'hex'), 'acme.bob')
                      ON CONFLICT DO NOTHING";
        raw_sql(insert).execute(&mut owner).await.unwrap();
        let listed = database.redial("reader", &["token", "list", "--json"]).await;
        assert!(listed.contains("\"aaaaaaaaaaaa\"") && !listed.contains("sha256"), "{listed}");
        database.refuses("reader", &["SELECT sha256 FROM tokens", "SELECT * FROM tokens", "DELETE FROM tokens"]).await;
        database.refuses("reader", &["UPDATE tokens SET last_used_at = now()", "SELECT key FROM page_key"]).await;
        let config = StoreConfig { url: database.url("gateway"), connections: 2, purpose: Purpose::Audit };
        let store = Store::connect(&config).await.unwrap();
        assert_eq!(store.token(&id).await.unwrap().unwrap().user.as_str(), "alice");
        assert_eq!(store.page_key().await.unwrap().len(), 32);
        store.mark_tokens_used(std::slice::from_ref(&id)).await.unwrap();
        assert!(store.tokens(&TokenFilter::default(), 1).await.unwrap()[0].last_used_at.is_some());
        let writes = [
            "UPDATE tokens SET roles = '{admin}'",
            "INSERT INTO tokens DEFAULT VALUES",
            "DELETE FROM tokens",
            "DELETE FROM calls",
            "UPDATE calls SET state = 'ready'",
            "INSERT INTO actions DEFAULT VALUES",
            "CREATE TABLE mine (n int)",
        ];
        database.refuses("gateway", &writes).await;
        let mut superuser = PgConnection::connect(database.servers.database_url()).await.unwrap();
        let _applying = APPLYING.lock().await;
        raw_sql(ROLES).execute(&mut superuser).await.unwrap();
    }
}

/// When another login began its transaction, Postgres does not tell; so an erasure does not go on before it is gone.
#[tokio::test]
async fn an_erasure_waits_for_dispatchers_with_another_login() {
    let database = Database::create().await;
    database.redial("owner", &["migrate"]).await;
    let config = StoreConfig { url: database.url("dispatcher"), connections: 2, purpose: Purpose::Dispatch };
    let store = Store::connect(&config).await.unwrap();
    let began = store.now().await.unwrap();
    assert!(store.writers_are_gone(began).await.unwrap());
    let other: PgConnectOptions = database.url("reader").parse().unwrap();
    let mut other = PgConnection::connect_with(&other.application_name("redial")).await.unwrap();
    raw_sql("BEGIN; SELECT 1").execute(&mut other).await.unwrap();
    assert!(!store.writers_are_gone(began).await.unwrap());
    let long_ago = began - chrono::TimeDelta::minutes(1);
    assert!(store.writers_are_gone(long_ago).await.unwrap(), "no statement takes so long");
    other.close().await.unwrap();
    // A login that has ended is listed for a moment.
    until("the other login is gone", async || store.writers_are_gone(began).await.unwrap().then_some(())).await;
}
