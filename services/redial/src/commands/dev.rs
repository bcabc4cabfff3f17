//! `redial dev`: private servers, a dispatcher, a gateway and a worker on this machine, in one process besides the servers.

mod greeting;

use std::{
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Instant,
};

use anyhow::Context as _;
use chrono::{DateTime, Utc};
use redial_proto::{ApiError, Code};
use redial_queue::QueueConfig;
use redial_servers::{Nats, NatsConfig, Postgres, PostgresConfig, Supervised};
use redial_worker::WebhookKey;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use self::greeting::{Greeting, Next};
use crate::{
    cli::DevArgs,
    commands::{
        roles,
        start_files::{self, Found},
    },
    connect::{self, STOPPING},
    dev_folder::{self, DEV_FOLDER, DevAddresses, DevState, public},
    output,
    settings::Settings,
};

/// Where webhooks may be delivered besides the public internet, unless set: whoever tries them has a receiver here.
const LOOPBACK: &str = "localhost,127.0.0.0/8,::1";
/// The log, in the folder.
const LOG: &str = "redial.log";

pub(crate) async fn run(settings: &Settings, args: &DevArgs) -> anyhow::Result<ExitCode> {
    let began = Instant::now();
    let (settings, chosen) = &settings.of_dev();
    let found = check_files(settings, args)?;
    if let Some(user) = chosen.as_ref().filter(|_| found.has_commands) {
        output::note(format!(
            "redial dev runs as root, so command tools run as user {user}; --command-user sets another"
        ));
    }
    let notes = if args.no_worker || args.only_servers { Vec::new() } else { found.warnings() };
    for note in notes {
        output::note(format!("warning: {note}"));
    }
    if args.check {
        let declared = found.summary().unwrap_or_else(|| "no files".to_owned());
        output::line(format!("settings and files are right: {declared}"))?;
        return Ok(ExitCode::SUCCESS);
    }
    let folder = create(&args.folder)?;
    let left = dev_folder::state(&folder);
    let Some(lock) = dev_folder::take(&folder).map_err(|error| wrong_folder(&args.folder, &error))? else {
        return Err(runs_already(&args.folder, dev_folder::state(&folder)).into());
    };
    redial_servers::check_programs()?;
    let telemetry = settings.dev_telemetry(folder.join(LOG))?;
    let shutdown = connect::shutdown_sooner_if_repeated(STOPPING, None)?;
    if let DevState::Stale(addresses) = &left {
        let who = addresses.who(Utc::now());
        output::note(format!("the last redial dev here ({who}) ended without cleaning up; nothing on record is lost"));
        let _ = fs::remove_file(DevAddresses::path(&folder));
    }
    let done = Box::pin(start(settings, args, found.summary(), (folder, began), &shutdown)).await;
    telemetry.shutdown().await;
    drop(lock);
    done.map(|()| ExitCode::SUCCESS)
}

/// Checks the settings and files of the roles that will run.
fn check_files(settings: &Settings, args: &DevArgs) -> Result<Found, ApiError> {
    let (mut problems, mut found) = (settings.problems(), Found::default());
    problems.keep(settings.telemetry_config("redial-dev", "info"));
    if !args.only_servers {
        start_files::access(settings, &mut problems);
        start_files::dispatcher(settings, &mut problems, &mut found);
        if !args.no_worker {
            start_files::worker(settings, &mut problems, &mut found);
        }
        if !args.no_gateway {
            start_files::gateway(settings, &mut problems);
        }
    }
    problems.into_result().map(|()| found)
}

fn create(folder: &Path) -> Result<PathBuf, ApiError> {
    fs::create_dir_all(folder).and_then(|()| fs::canonicalize(folder)).map_err(|error| wrong_folder(folder, &error))
}

fn wrong_folder(folder: &Path, error: &std::io::Error) -> ApiError {
    ApiError::new(Code::InvalidConfiguration, format!("--folder {}: {error}", folder.display()))
}

/// Says who runs in the folder, and how to use or stop it.
fn runs_already(folder: &Path, state: DevState) -> ApiError {
    let is_default = std::env::current_dir().is_ok_and(|here| here.join(DEV_FOLDER) == folder);
    let use_it =
        if is_default { "Use it from this folder, such as `redial health`" } else { "Its terminal says how to use it" };
    let folder = folder.display();
    let message = match state {
        DevState::Running(Some(addresses)) => format!(
            "redial dev already runs on {folder}: {}; NATS {}, Postgres {}. {use_it}; \
             stop it with Ctrl-C in its terminal or `kill {}`; or start another one with --folder",
            addresses.who(Utc::now()),
            public(&addresses.nats_url),
            public(&addresses.database_url),
            addresses.pid,
        ),
        _ => format!(
            "another redial dev is starting or stopping on {folder}; wait a moment, or start one with another --folder"
        ),
    };
    ApiError::new(Code::WrongState, message)
}

