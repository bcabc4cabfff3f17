//! `.redial/demo`: emptied before every run, and locked during it.

use std::{
    fs::{self, File, OpenOptions},
    net::SocketAddr,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::{Context, ensure};

use crate::real_model::RealModel;

const FOLDER: &str = ".redial/demo";
/// Beside the folder, because the folder is emptied.
const LOCK: &str = ".redial/demo.lock";
/// The tools' manifest; the address of their HTTP service is replaced in the copy.
const TOOLS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tools");
const DECLARED_ADDRESS: &str = "127.0.0.1:8080";
/// The scripted models.
const MODELS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/models.toml");
/// The agents.
const AGENTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/agents.toml");
/// Where Postgres keeps its data if its user may not access the folder, which then contains a link to it.
const ELSEWHERE: &str = "/var/lib/redial";
/// How long the servers of a killed run may take to end.
const PATIENCE: Duration = Duration::from_secs(5);

/// The folder, and the lock on it.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    _lock: File,
}

impl Folder {
    /// Creates the folder or empties it.
    pub(super) async fn emptied() -> anyhow::Result<Self> {
        let path = Path::new(FOLDER);
        fs::create_dir_all(path).with_context(|| format!("{FOLDER} cannot be created"))?;
        let lock = OpenOptions::new().create(true).truncate(false).write(true).open(LOCK).context(LOCK)?;
        ensure!(lock.try_lock().is_ok(), "another demo is running, or {LOCK} cannot be locked");
        let began = Instant::now();
        while let Err(error) = empty(path) {
            ensure!(began.elapsed() < PATIENCE, "{FOLDER} cannot be emptied: {error:#}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        fs::create_dir_all(path)?;
        Ok(Self { path: fs::canonicalize(path)?, _lock: lock })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The manifest of the tools.
    pub(super) fn tools(&self) -> PathBuf {
        self.path.join("tools/tools.toml")
    }

    /// The file of models: scripts, or a real model in their place.
    pub(super) fn models(&self) -> PathBuf {
        let real = self.path.join("models.toml");
        if real.exists() { real } else { PathBuf::from(MODELS) }
    }

    /// Replaces the scripted models with a real one.
    pub(super) fn write_models(&self, model: &RealModel) -> anyhow::Result<()> {
        let models = model.models_toml(&fs::read_to_string(MODELS).context(MODELS)?)?;
        Ok(fs::write(self.path.join("models.toml"), models)?)
    }

    /// The file of agents.
    pub(super) fn agents(&self) -> PathBuf {
        let real = self.path.join("agents.toml");
        if real.exists() { real } else { PathBuf::from(AGENTS) }
    }

    /// Gives the agents limits that fit a real model, whatever it does.
    pub(super) fn write_agents(&self, model: &RealModel) -> anyhow::Result<()> {
        let agents = model.agents_toml(&fs::read_to_string(AGENTS).context(AGENTS)?)?;
        Ok(fs::write(self.path.join("agents.toml"), agents)?)
    }

    /// Copies the tools, with the address of the HTTP service of this run.
    pub(super) fn write_tools(&self, address: SocketAddr) -> anyhow::Result<()> {
        let manifest = self.tools();
        let folder = manifest.parent().unwrap_or(&self.path);
        fs::create_dir_all(folder)?;
        for entry in fs::read_dir(TOOLS).context(TOOLS)? {
            let entry = entry?;
            fs::copy(entry.path(), folder.join(entry.file_name()))?;
        }
        let text = fs::read_to_string(&manifest)?;
        ensure!(text.contains(DECLARED_ADDRESS), "{TOOLS}/tools.toml does not contain {DECLARED_ADDRESS}");
        Ok(fs::write(&manifest, text.replace(DECLARED_ADDRESS, &address.to_string()))?)
    }

    pub(super) fn log_path(&self, name: &str) -> PathBuf {
        self.path.join(format!("{name}.log"))
    }

    /// A log file to append to.
    pub(super) fn log(&self, name: &str) -> anyhow::Result<File> {
        let path = self.log_path(name);
        OpenOptions::new().create(true).append(true).open(&path).with_context(|| path.display().to_string())
    }
}

fn empty(path: &Path) -> anyhow::Result<()> {
    for server in ["postgres", "nats"] {
        // Every process of a server holds this lock.
        if let Ok(lock) = File::open(path.join(server).join("lock")) {
            ensure!(lock.try_lock().is_ok(), "{server} of an earlier run is still running");
        }
    }
    if let Ok(target) = fs::read_link(path.join("postgres/elsewhere"))
        && target.parent() == Some(Path::new(ELSEWHERE))
        && target.exists()
    {
        fs::remove_dir_all(target)?;
    }
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}
