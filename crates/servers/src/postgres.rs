//! A private Postgres.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, ExitStatus},
    time::Duration,
};

use rustix::process::Signal;

use crate::{
    Process, ServerError,
    folder::Folder,
    process,
    programs::{self, PostgresPrograms},
    running::{Launch, Running},
    user::User,
};

mod initialise;
mod place;

/// Processes of a crashed Postgres notice within milliseconds that it is gone; one in a long query first ends that.
const REMAINS: Duration = Duration::from_secs(20);
/// A fast shutdown writes a checkpoint.
const GRACE: Duration = Duration::from_secs(10);

/// What to start.
#[derive(Clone, Debug)]
pub struct PostgresConfig {
    /// Belongs to this server alone; made if need be. When we are root and the folder lies where the unprivileged user
    /// that Postgres runs as cannot reach it (say, below `/root`), the data goes to a folder below `/var/lib/redial`
    /// and the link `elsewhere` in this folder says where.
    pub folder: PathBuf,
    /// `None`: the port of the last start, or any free one if that is taken.
    pub port: Option<u16>,
    /// Server settings in addition to, and stronger than, ours. Nothing here weakens durability unless you say so:
    /// `fsync` and `synchronous_commit` are on.
    pub settings: Vec<(String, String)>,
}

impl PostgresConfig {
    /// Any port, no settings.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into(), port: None, settings: Vec::new() }
    }

    /// Adds a setting.
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
}

impl Postgres {
    /// Starts the server and waits until it accepts connections. The first start of a folder makes its database.
    pub async fn start(config: PostgresConfig) -> Result<Self, ServerError> {
        crate::blocking(move || start(&config)).await
    }

    /// `postgres://redial:<password>@127.0.0.1:<port>/redial`
    pub fn url(&self) -> String {
        self.url_of("redial")
    }

    /// The same for another database, whose name must need no escaping in a URL.
    pub fn url_of(&self, database: &str) -> String {
        format!("postgres://redial:{}@127.0.0.1:{}/{database}", self.password, self.running.port)
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.running.port
    }

    /// Process id of the server's main process.
    pub fn pid(&self) -> u32 {
        self.running.process.pid()
    }

    /// Waits until it has ended, for whatever reason.
    pub async fn ended(&self) -> ExitStatus {
        self.running.process.ended().await
    }

    /// Ends it as a crash does (SIGKILL).
    pub async fn kill(self) -> ExitStatus {
        self.running.process.kill().await
    }

    /// Ends it in order: connections are closed, everything is written. Killed if that takes over 10 s.
    pub async fn stop(self) -> ExitStatus {
        self.running.process.stop(Signal::INT, GRACE).await
    }
}

fn start(config: &PostgresConfig) -> Result<Postgres, ServerError> {
    let programs = programs::postgres()?;
    let folder = Folder::create(&config.folder)?;
    let lock = folder.lock(REMAINS)?;
    let home = place::find(&folder)?;
    let user = home.user.as_ref();
    check_reachable(&programs, user)?;
    initialise::once(&initialise::Inputs { programs: &programs, home: &home, folder: &folder, lock: &lock, config })?;
    let password = folder.password()?;
    let data = home.data();
    remove_stale_pid_file(&data)?;
    let command = |port| command(&programs.postgres, &data, user, port, &config.settings);
    let ready = |process: &Process, _| says_ready(&data, process.pid());
    let running = Launch { server: "Postgres", folder: &folder, lock, port: config.port }.run(command, ready)?;
    Ok(Postgres { running, password })
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

/// Left behind by a crash. We hold the lock, so nobody whom we started runs on this data; a server that somebody
/// started by hand might. Postgres itself would refuse to start if the old id belonged to any process of the same user.
fn remove_stale_pid_file(data: &Path) -> Result<(), ServerError> {
    let file = data.join("postmaster.pid");
    let Ok(text) = fs::read_to_string(&file) else { return Ok(()) };
    let pid = text.lines().next().unwrap_or_default();
    if !cfg!(target_os = "linux") || process::living(pid).as_deref() == Some("postgres") {
        return Ok(());
    }
    fs::remove_file(&file).map_err(ServerError::io("remove", &file))
}

fn command(
    postgres: &Path,
    data: &Path,
    user: Option<&User>,
    port: u16,
    settings: &[(String, String)],
) -> Result<Command, ServerError> {
    let mut command = clean_command(postgres, data, user)?;
    command.arg("-D").arg(data).arg("-p").arg(port.to_string());
    let ours = [
        ("listen_addresses", "127.0.0.1"),
        ("unix_socket_directories", ""),
        ("fsync", "on"),
        ("synchronous_commit", "on"),
        ("max_connections", "200"),
        ("timezone", "UTC"),
        ("log_timezone", "UTC"),
        // Compiling a query costs more than our short queries do, and a private installation may lack the library.
        ("jit", "off"),
    ];
    for (name, value) in ours {
        command.arg("-c").arg(format!("{name}={value}"));
    }
    for (name, value) in settings {
        command.arg("-c").arg(format!("{name}={value}"));
    }
    Ok(command)
}

/// A command of Postgres that the caller's environment (PGDATA, PGPORT, a locale) does not bend.
fn clean_command(program: &Path, folder: &Path, user: Option<&User>) -> Result<Command, ServerError> {
    let mut command = Process::command_as(program, user)?;
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("PG")) {
        command.env_remove(name);
    }
    command.env("LC_ALL", "C").current_dir(folder);
    Ok(command)
}

/// The pid file's eighth line is the server's own word about its state; its first line says that it is this server's.
fn says_ready(data: &Path, pid: u32) -> bool {
    let text = fs::read_to_string(data.join("postmaster.pid")).unwrap_or_default();
    let mut lines = text.lines();
    lines.next() == Some(pid.to_string().as_str()) && lines.nth(6).is_some_and(|state| state.trim() == "ready")
}
