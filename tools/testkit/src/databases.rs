//! The Postgres that tests share, and databases on it: copies of one that has all migrations.

use std::{
    env,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    io::{Read as _, Write as _},
    path::Path,
    sync::{LazyLock, mpsc},
    thread,
};

use redial_servers::{Postgres, PostgresConfig, Server as _};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection, migrate::Migrator};
use tokio::sync::OnceCell;

use crate::home;

/// The URL of a Postgres for all test processes of a run, as a superuser. Without it, each process starts one of its own.
const OF_THE_RUN: &str = "REDIAL_TEST_POSTGRES";
const MIGRATIONS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../migrations");
/// The advisory lock of the process that makes the template.
const MAKING_TEMPLATE: i64 = 0x7265_6469_616c;

static SHARED: OnceCell<Shared> = OnceCell::const_new();

/// A Postgres that is fast, not durable (`fsync=off`), and must not be stopped by a test.
#[derive(Debug)]
pub(crate) struct Shared {
    /// Of an existing database, as a superuser.
    url: String,
    template: OnceCell<String>,
    /// Ends with the process.
    _own: Option<Postgres>,
}

/// Returns the settings of a small server.
pub(crate) fn tuned(folder: impl AsRef<Path>) -> PostgresConfig {
    PostgresConfig::new(folder.as_ref())
        .setting("shared_buffers", "32MB")
        .setting("max_connections", "300")
        .setting("min_wal_size", "32MB")
        .setting("max_wal_size", "256MB")
}

async fn start() -> Postgres {
    let config = tuned(home::folder().join("postgres")).setting("fsync", "off").setting("full_page_writes", "off");
    Postgres::start(config).await.unwrap_or_else(|e| panic!("{e}"))
}

/// Starts a Postgres for the test processes of a run, prints what `REDIAL_TEST_POSTGRES` must be, and stops it when standard
/// input ends.
pub async fn serve_postgres() {
    let postgres = start().await;
    let mut out = std::io::stdout();
    writeln!(out, "{}", postgres.url()).and_then(|()| out.flush()).unwrap();
    let ended = tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new()));
    ended.await.unwrap().unwrap();
    postgres.stop().await;
}

/// A database with all tables, on the Postgres that all tests share. Dropping this drops the database.
#[derive(Debug)]
pub struct Database {
    name: String,
    url: String,
    shared: &'static Shared,
}

impl Database {
    pub async fn create() -> Self {
        let (shared, name) = (Shared::get().await, home::unique("test"));
        shared.create(&name).await;
        Self { url: shared.url_of(&name), name, shared }
    }

    /// Returns its URL, as a superuser.
    pub fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        self.shared.drop_soon(std::mem::take(&mut self.name));
    }
}

impl Shared {
    pub(crate) async fn get() -> &'static Self {
        SHARED
            .get_or_init(async || {
                let of_the_run = env::var(OF_THE_RUN).ok().filter(|url| !url.is_empty());
                let own = if of_the_run.is_none() { Some(start().await) } else { None };
                let url = of_the_run.unwrap_or_else(|| own.as_ref().unwrap().url());
                Self { url, template: OnceCell::new(), _own: own }
            })
            .await
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    pub(crate) fn url_of(&self, database: &str) -> String {
        of(&self.url, database)
    }

    /// Creates a database with all tables.
    pub(crate) async fn create(&self, database: &str) {
        let template = self.template.get_or_init(async || make_template(&self.url).await).await;
        // Copying files is faster than logging what they hold (measured), as long as nothing is written durably.
        let create = format!("CREATE DATABASE \"{database}\" TEMPLATE \"{template}\" STRATEGY file_copy");
        let mut db = PgConnection::connect(&self.url).await.unwrap();
        execute(&mut db, &create).await;
        db.close().await.unwrap();
    }

    /// Drops a database soon, with the connections to it. Nothing waits for it, and what the end of the process leaves ends with
    /// the server.
    pub(crate) fn drop_soon(&self, database: String) {
        static DROPS: LazyLock<mpsc::Sender<(String, String)>> = LazyLock::new(|| {
            let (sender, drops) = mpsc::channel();
            thread::spawn(move || drop_all(&drops));
            sender
        });
        let _process_ends = DROPS.send((self.url.clone(), database));
    }
}

fn drop_all(drops: &mpsc::Receiver<(String, String)>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for (url, database) in drops {
        let _server_is_gone: Result<(), sqlx::Error> = runtime.block_on(async {
            let mut db = PgConnection::connect(&url).await?;
            let drop = format!("DROP DATABASE IF EXISTS \"{database}\" WITH (FORCE)");
            sqlx::raw_sql(AssertSqlSafe(drop)).execute(&mut db).await?;
            db.close().await
        });
    }
}

/// Creates a database with all tables on any Postgres.
pub(crate) async fn create_and_migrate(server: &str, database: &str) {
    let mut db = PgConnection::connect(server).await.unwrap();
    execute(&mut db, &format!("CREATE DATABASE \"{database}\"")).await;
    db.close().await.unwrap();
    let mut db = PgConnection::connect(&of(server, database)).await.unwrap();
    migrations().await.run(&mut db).await.unwrap();
    db.close().await.unwrap();
}

/// Returns the database that others are copies of, made by the first process that needs it; its name tells the
/// migrations apart. While it is made it has another name: nobody copies half of it, and one whose maker was killed is
/// made again.
async fn make_template(server: &str) -> String {
    let mut hasher = DefaultHasher::new();
    migrations().await.iter().for_each(|migration| migration.checksum.hash(&mut hasher));
    let (template, unfinished) = (format!("template_{:016x}", hasher.finish()), "template_unfinished");
    let mut db = PgConnection::connect(server).await.unwrap();
    sqlx::query("SELECT pg_advisory_lock($1)").bind(MAKING_TEMPLATE).execute(&mut db).await.unwrap();
    let exists =
        sqlx::query_scalar::<_, bool>("SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)").bind(&template);
    if !exists.fetch_one(&mut db).await.unwrap() {
        execute(&mut db, &format!("DROP DATABASE IF EXISTS {unfinished}")).await;
        create_and_migrate(server, unfinished).await;
        execute(&mut db, &format!("ALTER DATABASE {unfinished} RENAME TO \"{template}\"")).await;
    }
    // This unlocks it.
    db.close().await.unwrap();
    template
}

async fn migrations() -> Migrator {
    Migrator::new(Path::new(MIGRATIONS)).await.unwrap()
}

async fn execute(db: &mut PgConnection, statement: &str) {
    sqlx::raw_sql(AssertSqlSafe(statement)).execute(db).await.unwrap_or_else(|e| panic!("{statement}: {e}"));
}

fn of(url: &str, database: &str) -> String {
    let (server, _) = url.rsplit_once('/').expect("the URL of a database");
    format!("{server}/{database}")
}