async fn start(
    settings: &Settings,
    args: &DevArgs,
    files: Option<String>,
    (folder, began): (PathBuf, Instant),
    shutdown: &CancellationToken,
) -> anyhow::Result<()> {
    let settings_of_postgres = match &args.shared_buffers {
        Some(size) => vec![("shared_buffers".to_owned(), size.clone())],
        None => redial_servers::settings_for_machine(),
    };
    let postgres = PostgresConfig { settings: settings_of_postgres, ..PostgresConfig::new(folder.join("postgres")) };
    let servers = async {
        tokio::try_join!(
            Supervised::start::<Postgres>(postgres),
            Supervised::start::<Nats>(NatsConfig::new(folder.join("nats"))),
        )
    };
    let (postgres, nats) = tokio::select! {
        started = servers => started?,
        () = shutdown.cancelled() => return Ok(()),
    };
    let stack = Stack { settings, args, files, folder, postgres, nats, began };
    let done = Box::pin(stack.run(shutdown)).await;
    let _ = fs::remove_file(DevAddresses::path(&stack.folder));
    tokio::join!(stack.postgres.stop(), stack.nats.stop());
    done
}

struct Stack<'a> {
    settings: &'a Settings,
    args: &'a DevArgs,
    files: Option<String>,
    folder: PathBuf,
    postgres: Supervised,
    nats: Supervised,
    began: Instant,
}

