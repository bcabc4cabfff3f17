//! What dispatchers say and do when Postgres, or the distribution's PgBouncer before it, will never let them work: they end at
//! once, with what to do. And what works through a pooler.

use std::{
    fs, io::Write as _, net::TcpListener, os::unix::fs::PermissionsExt, path::Path, process::Stdio, time::Duration,
};

use redial_test_stack::{Process, until};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, copy},
    net::TcpStream,
    process::Command,
    time::timeout,
};

use crate::{
    audit_commands::fixture::{Done, ended},
    database_roles::Database,
};

const REDIAL: &str = env!("CARGO_BIN_EXE_redial");
/// Set where there is no PgBouncer and none has to be.
const SKIP: &str = "REDIAL_SKIP_PGBOUNCER";
/// The first version that keeps prepared statements in transaction mode.
const KEEPS_STATEMENTS: (u32, u32) = (1, 21);
/// What tries again does so for longer.
const ENDS: Duration = Duration::from_mins(2);

impl Database {
    fn command(&self, url: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(REDIAL);
        command.args(arguments).stdin(Stdio::null()).kill_on_drop(true);
        command.env("REDIAL_NATS_URL", self.servers.nats_url()).env("REDIAL_DATABASE_URL", url);
        command
    }

    async fn run(&self, url: &str, arguments: &[&str]) -> Done {
        let done = timeout(ENDS, ended(self.command(url, arguments))).await;
        done.unwrap_or_else(|_| panic!("redial {arguments:?} does not end with {url}"))
    }

    /// Each dispatcher with one of these addresses ends with a usage error that says this.
    async fn refuses_addresses(&self, rows: &[(String, &[&str])]) {
        for (url, wanted) in rows {
            let done = self.run(url, &["dispatcher"]).await;
            assert_eq!(done.code, 2, "{url}: {}", done.err);
            // The log comes before it.
            let error = done.err.lines().last().unwrap_or_default();
            for part in wanted.iter().chain(&["error: ", "[invalid_configuration]"]) {
                assert!(error.contains(part), "{url}: {part:?} in {}", done.err);
            }
        }
    }

    /// `host:port` of the server.
    fn server(&self) -> &str {
        let (_, address) = self.servers.database_url().rsplit_once('@').unwrap();
        address.split_once('/').unwrap().0
    }
}

/// The port of a proxy before a server, which makes it say that it is of an older version.
async fn older(server: &str) -> u16 {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (port, server) = (listener.local_addr().unwrap().port(), server.to_owned());
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let server = TcpStream::connect(&server).await.unwrap();
            let ((mut from_client, mut to_client), (mut from_server, mut to_server)) =
                (client.into_split(), server.into_split());
            tokio::spawn(async move { copy(&mut from_client, &mut to_server).await });
            tokio::spawn(async move {
                let mut bytes = vec![0; 64 * 1024];
                while let Ok(read @ 1..) = from_server.read(&mut bytes).await {
                    let name = b"server_version\0";
                    if let Some(at) = bytes[..read].windows(name.len()).position(|window| window == name) {
                        bytes[at + name.len()..][..2].copy_from_slice(b"14");
                    }
                    if to_client.write_all(&bytes[..read]).await.is_err() {
                        return;
                    }
                }
            });
        }
    });
    port
}

#[tokio::test]
async fn what_no_waiting_changes_ends_a_dispatcher_at_once_and_says_what_to_do() {
    let database = Database::create().await;
    database.redial("owner", &["migrate"]).await;
    let (server, name) = (database.server(), database.servers.database());
    let older = older(server).await;
    database
        .refuses_addresses(&[
            (
                format!("postgres://redial_dispatcher:wrong@{server}/{name}"),
                &["password authentication failed", "set the right user and password in database_url"],
            ),
            (
                format!("postgres://redial_dispatcher:secret@{server}/nothing"),
                &["database \"nothing\" does not exist", "set the right database in database_url, or create this one"],
            ),
            (
                format!("postgres://redial_reader:secret@{server}/{name}"),
                &["permission denied for", "run deploy/roles.sql in this database"],
            ),
            (
                format!("postgres://redial_dispatcher:secret@127.0.0.1:{older}/{name}"),
                &["Postgres has server_version = 14", "Redial needs 15 or newer"],
            ),
        ])
        .await;
}

/// A pooler, and the database behind it.
struct Pooler<'a> {
    database: &'a Database,
    port: u16,
    version: (u32, u32),
    _process: Process,
    _folder: tempfile::TempDir,
}

