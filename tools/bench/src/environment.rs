//! Where processes run: on which servers, from which program.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
};

use redial_servers::Process;

/// Where processes read the address of NATS.
pub(crate) const NATS_URL: &str = "REDIAL_NATS_URL";

/// What processes run on, and the program `redial` that they are.
#[derive(Clone, Debug)]
pub(crate) struct Environment {
    /// Their working folder, for logs.
    pub(crate) folder: PathBuf,
    pub(crate) nats_url: String,
    pub(crate) database_url: String,
    pub(crate) redial: PathBuf,
}

impl Environment {
    /// Creates Redial's tables with its program.
    pub(crate) async fn migrate(&self) -> anyhow::Result<()> {
        let log = self.folder.join("migrate.log");
        let status = self.spawn(&self.redial, &["migrate"], &log)?.ended().await;
        anyhow::ensure!(status.success(), "migrate ended with {status}:\n{}", fs::read_to_string(log)?);
        Ok(())
    }

    /// Starts a process. Its settings come only from here: the folder has no settings file, and Redial's variables are
    /// not passed on.
    pub(crate) fn spawn(&self, program: &Path, args: &[&str], log: &Path) -> anyhow::Result<Process> {
        let file = File::create(log)?;
        let mut command = Process::command(program)?;
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("REDIAL_")) {
            command.env_remove(name);
        }
        command.args(args).current_dir(&self.folder);
        command.env(NATS_URL, &self.nats_url).env("REDIAL_DATABASE_URL", &self.database_url);
        command.env("REDIAL_LOG", "info").env("REDIAL_LOG_FORMAT", "text");
        command.stdout(file.try_clone()?).stderr(file);
        Ok(Process::spawn(command)?)
    }
}

/// The program `redial` that was built beside this one.
pub(crate) fn built_here() -> anyhow::Result<PathBuf> {
    let path = std::env::current_exe()?.with_file_name("redial");
    anyhow::ensure!(path.exists(), "{} is missing; build it: cargo build -p redial", path.display());
    Ok(path)
}