impl Stack<'_> {
    /// Runs the roles until the shutdown. The gateway stops first, then the worker, which drains while the dispatcher still
    /// ingests its results. If one role fails, all stop.
    async fn run(&self, shutdown: &CancellationToken) -> anyhow::Result<()> {
        redial_store::admin::migrate(self.postgres.url()).await?;
        let (address, keep) = self.keep_addresses();
        let (stop_gateway, stop_worker) = (shutdown.child_token(), CancellationToken::new());
        let (stop_dispatcher, dispatcher_ready, gateway_ready) =
            (CancellationToken::new(), CancellationToken::new(), CancellationToken::new());
        let dispatcher = async {
            let (_first, _second) = (stop_gateway.clone().drop_guard(), stop_worker.clone().drop_guard());
            self.dispatcher(&stop_dispatcher, || dispatcher_ready.cancel()).await
        };
        let gateway = async {
            let _next = stop_worker.clone().drop_guard();
            tokio::select! {
                () = dispatcher_ready.cancelled() => {}
                () = stop_gateway.cancelled() => return Ok(()),
            }
            let ready = |listens| {
                address.send_replace(listens);
                gateway_ready.cancel();
            };
            self.gateway(&stop_gateway, ready).await
        };
        let worker = async {
            let (_first, _last) = (stop_gateway.clone().drop_guard(), stop_dispatcher.clone().drop_guard());
            tokio::select! {
                () = gateway_ready.cancelled() => self.worker(&stop_worker, *address.borrow()).await,
                () = stop_worker.cancelled() => Ok(()),
            }
        };
        let done = tokio::try_join!(dispatcher, gateway, worker).map(|_| ());
        keep.abort();
        done
    }

    /// Keeps the file with the addresses up to date, also with that of the gateway, once it is told.
    fn keep_addresses(&self) -> (watch::Sender<Option<SocketAddr>>, tokio::task::JoinHandle<()>) {
        let (address, gateway) = watch::channel(None);
        let keep = tokio::spawn(keep_addresses(
            (self.folder.clone(), Utc::now()),
            (self.postgres.url().to_owned(), self.postgres.pid()),
            (self.nats.url().to_owned(), self.nats.pid()),
            gateway,
        ));
        (address, keep)
    }

    async fn gateway(&self, stop: &CancellationToken, ready: impl FnOnce(Option<SocketAddr>)) -> anyhow::Result<()> {
        if self.args.only_servers || self.args.no_gateway {
            ready(None);
            stop.cancelled().await;
            return Ok(());
        }
        let mut config = self.gateway_config()?;
        let is_taken = std::net::TcpListener::bind(config.listen).is_err();
        if is_taken && !self.settings.is_set("listen") {
            // Of another redial dev, most likely.
            config.listen.set_port(0);
        }
        Ok(redial_gateway::run(config, stop.clone(), |address| ready(Some(address))).await?)
    }

    /// Configures a gateway: on loopback requests need no token, unless a setting says so.
    fn gateway_config(&self) -> anyhow::Result<redial_gateway::GatewayConfig> {
        let mut config = self.settings.gateway(self.queue(), self.postgres.url().to_owned())?;
        if config.listen.ip().is_loopback() && !self.settings.is_set("without_token") {
            config.without_token = Some((self.settings.tenant()?, self.settings.user()?));
        }
        Ok(config)
    }

    async fn dispatcher(&self, stop: &CancellationToken, ready: impl FnOnce()) -> anyhow::Result<()> {
        if self.args.only_servers {
            ready();
            stop.cancelled().await;
            return Ok(());
        }
        let database_url = self.postgres.url().to_owned();
        let mut config = self.settings.dispatcher(self.queue(), database_url)?;
        // Whoever develops tools changes them all the time; the dispatcher's log says what it accepted.
        config.accept_tools |= !self.settings.is_set("accept_tools");
        config.webhook_key = Some(self.webhook_key()?);
        Ok(redial_dispatcher::run(config, stop.clone(), ready).await?)
    }

    async fn worker(&self, stop: &CancellationToken, http: Option<SocketAddr>) -> anyhow::Result<()> {
        let is_set = self.settings.is_set("listen");
        let taken = http
            .filter(|http| !is_set && *http != redial_gateway::GatewayConfig::LISTEN)
            .map(|_| redial_gateway::GatewayConfig::LISTEN);
        let greeting = Greeting {
            json: self.settings.json(),
            began: self.began,
            nats_url: self.nats.url().to_owned(),
            database_url: self.postgres.url().to_owned(),
            http_url: http.map(|address| format!("http://{address}")),
            needs_token: self.gateway_config()?.without_token.is_none(),
            taken,
            folder: self.args.folder.clone(),
            log: self.args.folder.join(LOG),
            files: self.files.clone(),
            next: Next::of(self.args),
        };
        if self.args.only_servers || self.args.no_worker {
            greeting.print();
            stop.cancelled().await;
            return Ok(());
        }
        let config = self.settings.worker(self.queue())?;
        let allowed = self.settings.webhook_allow()?;
        let allowed = allowed.map_or_else(|| LOOPBACK.parse(), Ok).context("the addresses of this machine")?;
        let built_in = roles::BuiltIn { webhooks: Some((self.webhook_key()?, allowed)) };
        roles::run_worker(self.settings, (config, built_in), stop.clone(), || greeting.print()).await
    }

    /// Returns the key of webhooks: as set, else one that stays in the folder.
    fn webhook_key(&self) -> anyhow::Result<WebhookKey> {
        match Settings::webhook_key()? {
            Some(key) => Ok(key),
            None => dev_folder::webhook_key(&self.folder).context("the key of webhooks, in the folder of redial dev"),
        }
    }

    fn queue(&self) -> QueueConfig {
        QueueConfig { url: self.nats.url().to_owned(), name: "redial-dev".to_owned(), ..QueueConfig::default() }
    }
}

/// Writes the addresses for other commands, and again after each restart of a server.
async fn keep_addresses(
    (folder, started_at): (PathBuf, DateTime<Utc>),
    (database_url, mut postgres): (String, watch::Receiver<Option<u32>>),
    (nats_url, mut nats): (String, watch::Receiver<Option<u32>>),
    mut gateway: watch::Receiver<Option<SocketAddr>>,
) {
    loop {
        let addresses = DevAddresses {
            pid: std::process::id(),
            started_at: Some(started_at),
            nats_url: nats_url.clone(),
            nats_pid: *nats.borrow_and_update(),
            database_url: database_url.clone(),
            postgres_pid: *postgres.borrow_and_update(),
            http_url: gateway.borrow_and_update().map(|address| format!("http://{address}")),
        };
        if let Err(error) = addresses.write(&folder) {
            tracing::warn!(%error, "Failed to write the addresses for other commands");
        }
        let changed = tokio::select! {
            changed = postgres.changed() => changed,
            changed = nats.changed() => changed,
            changed = gateway.changed() => changed,
        };
        if changed.is_err() {
            return;
        }
    }
}
