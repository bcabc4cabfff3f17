//! A private Postgres.

use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitStatus,
    thread,
    time::Duration,
};

use rustix::process::Signal;

use crate::{
    Process, Server, ServerError,
    folder::Folder,
    process,
    programs::{self, PostgresPrograms},
    running::{Launch, Running},
    user::User,
};

mod command;
mod initialise;
mod location;
mod memory;
mod promote;
mod upstream;

use location::Home;
pub use memory::settings_for_machine;
pub use upstream::Upstream;

/// Processes of a crashed Postgres notice its end within milliseconds; one in a long query finishes that first.
const REMAINS: Duration = Duration::from_secs(20);
/// A fast shutdown writes a checkpoint.
const GRACE: Duration = Duration::from_secs(10);

#[derive(Clone, Debug)]
pub struct PostgresConfig {
    /// Belongs to this server alone; created if it is missing. If this process runs as root and the unprivileged user
    /// that Postgres runs as cannot reach the folder (say, below `/root`), the data is kept in a folder below
    /// `/var/lib/redial`, to which the link `elsewhere` in this folder points.
    pub folder: PathBuf,
    /// `None`: the port of the last start, or any free one if that is taken.
    pub port: Option<u16>,
    /// Server settings that add to and override the defaults. By default `fsync` and `synchronous_commit` are on.
    pub settings: Vec<(String, String)>,
    /// The server that the first start on the folder copies, and that this one follows from then on, until it is promoted.
    /// `None`: the first start creates an empty database.
    pub standby_of: Option<Upstream>,
}

impl PostgresConfig {
    /// Starts on any port, without settings.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into(), port: None, settings: Vec::new(), standby_of: None }
    }

    #[must_use]
    pub fn setting(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.settings.push((name.into(), value.into()));
        self
    }
}

/// A running Postgres on 127.0.0.1, with a superuser `redial` and a database `redial`. Dropping it kills it.
#[derive(Debug)]
pub struct Postgres {
    running: Running,
    password: String,
    programs: PostgresPrograms,
    home: Home,
}

impl Postgres {
    /// Returns the address of another database; its name must not need escaping in a URL.
    pub fn url_of(&self, database: &str) -> String {
        format!("postgres://redial:{}@127.0.0.1:{}/{database}", self.password, self.running.port)
    }

    /// Returns what a standby of this server needs to know.
    pub fn upstream(&self) -> Upstream {
        Upstream { port: self.port(), password: self.password.clone() }
    }

    /// Makes a standby the primary: it begins a new timeline. Returns when it takes writes.
    pub async fn promote(&self) -> Result<(), ServerError> {
        let (program, home) = (self.programs.beside("pg_ctl")?, self.home.clone());
        crate::blocking(move || promote::promote(&program, &home)).await
    }

    /// Kills it (SIGKILL), as a crash would.
    pub async fn kill(self) -> ExitStatus {
        self.running.process.kill().await
    }
}

impl Server for Postgres {
    type Config = PostgresConfig;
    const NAME: &'static str = "Postgres";

    /// Starts it; it is ready when it accepts connections. The first start on a folder creates its database.
    async fn start(config: PostgresConfig) -> Result<Self, ServerError> {
        crate::blocking(move || start(&config)).await
    }

    fn on_port(config: PostgresConfig, port: u16) -> PostgresConfig {
        PostgresConfig { port: Some(port), ..config }
    }

    /// Returns `postgres://redial:<password>@127.0.0.1:<port>/redial`.
    fn url(&self) -> String {
        self.url_of("redial")
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
        self.running.process.stop(Signal::INT, GRACE).await
    }
}

fn start(config: &PostgresConfig) -> Result<Postgres, ServerError> {
    let programs = programs::postgres()?;
    let folder = Folder::create(&config.folder)?;
    let lock = folder.lock(REMAINS)?;
    let home = location::find(&folder)?;
    let user = home.user.as_ref();
    check_reachable(&programs, user)?;
    let durable = is_durable(&config.settings);
    let upstream = config.standby_of.as_ref();
    initialise::once(&initialise::Inputs {
        programs: &programs,
        home: &home,
        folder: &folder,
        lock: &lock,
        durable,
        upstream,
    })?;
    let password = folder.password()?;
    let data = home.data();
    remove_stale_pid_file(&data)?;
    let command = |port| {
        let program = command::Program { path: &programs.postgres, folder: &data, user };
        command::server(&program, port, &config.settings)
    };
    let ready = |process: &Process, _| is_ready(&data, process.pid());
    let running = Launch { server: "Postgres", folder: &folder, lock, port: config.port }.run(command, ready)?;
    Ok(Postgres { running, password, programs, home })
}

/// True if `fsync` is on; the last value of a setting counts.
fn is_durable(settings: &[(String, String)]) -> bool {
    settings.iter().rfind(|(name, _)| name == "fsync").is_none_or(|(_, value)| value == "on")
}

fn check_reachable(programs: &PostgresPrograms, user: Option<&User>) -> Result<(), ServerError> {
    let folder = programs.postgres.parent().unwrap_or(Path::new("/"));
    match user.filter(|user| !user.reaches(folder)) {
        Some(user) => {
            Err(ServerError::UnreachableProgram { program: programs.postgres.clone(), user: user.name.clone() })
        }
        None => Ok(()),
    }
}

/// Removes the file if a crash left it. The lock is held, so no server that Redial started runs on this data, but one that
/// was started by hand might. Postgres would refuse to start if the old id belonged to any process of the same user.
fn remove_stale_pid_file(data: &Path) -> Result<(), ServerError> {
    let file = data.join("postmaster.pid");
    let Ok(text) = fs::read_to_string(&file) else { return Ok(()) };
    let pid = text.lines().next().unwrap_or_default();
    if !cfg!(target_os = "linux") || !ends_soon(pid) {
        return Ok(());
    }
    fs::remove_file(&file).map_err(ServerError::io("remove", &file))
}

/// True if this process is no Postgres, or ends within a second, for which this waits: one that was killed gives its
/// lock up a moment before it is gone.
fn ends_soon(pid: &str) -> bool {
    (0..100).any(|_| {
        let gone = process::living(pid).as_deref() != Some("postgres");
        if !gone {
            thread::sleep(Duration::from_millis(10));
        }
        gone
    })
}

/// True if the server is ready: the pid file's first line is the server's process id, its eighth line the server's
/// state. A standby stays in a state of its own, in which it answers questions.
fn is_ready(data: &Path, pid: u32) -> bool {
    let text = fs::read_to_string(data.join("postmaster.pid")).unwrap_or_default();
    let mut lines = text.lines();
    let is_own = lines.next() == Some(pid.to_string().as_str());
    is_own && lines.nth(6).is_some_and(|state| ["ready", "standby"].contains(&state.trim()))
}
