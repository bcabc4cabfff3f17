//! Postgres and NATS for one test.

use std::path::PathBuf;

use redial_servers::{Nats, NatsConfig, Postgres, PostgresConfig, Server as _};

use crate::{
    PostgresPair,
    databases::{Shared, create_and_migrate, tuned},
    home::{self, unique},
    nats_cluster::NatsCluster,
};

/// A nats-server of the test's own, and a Postgres: shared with other tests, or its own too. Dropping this kills the servers
/// that are not shared, removes their files, and drops the test's database.
#[derive(Debug)]
pub struct Servers {
    database: String,
    shared: Option<&'static Shared>,
    own: Option<Own>,
    postgres_url: String,
    database_url: String,
    nats: Option<Nats>,
    nats_config: NatsConfig,
    nats_url: String,
    nats_store: PathBuf,
    nats_crashed: bool,
    redundant: Redundant,
}

/// What takes the place of a single server.
#[derive(Debug, Default)]
struct Redundant {
    cluster: Option<NatsCluster>,
    pair: Option<PostgresPair>,
}

#[derive(Debug)]
struct Own {
    config: PostgresConfig,
    running: Option<Postgres>,
}

impl Servers {
    /// Starts NATS, and uses the Postgres that all tests of this process, or of this run, share. It is fast, not durable
    /// (`fsync=off`), and must not be stopped by a test.
    pub async fn start() -> Self {
        let (shared, database) = (Shared::get().await, unique("test"));
        let urls = (shared.url().to_owned(), shared.url_of(&database));
        let mut servers = Self::around(urls, database, (None, None)).await;
        servers.shared = Some(shared);
        servers
    }

    /// Starts NATS and a Postgres of its own, as durable as in production, that can be killed and started again.
    pub async fn start_own() -> Self {
        Self::start_own_on(None, None).await
    }

    /// Starts them like [`Servers::start_own`], with the store of NATS in a folder of the caller's choice, and with
    /// other accounts: see [`NatsConfig`].
    pub async fn start_own_on(nats_store: Option<PathBuf>, accounts: Option<String>) -> Self {
        let config = tuned(home::folder().join(unique("postgres")));
        let postgres = Postgres::start(config.clone()).await.unwrap_or_else(|e| panic!("{e}"));
        let database = unique("test");
        let urls = (postgres.url(), postgres.url_of(&database));
        let mut servers = Self::around(urls, database, (nats_store, accounts)).await;
        let config = PostgresConfig { port: Some(postgres.port()), ..config };
        servers.own = Some(Own { config, running: Some(postgres) });
        servers
    }

    async fn around(urls: (String, String), database: String, nats: (Option<PathBuf>, Option<String>)) -> Self {
        let ((postgres_url, database_url), (store, accounts)) = (urls, nats);
        let nats_config = NatsConfig { store, accounts, ..NatsConfig::new(home::folder().join(unique("nats"))) };
        let nats = Nats::start(nats_config.clone()).await.unwrap_or_else(|e| panic!("{e}"));
        Self {
            postgres_url,
            database_url,
            database,
            shared: None,
            own: None,
            nats_config: NatsConfig { port: Some(nats.port()), ..nats_config },
            nats_url: nats.url(),
            nats_store: nats.store().to_owned(),
            nats: Some(nats),
            nats_crashed: false,
            redundant: Redundant::default(),
        }
    }

    /// Puts a cluster of three in place of the one NATS.
    pub async fn with_cluster(mut self) -> Self {
        self.stop_nats().await;
        let (folder, accounts) = (home::folder().join(unique("cluster")), self.nats_config.accounts.clone());
        let cluster = NatsCluster::start(folder, 3, accounts).await;
        self.nats_url = cluster.url();
        self.redundant.cluster = Some(cluster);
        self
    }

    /// Puts a primary and its synchronous standby in place of the one Postgres.
    pub async fn with_standby(mut self) -> Self {
        if self.own.is_some() {
            self.stop_postgres().await;
        }
        let pair = PostgresPair::start().await;
        self.postgres_url = pair.url("redial");
        self.database_url = pair.url(&self.database);
        self.redundant.pair = Some(pair);
        self
    }

    /// Creates the test's own database, with all tables.
    pub async fn create_database(&self) {
        match (self.shared, &self.redundant.pair) {
            (_, Some(pair)) => create_and_migrate(&pair.primary_url("redial"), &self.database).await,
            (Some(shared), None) => shared.create(&self.database).await,
            (None, None) => create_and_migrate(&self.postgres_url, &self.database).await,
        }
    }

    /// Returns the cluster of NATS, if it is one.
    pub fn cluster(&mut self) -> Option<&mut NatsCluster> {
        self.redundant.cluster.as_mut()
    }

    /// Returns Postgres with its standby, if it has one.
    pub fn pair(&mut self) -> Option<&mut PostgresPair> {
        self.redundant.pair.as_mut()
    }

    /// Returns the URL of one server of NATS that runs.
    pub fn one_nats_url(&self) -> &str {
        self.redundant.cluster.as_ref().map_or(&self.nats_url, |cluster| cluster.running_url().expect("NATS is down"))
    }

