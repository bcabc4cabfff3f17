//! A private nats-server with JetStream.

use std::{
    path::{Path, PathBuf},
    process::{Command, ExitStatus},
    time::Duration,
};

use rustix::process::Signal;

use crate::{
    Process, Server, ServerError,
    folder::{Folder, write_private},
    programs,
    running::{Launch, Running},
};

mod configuration;
mod handshake;
mod member;

pub use member::Member;

/// A crashed server is one process, which ends quickly.
const REMAINS: Duration = Duration::from_secs(5);
const GRACE: Duration = Duration::from_secs(10);

#[derive(Clone, Debug)]
pub struct NatsConfig {
    /// Belongs to this server alone; created if it is missing.
    pub folder: PathBuf,
    /// `None`: the port of the last start, or any free one if that is taken.
    pub port: Option<u16>,
    /// Folder of the JetStream store. `None`: `jetstream` in the folder.
    pub store: Option<PathBuf>,
    /// Most bytes that all streams together may hold. `None`: the server's default, three quarters of the free disk.
    pub max_store_bytes: Option<u64>,
    /// The `accounts` block of the configuration. It must have the user `redial` with the password `$REDIAL_PASSWORD`, which
    /// this server defines, in an account with JetStream. `None`: one account with only this user.
    pub accounts: Option<String>,
    /// The cluster that this server is a member of. It then becomes ready with the majority of its members only.
    pub member: Option<Member>,
}

impl NatsConfig {
    /// Starts on any port, with the default store.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into(), port: None, store: None, max_store_bytes: None, accounts: None, member: None }
    }
}

/// A running nats-server on 127.0.0.1 with the user `redial`. Dropping it kills it.
#[derive(Debug)]
pub struct Nats {
    running: Running,
    password: String,
    store: PathBuf,
}

impl Nats {
    /// Returns the folder of the JetStream store; removing it while the server is down wipes all streams.
    pub fn store(&self) -> &Path {
        &self.store
    }

    /// Kills it (SIGKILL), as a crash would.
    pub async fn kill(self) -> ExitStatus {
        self.running.process.kill().await
    }
}

impl Server for Nats {
    type Config = NatsConfig;
    const NAME: &'static str = "NATS";

    /// Starts it; it is ready when it answers a JetStream request of its user.
    async fn start(config: NatsConfig) -> Result<Self, ServerError> {
        crate::blocking(move || start(&config)).await
    }

    fn on_port(config: NatsConfig, port: u16) -> NatsConfig {
        NatsConfig { port: Some(port), ..config }
    }

    /// Returns `nats://redial:<password>@127.0.0.1:<port>`.
    fn url(&self) -> String {
        format!("nats://redial:{}@127.0.0.1:{}", self.password, self.running.port)
    }

    fn port(&self) -> u16 {
        self.running.port
    }

    fn pid(&self) -> u32 {
        self.running.process.pid()
    }

    async fn ended(&self) -> ExitStatus {
        self.running.process.ended().await
    }

    async fn stop(self) -> ExitStatus {
        self.running.process.stop(Signal::TERM, GRACE).await
    }
}

fn start(config: &NatsConfig) -> Result<Nats, ServerError> {
    let program = programs::nats_server()?;
    let folder = Folder::create(&config.folder)?;
    let lock = folder.lock(REMAINS)?;
    if let Some(member) = &config.member {
        write_private(&folder.password_file(), &member.password)?;
    }
    let password = folder.password()?;
    let store = config.store.clone().unwrap_or_else(|| folder.join("jetstream"));
    let file = folder.join("nats.conf");
    let command = |port| {
        let (max, accounts) = (config.max_store_bytes, config.accounts.as_deref());
        let member = config.member.as_ref();
        let values = configuration::Values { port, store: &store, password: &password, max, accounts, member };
        write_private(&file, &values.text())?;
        command(&program, &file)
    };
    let ready = |_: &Process, port| handshake::answers(port, "redial", &password).unwrap_or(false);
    let running = Launch { server: "NATS", folder: &folder, lock, port: config.port }.run(command, ready)?;
    Ok(Nats { running, password, store })
}

fn command(program: &Path, file: &Path) -> Result<Command, ServerError> {
    let mut command = Process::server(program, None)?;
    command.arg("--config").arg(file);
    Ok(command)
}
