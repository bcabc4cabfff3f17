//! `redial dev`: everything on this machine, in one process besides the two servers.

use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
    time::Instant,
};

use redial_proto::{ApiError, Code};
use redial_queue::QueueConfig;
use redial_servers::{Nats, NatsConfig, Postgres, PostgresConfig, Supervised};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::{
    cli::DevArgs,
    commands::{roles, shutdown},
    output,
    settings::{DevAddresses, Settings},
};

pub(crate) async fn run(settings: &Settings, args: &DevArgs) -> anyhow::Result<ExitCode> {
    let began = Instant::now();
    let shutdown = shutdown()?;
    fs::create_dir_all(&args.folder).map_err(|error| {
        let message = format!("--folder {}: {error}", args.folder.display());
        ApiError::new(Code::InvalidConfiguration, message)
    })?;
    let folder = fs::canonicalize(&args.folder)?;
    let (postgres, nats) = tokio::try_join!(
        Supervised::start::<Postgres>(PostgresConfig::new(folder.join("postgres"))),
        Supervised::start::<Nats>(NatsConfig::new(folder.join("nats"))),
    )?;
    let done = run_roles(settings, args, &folder, (&postgres, &nats), began, shutdown).await;
    let _ = fs::remove_file(DevAddresses::path(&folder));
    tokio::join!(postgres.stop(), nats.stop());
    done.map(|()| ExitCode::SUCCESS)
}

async fn run_roles(
    settings: &Settings,
    args: &DevArgs,
    folder: &Path,
    (postgres, nats): (&Supervised, &Supervised),
    began: Instant,
    shutdown: CancellationToken,
) -> anyhow::Result<()> {
    redial_store::admin::migrate(postgres.url()).await?;
    let keep = tokio::spawn(keep_addresses(
        folder.to_owned(),
        postgres.url().to_owned(),
        postgres.pid(),
        nats.url().to_owned(),
        nats.pid(),
    ));
    let queue = QueueConfig { url: nats.url().to_owned(), name: "redial-dev".to_owned(), ..QueueConfig::default() };
    // The worker stops first and drains while the dispatcher still takes its results; whoever fails takes both down.
    let (stop_worker, stop_dispatcher) = (shutdown.child_token(), CancellationToken::new());
    let ready = Arc::new(Notify::new());
    let dispatcher = async {
        let _last = stop_worker.clone().drop_guard();
        if args.only_servers {
            ready.notify_one();
            stop_dispatcher.cancelled().await;
            return anyhow::Ok(());
        }
        let config = settings.dispatcher(&args.dispatcher, queue.clone(), postgres.url().to_owned())?;
        Ok(redial_dispatcher::run(config, stop_dispatcher.clone(), || ready.notify_one()).await?)
    };
    let worker = async {
        let _last = stop_dispatcher.clone().drop_guard();
        tokio::select! {
            () = ready.notified() => {}
            () = stop_worker.cancelled() => return anyhow::Ok(()),
        }
        let greeting = Greeting {
            json: settings.json(),
            began,
            nats_url: nats.url().to_owned(),
            database_url: postgres.url().to_owned(),
            folder: args.folder.clone(),
        };
        if args.only_servers || args.no_worker {
            greeting.tell();
            stop_worker.cancelled().await;
            return Ok(());
        }
        let config = settings.worker(&args.worker, queue.clone())?;
        roles::run_worker(settings, &args.worker, config, stop_worker.clone(), || greeting.tell()).await
    };
    let done = tokio::try_join!(dispatcher, worker).map(|_| ());
    keep.abort();
    done
}

/// What `redial dev` says once calls can be made.
struct Greeting {
    json: bool,
    began: Instant,
    nats_url: String,
    database_url: String,
    folder: PathBuf,
}

impl Greeting {
    fn tell(self) {
        let ready_ms = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let Self { nats_url, database_url, folder, .. } = self;
        if self.json {
            let said = serde_json::json!({ "ready_ms": ready_ms, "nats_url": nats_url, "database_url": database_url });
            return output::line(said.to_string());
        }
        output::line(format!("redial dev is ready after {ready_ms} ms"));
        output::line(format!("  Postgres  {database_url}"));
        output::line(format!("  NATS      {nats_url}"));
        output::line(format!("  data      {}", folder.display()));
        output::line("In another terminal, in this folder: redial call echo '{\"hello\": \"world\"}' --wait");
        output::line("Ctrl-C stops everything.");
    }
}

/// Writes how this can be reached, for the other commands, again whenever a server was restarted.
async fn keep_addresses(
    folder: PathBuf,
    database_url: String,
    mut postgres: tokio::sync::watch::Receiver<Option<u32>>,
    nats_url: String,
    mut nats: tokio::sync::watch::Receiver<Option<u32>>,
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
            tracing::warn!(%error, "other commands will not find this by themselves");
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

/// Only this user may read it: it holds passwords. Replaced whole, so that no reader sees half of it.
fn write_private(path: &Path, addresses: &DevAddresses) -> std::io::Result<()> {
    use std::{io::Write, os::unix::fs::OpenOptionsExt};
    let draft = path.with_extension("draft");
    let mut file = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&draft)?;
    file.write_all(serde_json::to_string_pretty(addresses)?.as_bytes())?;
    fs::rename(draft, path)
}