    /// Returns the URL of the test's own database at the host that is the primary now.
    pub fn primary_url(&self) -> String {
        let pair = self.redundant.pair.as_ref();
        pair.map_or_else(|| self.database_url.clone(), |pair| pair.primary_url(&self.database))
    }

    /// Returns the URL of an existing database, as a superuser who can create the test's own database.
    pub fn postgres_url(&self) -> &str {
        &self.postgres_url
    }

    /// Returns a name that no other test uses, for the test's own database. It does not exist yet.
    pub fn database(&self) -> &str {
        &self.database
    }

    /// Returns the URL of the test's own database, once created.
    pub fn database_url(&self) -> &str {
        &self.database_url
    }

    /// Returns the URL of the test's own NATS; the same after a restart.
    pub fn nats_url(&self) -> &str {
        &self.nats_url
    }

    pub async fn kill_nats(&mut self) {
        self.nats_crashed = true;
        if let Some(cluster) = &mut self.redundant.cluster {
            for n in 0..cluster.urls().len() {
                cluster.kill(n).await;
            }
            return;
        }
        self.nats.take().expect("NATS is down already").kill().await;
    }

    /// True once NATS was killed. A work queue may then keep acknowledged messages that are never delivered again, because
    /// nats-server stores the state of a consumer and the removal of messages at different times (measured with 2.9.10).
    pub fn nats_crashed(&self) -> bool {
        self.nats_crashed
    }

    pub async fn stop_nats(&mut self) {
        if let Some(cluster) = &mut self.redundant.cluster {
            for n in 0..cluster.urls().len() {
                cluster.stop(n).await;
            }
            return;
        }
        self.nats.take().expect("NATS is down already").stop().await;
    }

    /// Starts NATS again, at the same address.
    pub async fn start_nats(&mut self) {
        if let Some(cluster) = &mut self.redundant.cluster {
            return cluster.start_again().await;
        }
        assert!(self.nats.is_none(), "NATS runs already");
        self.nats = Some(Nats::start(self.nats_config.clone()).await.unwrap_or_else(|e| panic!("{e}")));
    }

    /// Removes all streams and consumers, as a lost disk does. NATS must be down.
    pub fn wipe_nats(&self) {
        if let Some(cluster) = &self.redundant.cluster {
            return cluster.wipe();
        }
        assert!(self.nats.is_none(), "NATS runs; stop it before its store is removed");
        std::fs::remove_dir_all(&self.nats_store).unwrap();
    }

    /// Returns the process ids of NATS, to send them signals.
    pub fn nats_pids(&self) -> Vec<u32> {
        match &self.redundant.cluster {
            Some(cluster) => (0..cluster.urls().len()).filter_map(|n| cluster.pid(n)).collect(),
            None => vec![self.nats_pid()],
        }
    }

    /// Returns the process id of NATS, to send it signals.
    pub fn nats_pid(&self) -> u32 {
        self.nats.as_ref().expect("NATS is down").pid()
    }

    /// Kills Postgres, as a crash does; only after [`Servers::start_own`].
    pub async fn kill_postgres(&mut self) {
        if let Some(pair) = &mut self.redundant.pair {
            return pair.kill_primary().await;
        }
        self.own_mut().running.take().expect("Postgres is down already").kill().await;
    }

    /// Shuts Postgres down; only after [`Servers::start_own`].
    pub async fn stop_postgres(&mut self) {
        if let Some(pair) = &mut self.redundant.pair {
            return pair.stop_primary().await;
        }
        self.own_mut().running.take().expect("Postgres is down already").stop().await;
    }

    /// Starts Postgres again, at the same address; only after [`Servers::start_own`].
    pub async fn start_postgres(&mut self) {
        if let Some(pair) = &mut self.redundant.pair {
            return pair.start_primary().await;
        }
        let own = self.own_mut();
        assert!(own.running.is_none(), "Postgres runs already");
        own.running = Some(Postgres::start(own.config.clone()).await.unwrap_or_else(|e| panic!("{e}")));
    }

    /// Returns the process id of the test's own Postgres, to send it signals; only after [`Servers::start_own`].
    pub fn postgres_pid(&self) -> u32 {
        if let Some(pair) = &self.redundant.pair {
            return pair.primary_pid();
        }
        let own = self.own.as_ref().expect("this Postgres is shared; use Servers::start_own");
        own.running.as_ref().expect("Postgres is down").pid()
    }

    fn own_mut(&mut self) -> &mut Own {
        self.own.as_mut().expect("this Postgres is shared; use Servers::start_own")
    }
}

/// Drops the test's database and the servers. What one that is just being killed still writes is removed when the test
/// process has ended.
impl Drop for Servers {
    fn drop(&mut self) {
        drop(self.nats.take());
        if let Some(shared) = self.shared {
            shared.drop_soon(std::mem::take(&mut self.database));
        }
        let own = self.own.take().map(|own| own.config.folder);
        for folder in own.iter().chain([&self.nats_config.folder]) {
            let _ = std::fs::remove_dir_all(folder);
        }
    }
}
