//! Private Postgres and NATS for the measurement, with the durability that Redial asks for.

use std::{
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use redial_queue::{Queue, QueueConfig};
use redial_servers::{Nats, NatsConfig, Postgres, PostgresConfig, Supervised};
use redial_store::admin;
use rustix::process::{Pid, Signal, kill_process};

use crate::{
    database::Database,
    environment::{self, Environment},
};

/// Where they keep their data.
const FOLDER: &str = ".redial/bench";
/// The database with a long history, on the same server.
const HISTORY: &str = "redial_history";
/// Disk that an ended call of the history takes, with its share of the write-ahead log.
const BYTES_OF_CALL: u64 = 2_200;

pub(crate) struct Servers {
    pub(crate) folder: PathBuf,
    postgres: Supervised,
    nats: Supervised,
    pub(crate) queue: Queue,
}

impl Servers {
    /// Starts both on an empty folder, Postgres with these settings.
    pub(crate) async fn start(settings: Vec<(String, String)>) -> anyhow::Result<Self> {
        remove(Path::new(FOLDER))?;
        Self::start_in(Path::new(FOLDER), settings).await
    }

    /// Starts both on a folder that may have their data.
    pub(crate) async fn start_in(folder: &Path, settings: Vec<(String, String)>) -> anyhow::Result<Self> {
        std::fs::create_dir_all(folder)?;
        let folder = std::fs::canonicalize(folder)?;
        let config = PostgresConfig { settings, ..PostgresConfig::new(folder.join("postgres")) };
        let (postgres, nats) = tokio::try_join!(
            Supervised::start::<Postgres>(config),
            Supervised::start::<Nats>(NatsConfig::new(folder.join("nats"))),
        )?;
        let queue = connect(&nats).await?;
        Ok(Self { folder, postgres, nats, queue })
    }

    /// Where a fleet on one of the databases runs.
    pub(crate) fn environment(&self, database: &Database) -> anyhow::Result<Environment> {
        let (nats_url, database_url) = (self.nats_url().to_owned(), database.url.clone());
        Ok(Environment { folder: self.folder.clone(), nats_url, database_url, redial: environment::built_here()? })
    }

    /// One more NATS, whose data is removed with the rest.
    pub(crate) async fn another_nats(&self, name: &str) -> anyhow::Result<(Supervised, Queue)> {
        let nats = Supervised::start::<Nats>(NatsConfig::new(self.folder.join(name))).await?;
        let queue = connect(&nats).await?;
        Ok((nats, queue))
    }

    pub(crate) fn nats_url(&self) -> &str {
        self.nats.url()
    }

    /// What NATS stores, in bytes.
    pub(crate) fn nats_store_bytes(&self) -> std::io::Result<f64> {
        bytes(&self.nats_store())
    }

    /// Removes what NATS stores and kills it; returns once it has been restarted.
    pub(crate) async fn wipe_nats(&self) -> anyhow::Result<()> {
        let mut pid = self.nats.pid();
        let old = *pid.borrow();
        let running = old.and_then(|pid| Pid::from_raw(pid.cast_signed())).context("NATS is down")?;
        std::fs::remove_dir_all(self.nats_store())?;
        kill_process(running, Signal::KILL)?;
        pid.wait_for(|new| new.is_some() && *new != old).await?;
        Ok(())
    }

    fn nats_store(&self) -> PathBuf {
        self.folder.join("nats/jetstream")
    }

    /// The database of all cases but (e).
    pub(crate) async fn database(&self) -> anyhow::Result<Database> {
        Database::open(self.postgres.url()).await
    }

    /// The database of case (e).
    pub(crate) async fn history(&self) -> anyhow::Result<Database> {
        self.another(HISTORY).await
    }

    /// A database for a case that leaves calls which never end.
    pub(crate) async fn another(&self, name: &str) -> anyhow::Result<Database> {
        Database::open(&self.create(name).await?).await
    }

    /// A database that exists.
    pub(crate) async fn existing(&self, name: &str) -> anyhow::Result<Database> {
        Database::open(&self.url_of(name)).await
    }

    /// A database without tables; returns its URL.
    pub(crate) async fn create(&self, name: &str) -> anyhow::Result<String> {
        admin::create_database(self.postgres.url(), name).await?;
        Ok(self.url_of(name))
    }

    fn url_of(&self, database: &str) -> String {
        let url = self.postgres.url();
        let server = url.rsplit_once('/').map_or(url, |(server, _)| server);
        format!("{server}/{database}")
    }

    /// Fails if the disk has no room for so many ended calls.
    pub(crate) fn check_room(&self, calls: u32) -> anyhow::Result<()> {
        let disk = rustix::fs::statvfs(&self.folder)?;
        let (free, needed) = (disk.f_bavail * disk.f_frsize, u64::from(calls) * BYTES_OF_CALL);
        let gb = |bytes: u64| bytes.div_ceil(1_000_000_000);
        anyhow::ensure!(
            free >= needed,
            "--history {calls} needs about {} GB in {}, and {} GB are free; allowed here: up to {}",
            gb(needed),
            self.folder.display(),
            gb(free),
            free / BYTES_OF_CALL
        );
        Ok(())
    }

    /// Stops both and removes their data, which may be gigabytes.
    pub(crate) async fn stop(self) -> anyhow::Result<()> {
        let folder = self.folder.clone();
        self.stop_and_keep().await;
        remove(&folder)
    }

    /// Stops both.
    pub(crate) async fn stop_and_keep(self) {
        let Self { postgres, nats, queue, .. } = self;
        // Or it would try to reconnect, and say so.
        drop(queue);
        tokio::join!(postgres.stop(), nats.stop());
    }
}

async fn connect(nats: &Supervised) -> anyhow::Result<Queue> {
    let config = QueueConfig { url: nats.url().to_owned(), name: "redial-bench".to_owned(), ..QueueConfig::default() };
    Ok(Queue::connect(&config).await?)
}

/// The disk that the files of a folder occupy, in bytes.
fn bytes(folder: &Path) -> std::io::Result<f64> {
    let mut all = 0.0;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        #[expect(clippy::cast_precision_loss, reason = "far below 2^52 bytes")]
        let own = metadata.blocks() as f64 * 512.0;
        all += if metadata.is_dir() { bytes(&entry.path())? } else { own };
    }
    Ok(all)
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
