//! `redial dev`: private servers, a dispatcher and a worker on this machine, in one process besides the servers.

use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Instant,
};

use redial_proto::{ApiError, Code};
use redial_queue::QueueConfig;
use redial_servers::{Nats, NatsConfig, Postgres, PostgresConfig, Supervised};
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

use crate::{
    cli::DevArgs,
    commands::roles,
    connect, output,
    settings::{DevAddresses, Settings},
};

pub(crate) async fn run(settings: &Settings, args: &DevArgs) -> anyhow::Result<ExitCode> {
    let began = Instant::now();
    let shutdown = connect::shutdown()?;
    fs::create_dir_all(&args.folder).map_err(|error| {
        let message = format!("--folder {}: {error}", args.folder.display());
        ApiError::new(Code::InvalidConfiguration, message)
    })?;
    let folder = fs::canonicalize(&args.folder)?;
    let (postgres, nats) = tokio::try_join!(
        Supervised::start::<Postgres>(PostgresConfig::new(folder.join("postgres"))),
        Supervised::start::<Nats>(NatsConfig::new(folder.join("nats"))),
    )?;
    let stack = Stack { settings, args, folder, postgres, nats, began };
    let done = Box::pin(stack.run(&shutdown)).await;
    let _ = fs::remove_file(DevAddresses::path(&stack.folder));
    tokio::join!(stack.postgres.stop(), stack.nats.stop());
    done.map(|()| ExitCode::SUCCESS)
}

struct Stack<'a> {
    settings: &'a Settings,
    args: &'a DevArgs,
    folder: PathBuf,
    postgres: Supervised,
    nats: Supervised,
    began: Instant,
}

impl Stack<'_> {
    /// Runs both roles until the shutdown. The worker stops first and drains, while the dispatcher still ingests its
    /// results. If one role fails, both stop.
    async fn run(&self, shutdown: &CancellationToken) -> anyhow::Result<()> {
        redial_store::admin::migrate(self.postgres.url()).await?;
        let keep = tokio::spawn(keep_addresses(
            self.folder.clone(),
            (self.postgres.url().to_owned(), self.postgres.pid()),
            (self.nats.url().to_owned(), self.nats.pid()),
        ));
        let (stop_worker, stop_dispatcher) = (shutdown.child_token(), CancellationToken::new());
        let ready = Notify::new();
        let dispatcher = async {
            let _last = stop_worker.clone().drop_guard();
            self.dispatcher(&stop_dispatcher, &ready).await
        };
        let worker = async {
            let _last = stop_dispatcher.clone().drop_guard();
            tokio::select! {
                () = ready.notified() => self.worker(&stop_worker).await,
                () = stop_worker.cancelled() => Ok(()),
            }
        };
        let done = tokio::try_join!(dispatcher, worker).map(|_| ());
        keep.abort();
        done
    }

    async fn dispatcher(&self, stop: &CancellationToken, ready: &Notify) -> anyhow::Result<()> {
        if self.args.only_servers {
            ready.notify_one();
            stop.cancelled().await;
            return Ok(());
        }
        let database_url = self.postgres.url().to_owned();
        let config = self.settings.dispatcher(&self.args.dispatcher, self.queue(), database_url)?;
        Ok(redial_dispatcher::run(config, stop.clone(), || ready.notify_one()).await?)
    }

    async fn worker(&self, stop: &CancellationToken) -> anyhow::Result<()> {
        let greeting = Greeting {
            json: self.settings.json(),
            began: self.began,
            nats_url: self.nats.url().to_owned(),
            database_url: self.postgres.url().to_owned(),
            folder: self.args.folder.clone(),
        };
        if self.args.only_servers || self.args.no_worker {
            greeting.print();
            stop.cancelled().await;
            return Ok(());
        }
        let config = self.settings.worker(&self.args.worker, self.queue())?;
        roles::run_worker(self.settings, &self.args.worker, config, stop.clone(), || greeting.print()).await
    }

    fn queue(&self) -> QueueConfig {
        QueueConfig { url: self.nats.url().to_owned(), name: "redial-dev".to_owned(), ..QueueConfig::default() }
    }
}

/// What `redial dev` prints once it accepts calls.
struct Greeting {
    json: bool,
    began: Instant,
    nats_url: String,
    database_url: String,
    folder: PathBuf,
}

impl Greeting {
    fn print(self) {
        let ready_ms = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let Self { nats_url, database_url, folder, .. } = self;
        if self.json {
            let ready = serde_json::json!({ "ready_ms": ready_ms, "nats_url": nats_url, "database_url": database_url });
            return output::announce(ready.to_string());
        }
        output::announce(format!("redial dev is ready after {ready_ms} ms"));
        output::announce(format!("  Postgres  {database_url}"));
        output::announce(format!("  NATS      {nats_url}"));
        output::announce(format!("  data      {}", folder.display()));
        output::announce("In another terminal, in this folder: redial call echo '{\"hello\": \"world\"}' --wait");
        output::announce("Ctrl-C stops everything.");
    }
}

/// Writes the addresses for other commands, and again after each restart of a server.
async fn keep_addresses(
    folder: PathBuf,
    (database_url, mut postgres): (String, watch::Receiver<Option<u32>>),
    (nats_url, mut nats): (String, watch::Receiver<Option<u32>>),
) {
    loop {
        let addresses = DevAddresses {
            pid: std::process::id(),
            nats_url: nats_url.clone(),
            nats_pid: *nats.borrow_and_update(),
            database_url: database_url.clone(),
            postgres_pid: *postgres.borrow_and_update(),
        };
        if let Err(error) = write_private(&DevAddresses::path(&folder), &addresses) {
            tracing::warn!(%error, "Failed to write the addresses for other commands");
        }
        let changed = tokio::select! {
            changed = postgres.changed() => changed,
            changed = nats.changed() => changed,
        };
        if changed.is_err() {
            return;
        }
    }
}

/// Only this user may read the file, because it contains passwords. It is replaced atomically.
fn write_private(path: &Path, addresses: &DevAddresses) -> std::io::Result<()> {
    use std::{io::Write, os::unix::fs::OpenOptionsExt};
    let draft = path.with_extension("draft");
    let mut file = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&draft)?;
    file.write_all(serde_json::to_string_pretty(addresses)?.as_bytes())?;
    fs::rename(draft, path)
}