impl<'a> Pooler<'a> {
    /// Starts one in this mode; `None` if these tests are to be skipped.
    async fn start(database: &'a Database, mode: &str) -> Option<Self> {
        if std::env::var_os(SKIP).is_some() {
            // Bypasses the capture of the test's output.
            let told = format!("NOT RUN: through a pooler, because {SKIP} is set\n");
            std::io::stderr().write_all(told.as_bytes()).unwrap();
            return None;
        }
        let program = program();
        let version = version(&program).await;
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let users = ["dispatcher", "reader", "gateway"].map(|role| format!("\"redial_{role}\" \"secret\"\n"));
        fs::write(folder.path().join("users.txt"), users.concat()).unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let (host, server_port) = database.server().rsplit_once(':').unwrap();
        let statements = if version >= KEEPS_STATEMENTS { "max_prepared_statements = 100\n" } else { "" };
        // It does not run as root.
        let user = if rustix::process::geteuid().is_root() { "user = nobody\n" } else { "" };
        let settings = format!(
            "[databases]\n* = host={host} port={server_port}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\n\
             unix_socket_dir =\nauth_type = plain\nauth_file = {}\npool_mode = {mode}\n{statements}{user}",
            folder.path().join("users.txt").display()
        );
        let file = folder.path().join("pgbouncer.ini");
        fs::write(&file, settings).unwrap();
        let process = Process::start(Path::new(&program), |command| {
            command.arg(&file);
        });
        until("the pooler listens", async || TcpStream::connect(("127.0.0.1", port)).await.ok()).await;
        Some(Self { database, port, version, _process: process, _folder: folder })
    }

    fn url(&self, login: &str, database: &str) -> String {
        format!("postgres://{login}@127.0.0.1:{}/{database}", self.port)
    }

    /// Calls run and are asked about, with every connection to Postgres through the pooler.
    async fn works(&self) {
        let name = self.database.servers.database();
        let start = |role: &str| {
            Process::start(Path::new(REDIAL), |command| {
                command.arg(role).env("REDIAL_NATS_URL", self.database.servers.nats_url());
                command.env("REDIAL_DATABASE_URL", self.url(&format!("redial_{role}:secret"), name));
                command.env("REDIAL_LISTEN", "127.0.0.1:0").env("REDIAL_LOG_FORMAT", "json");
            })
        };
        let (dispatcher, worker, gateway) = (start("dispatcher"), start("worker"), start("gateway"));
        dispatcher.line("Dispatcher started").await;
        worker.line("Worker started").await;
        gateway.line("Gateway started").await;
        let reader = self.url("redial_reader:secret", name);
        for n in 0..20 {
            let call = self.database.run(&reader, &["call", "echo", &format!("{{\"n\": {n}}}"), "--wait"]).await;
            assert_eq!(call.code, 0, "{}", call.err);
        }
        for question in [&["history"][..], &["stats"], &["health"]] {
            let done = self.database.run(&reader, question).await;
            assert_eq!(done.code, 0, "{question:?}: {}{}", done.out, done.err);
        }
        for process in [gateway, worker, dispatcher] {
            process.interrupt();
            assert!(process.ended().await.success(), "{}", process.output());
            assert!(!process.output().contains("refused a statement"), "{}", process.output());
        }
    }
}

fn program() -> String {
    let own = concat!(env!("CARGO_MANIFEST_DIR"), "/../../.redial/servers/pgbouncer");
    let named = std::env::var("REDIAL_PGBOUNCER").ok();
    named.or_else(|| Path::new(own).exists().then(|| own.to_owned())).unwrap_or_else(|| "pgbouncer".to_owned())
}

async fn version(program: &str) -> (u32, u32) {
    let told = Command::new(program).arg("--version").output().await;
    let told = told.unwrap_or_else(|error| panic!("{program}: {error}; `./dev test` installs it, or set {SKIP}"));
    let told = String::from_utf8(told.stdout).unwrap();
    let mut numbers = told.split([' ', '.', '\n']).filter_map(|part| part.parse().ok());
    (numbers.next().unwrap(), numbers.next().unwrap())
}

#[tokio::test]
async fn a_pooler_of_sessions_works_and_says_what_no_waiting_changes() {
    let database = Database::create().await;
    database.redial("owner", &["migrate"]).await;
    let Some(pooler) = Pooler::start(&database, "session").await else { return };
    pooler.works().await;
    let name = database.servers.database();
    let of = |login: &str, database: &str| pooler.url(login, database);
    database
        .refuses_addresses(&[
            (of("redial_dispatcher:wrong", name), &["set the right user and password in database_url"]),
            (of("redial_nobody:secret", name), &["set the right user and password in database_url"]),
            (
                of("redial_dispatcher:secret", "nothing"),
                &["set the right database in database_url, or create this one"],
            ),
            (
                of("redial_dispatcher:secret", &format!("{name}?options=-c%20jit%3Doff")),
                &["unsupported startup parameter", "take it out of database_url"],
            ),
            // Its role has the settings of a reader.
            (of("redial_reader:secret", name), &["Postgres has statement_timeout = 110s", "run deploy/roles.sql"]),
        ])
        .await;
}

#[tokio::test]
async fn a_pooler_of_transactions_works_if_it_keeps_statements_and_is_refused_otherwise() {
    let database = Database::create().await;
    database.redial("owner", &["migrate"]).await;
    let Some(pooler) = Pooler::start(&database, "transaction").await else { return };
    if pooler.version >= KEEPS_STATEMENTS {
        return pooler.works().await;
    }
    let url = pooler.url("redial_dispatcher:secret", database.servers.database());
    let wanted = ["loses prepared statements", "use PgBouncer 1.21 or newer", "or pool_mode = session"];
    database.refuses_addresses(&[(url, &wanted)]).await;
}
