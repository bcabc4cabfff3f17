//! Private Postgres and NATS for the measurement, with the durability that Redial asks for.

use std::path::{Path, PathBuf};

use redial_queue::{Queue, QueueConfig};
use redial_servers::{Nats, NatsConfig, Postgres, PostgresConfig, Supervised};
use redial_store::admin;

use crate::{
    database::Database,
    fleet::{self, Environment},
};

/// Where they keep their data.
const FOLDER: &str = ".redial/bench";

pub(crate) struct Servers {
    pub(crate) folder: PathBuf,
    postgres: Supervised,
    nats: Supervised,
    pub(crate) queue: Queue,
}

impl Servers {
    /// Starts both on an empty folder, Postgres with the settings of `redial dev`, and perhaps other buffers.
    pub(crate) async fn start(shared_buffers: Option<&str>) -> anyhow::Result<Self> {
        remove(Path::new(FOLDER))?;
        std::fs::create_dir_all(FOLDER)?;
        let folder = std::fs::canonicalize(FOLDER)?;
        let buffers = shared_buffers.map(|size| ("shared_buffers".to_owned(), size.to_owned()));
        let settings = redial_servers::settings_for_machine().into_iter().chain(buffers).collect();
        let config = PostgresConfig { settings, ..PostgresConfig::new(folder.join("postgres")) };
        let (postgres, nats) = tokio::try_join!(
            Supervised::start::<Postgres>(config),
            Supervised::start::<Nats>(NatsConfig::new(folder.join("nats"))),
        )?;
        let queue = connect(&nats).await?;
        Ok(Self { folder, postgres, nats, queue })
    }

    /// Returns where a fleet on one of the databases runs.
    pub(crate) fn environment(&self, database: &Database) -> anyhow::Result<Environment> {
        let (nats_url, database_url) = (self.nats_url().to_owned(), database.url.clone());
        Ok(Environment { folder: self.folder.clone(), nats_url, database_url, redial: fleet::built_here()? })
    }

    /// Starts one more NATS, whose data is removed with the rest.
    pub(crate) async fn another_nats(&self, name: &str) -> anyhow::Result<(Supervised, Queue)> {
        let nats = Supervised::start::<Nats>(NatsConfig::new(self.folder.join(name))).await?;
        let queue = connect(&nats).await?;
        Ok((nats, queue))
    }

    pub(crate) fn nats_url(&self) -> &str {
        self.nats.url()
    }

    /// Returns the database of all sides that have none of their own.
    pub(crate) async fn database(&self) -> anyhow::Result<Database> {
        Database::open(self.postgres.url()).await
    }

    /// Creates a database with Redial's tables for one side.
    pub(crate) async fn another(&self, name: &str) -> anyhow::Result<Database> {
        Database::open(&self.create(name).await?).await
    }

    /// Creates a database without tables; returns its URL.
    pub(crate) async fn create(&self, name: &str) -> anyhow::Result<String> {
        let url = self.postgres.url();
        admin::create_database(url, name).await?;
        let server = url.rsplit_once('/').map_or(url, |(server, _)| server);
        Ok(format!("{server}/{name}"))
    }

    /// Stops both and removes their data, which may be gigabytes.
    pub(crate) async fn stop(self) -> anyhow::Result<()> {
        let Self { folder, postgres, nats, queue } = self;
        // Or it would try to reconnect, and say so.
        drop(queue);
        tokio::join!(postgres.stop(), nats.stop());
        remove(&folder)
    }
}

async fn connect(nats: &Supervised) -> anyhow::Result<Queue> {
    let config = QueueConfig { url: nats.url().to_owned(), name: "redial-bench".to_owned(), ..QueueConfig::default() };
    Ok(Queue::connect(&config).await?)
}

/// Removes the folder, and what lies elsewhere because the folder is closed to the user that Postgres runs as.
fn remove(folder: &Path) -> anyhow::Result<()> {
    if let Ok(elsewhere) = std::fs::read_link(folder.join("postgres/elsewhere")) {
        std::fs::remove_dir_all(elsewhere)?;
    }
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}
