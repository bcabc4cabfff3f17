//! A primary and a standby that can change places.

use redial_servers::{Postgres, PostgresConfig, Server as _};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};
use uuid::Uuid;

use crate::{databases::tuned, home, until};

/// Two servers of Postgres, of which one is the primary, and the other its synchronous standby. Dropping this kills both and
/// removes their files.
#[derive(Debug)]
pub struct PostgresPair {
    sides: [Side; 2],
    primary: usize,
    password: String,
}

#[derive(Debug)]
struct Side {
    config: PostgresConfig,
    port: u16,
    running: Option<Postgres>,
}

impl PostgresPair {
    /// Starts both, and waits until no commit returns before it is on both.
    pub async fn start() -> Self {
        let config = new_config();
        let primary = Postgres::start(config.clone()).await.unwrap_or_else(|e| panic!("{e}"));
        let (upstream, port) = (primary.upstream(), primary.port());
        let first = Side { config: PostgresConfig { port: Some(port), ..config }, port, running: Some(primary) };
        let second = Side { config: new_config(), port: 0, running: None };
        let mut pair = Self { sides: [first, second], primary: 0, password: upstream.password };
        pair.add_standby().await;
        pair
    }

    /// Returns the URL of both hosts, the standby first.
    pub fn url(&self, database: &str) -> String {
        let [standby, primary] = [1 - self.primary, self.primary].map(|n| self.sides[n].port);
        format!("postgres://redial:{}@127.0.0.1:{standby},127.0.0.1:{primary}/{database}", self.password)
    }

    /// Returns the URL of the primary only.
    pub fn primary_url(&self, database: &str) -> String {
        self.url_of(self.primary, database)
    }

    /// Returns the URL of the other one only: the standby, or an old primary.
    pub fn other_url(&self, database: &str) -> String {
        self.url_of(1 - self.primary, database)
    }

    /// Returns the process id of the primary, to send it signals.
    pub fn primary_pid(&self) -> u32 {
        self.sides[self.primary].running.as_ref().expect("the primary is down").pid()
    }

    /// Kills the primary, as a crash does.
    pub async fn kill_primary(&mut self) {
        self.sides[self.primary].running.take().expect("the primary is down already").kill().await;
    }

    pub async fn stop_primary(&mut self) {
        self.sides[self.primary].running.take().expect("the primary is down already").stop().await;
    }

    pub async fn start_primary(&mut self) {
        self.start_side(self.primary).await;
    }

    pub async fn kill_other(&mut self) {
        self.sides[1 - self.primary].running.take().expect("the other one is down already").kill().await;
    }

    /// Starts the other one as it was: a standby, or an old primary that still takes writes.
    pub async fn start_other(&mut self) {
        self.start_side(1 - self.primary).await;
    }

    /// Starts a standby that lets nobody in, as a server does while it is starting up.
    pub async fn start_other_closed(&mut self) {
        let side = &mut self.sides[1 - self.primary];
        side.config = side.config.clone().setting("hot_standby", "off");
        self.start_side(1 - self.primary).await;
    }

    /// Cuts the standby off: it has what was committed until now, and nothing that follows. No commit waits for it any more.
    pub async fn leave_standby_behind(&self) {
        self.set("synchronous_standby_names", "").await;
        let standby = 1 - self.primary;
        self.run(standby, &["ALTER SYSTEM SET primary_conninfo = ''", "SELECT pg_reload_conf()"]).await;
        let mut db = PgConnection::connect(&self.url_of(standby, "postgres")).await.unwrap();
        until("the standby receives nothing", async || {
            let receives = "SELECT EXISTS (SELECT FROM pg_stat_wal_receiver)";
            let receives: bool = sqlx::query_scalar(receives).fetch_one(&mut db).await.ok()?;
            (!receives).then_some(())
        })
        .await;
    }

    /// Makes the standby the primary, which waits for no standby, because it has none yet. Returns when it takes writes.
    pub async fn promote(&mut self) {
        let new = 1 - self.primary;
        // Before it takes writes: none would return.
        self.run(new, &["ALTER SYSTEM SET synchronous_standby_names = ''", "SELECT pg_reload_conf()"]).await;
        let running = self.sides[new].running.as_ref().expect("the standby is down");
        running.promote().await.unwrap_or_else(|e| panic!("{e}"));
        self.primary = new;
    }

    /// Makes the other one a copy of the primary, whatever it was, and waits until no commit returns before it is on both.
    pub async fn add_standby(&mut self) {
        let other = 1 - self.primary;
        self.sides[other].running = None;
        let upstream = self.sides[self.primary].running.as_ref().expect("the primary is down").upstream();
        let side = &mut self.sides[other];
        remove(&side.config);
        let port = (side.port > 0).then_some(side.port);
        side.config = PostgresConfig { port, standby_of: Some(upstream), ..new_config() };
        self.start_side(other).await;
        let wait = ["ALTER SYSTEM SET synchronous_standby_names = '*'", "SELECT pg_reload_conf()"];
        self.run(self.primary, &wait).await;
        let mut db = PgConnection::connect(&self.primary_url("postgres")).await.unwrap();
        until("the standby is synchronous", async || {
            let synchronous = "SELECT EXISTS (SELECT FROM pg_stat_replication WHERE sync_state = 'sync')";
            let found: bool = sqlx::query_scalar(synchronous).fetch_one(&mut db).await.ok()?;
            found.then_some(())
        })
        .await;
    }

    /// Changes a setting of the primary, and has it read again.
    pub async fn set(&self, setting: &str, value: &str) {
        let set = format!("ALTER SYSTEM SET {setting} = '{value}'");
        self.run(self.primary, &[&set, "SELECT pg_reload_conf()"]).await;
    }

    async fn start_side(&mut self, n: usize) {
        let side = &mut self.sides[n];
        assert!(side.running.is_none(), "it runs already");
        let running = Postgres::start(side.config.clone()).await.unwrap_or_else(|e| panic!("{e}"));
        side.port = running.port();
        side.config.port = Some(side.port);
        side.running = Some(running);
    }

    fn url_of(&self, n: usize, database: &str) -> String {
        format!("postgres://redial:{}@127.0.0.1:{}/{database}", self.password, self.sides[n].port)
    }

    async fn run(&self, n: usize, statements: &[&str]) {
        let mut db = PgConnection::connect(&self.url_of(n, "postgres")).await.unwrap();
        for &statement in statements {
            sqlx::raw_sql(AssertSqlSafe(statement)).execute(&mut db).await.unwrap();
        }
    }
}

impl Drop for PostgresPair {
    fn drop(&mut self) {
        for side in &mut self.sides {
            drop(side.running.take());
            remove(&side.config);
        }
    }
}

fn new_config() -> PostgresConfig {
    // A promotion may wait that long.
    let folder = home::folder().join(format!("postgres_{}", Uuid::new_v4().simple()));
    tuned(folder).setting("wal_retrieve_retry_interval", "200ms")
}

fn remove(config: &PostgresConfig) {
    let _not_there = std::fs::remove_dir_all(&config.folder);
}
