//! A private Redial: `redial dev`, two workers beside it, and the command line, as a user runs them.

use std::{
    ffi::OsStr,
    fs::{self, File, OpenOptions},
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, bail, ensure};
use redial_proto::{TaskId, TaskResult};
use redial_servers::{Process, Signal};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;
use tokio::net::TcpStream;

use crate::{
    records::{Call, Task},
    service::HttpService,
};

/// How long a worker may be silent before the dispatcher treats its attempts as lost; short, to keep the demo short.
pub(crate) const LEASE: Duration = Duration::from_secs(2);
/// How long everything may take to start, a process to shut down, and the servers of a killed run to end.
const START: Duration = Duration::from_mins(1);
const GRACE: Duration = Duration::from_secs(15);
const PATIENCE: Duration = Duration::from_secs(5);
/// Tools, models, scripts and agents.
const HERE: &str = env!("CARGO_MANIFEST_DIR");
/// The address of the HTTP service in `tools.toml`; replaced in the copy.
const DECLARED_ADDRESS: &str = "127.0.0.1:8080";
/// Emptied before every run, and locked during it.
const FOLDER: &str = ".redial/demo";
const LOCK: &str = ".redial/demo.lock";
/// Where Postgres keeps its data if its user may not access the folder, which then contains a link to it.
const ELSEWHERE: &str = "/var/lib/redial";
/// One tool of each kind of worker, and how many workers have it.
const TOOLS: [(&str, u64); 2] = [("reserve_hotel", 1), ("book_flight", 2)];
/// The user's settings of Redial must not change the demo, except for these two, which locate the servers' programs.
const KEPT: [&str; 2] = ["REDIAL_POSTGRES_BIN", "REDIAL_NATS_SERVER"];

#[derive(Debug)]
pub(crate) struct Redial {
    /// The service behind the HTTP tools.
    pub(crate) service: HttpService,
    /// The task that the demo prints at the end.
    pub(crate) shown_task: Option<TaskId>,
    dev: Option<Process>,
    addresses: Addresses,
    workers: Vec<(String, Process)>,
    folder: PathBuf,
    _lock: File,
}

/// What `redial dev` prints when it is ready.
#[derive(Debug, Default, Deserialize)]
#[expect(clippy::struct_field_names, reason = "the names are those of its output")]
struct Addresses {
    nats_url: String,
    database_url: String,
    http_url: Option<String>,
}

impl Redial {
    /// Empties the folder and starts the HTTP service; nothing else runs yet.
    pub(crate) async fn new() -> anyhow::Result<Self> {
        fs::create_dir_all(FOLDER).with_context(|| format!("{FOLDER} cannot be created"))?;
        let lock = OpenOptions::new().create(true).truncate(false).write(true).open(LOCK).context(LOCK)?;
        ensure!(lock.try_lock().is_ok(), "another demo is running, or {LOCK} cannot be locked");
        let began = Instant::now();
        while let Err(error) = empty(Path::new(FOLDER)) {
            ensure!(began.elapsed() < PATIENCE, "{FOLDER} cannot be emptied: {error:#}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        fs::create_dir_all(FOLDER)?;
        let (folder, service) = (fs::canonicalize(FOLDER)?, HttpService::start().await?);
        let tools = fs::read_to_string(format!("{HERE}/tools/tools.toml")).context("tools.toml")?;
        ensure!(tools.contains(DECLARED_ADDRESS), "tools.toml does not contain {DECLARED_ADDRESS}");
        fs::write(folder.join("tools.toml"), tools.replace(DECLARED_ADDRESS, &service.address().to_string()))?;
        let (addresses, shown_task, dev, workers) = (Addresses::default(), None, None, Vec::new());
        Ok(Self { service, shown_task, dev, addresses, workers, folder, _lock: lock })
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn http_url(&self) -> &str {
        self.addresses.http_url.as_deref().unwrap_or_default()
    }

    // ---- Processes ----

    /// Starts everything, and waits until every tool has its workers. Returns the time until `redial dev` was ready.
    pub(crate) async fn start(&mut self) -> anyhow::Result<Duration> {
        let logs = format!("{}/*.log", self.folder.display());
        let all = async {
            let took = self.start_dev().await?;
            self.start_worker("worker-a")?;
            self.start_worker("worker-b")?;
            self.wait_for_tools().await?;
            Ok(took)
        };
        let started = tokio::time::timeout(START, all).await;
        started.with_context(|| format!("not everything started within {} s; logs: {logs}", START.as_secs()))?
    }

    /// Starts `redial dev`, again with the same data after a kill; returns the time until calls can be submitted.
    pub(crate) async fn start_dev(&mut self) -> anyhow::Result<Duration> {
        let began = Instant::now();
        let mut command = command("redial")?;
        command.arg("dev").arg("--folder").arg(&self.folder).arg("--tools").arg(self.folder.join("tools.toml"));
        command.args(["--models", &format!("{HERE}/models.toml")]);
        command.args(["--agents", &format!("{HERE}/agents.toml")]);
        command.args(["--worker-name", "redial-dev", "--drain-grace", "5s", "--json", "--lease"]);
        command.arg(format!("{}ms", LEASE.as_millis())).stdout(Stdio::piped()).stderr(self.log("dev")?);
        let dev = self.dev.insert(Process::spawn(command)?);
        let stdout = dev.take_stdout().context("redial dev has no output")?;
        let mut log = self.log("dev")?;
        let first = tokio::task::spawn_blocking(move || {
            let mut lines = BufReader::new(stdout).lines();
            let first = lines.next().transpose()?.unwrap_or_default();
            // The rest of its output goes to the log.
            std::thread::spawn(move || lines.map_while(Result::ok).try_for_each(|line| writeln!(log, "{line}")));
            anyhow::Ok(first)
        });
        let Ok(addresses) = serde_json::from_str(&first.await??) else {
            let log = self.folder.join("dev.log");
            let text = fs::read_to_string(&log).unwrap_or_default();
            let last = text.lines().rfind(|line| !line.is_empty()).unwrap_or_default();
            bail!("redial dev did not start; the last line of {}: {last}", log.display());
        };
        self.addresses = addresses;
        Ok(began.elapsed())
    }

    /// Kills `redial dev`, dispatcher included, its NATS and Postgres with SIGKILL; waits until none of them answers.
    pub(crate) async fn kill_dev(&mut self) -> anyhow::Result<()> {
        let file: Value = serde_json::from_slice(&fs::read(self.folder.join("dev.json"))?)?;
        for name in ["postgres_pid", "nats_pid"] {
            let pid = file[name].as_i64().and_then(|pid| i32::try_from(pid).ok());
            let pid =
                pid.and_then(rustix::process::Pid::from_raw).with_context(|| format!("dev.json has no {name}"))?;
            rustix::process::kill_process(pid, Signal::KILL).context(name)?;
        }
        self.dev.take().context("redial dev is not running")?.kill().await;
        for url in [&self.addresses.database_url, &self.addresses.nats_url] {
            let address = url.split('/').nth(2).and_then(|authority| authority.rsplit('@').next()).context("a URL")?;
            let refused = async || Ok(TcpStream::connect(address).await.err().map(|_refused| ()));
            until("the killed servers have ended", refused).await?;
        }
        Ok(())
    }

    pub(crate) fn start_worker(&mut self, name: &str) -> anyhow::Result<()> {
        let mut command = command("redial-demo-worker")?;
        command.args(["--name", name, "--ledgers"]).arg(&self.folder);
        command.env("REDIAL_NATS_URL", &self.addresses.nats_url).stdout(self.log(name)?).stderr(self.log(name)?);
        self.workers.push((name.to_owned(), Process::spawn(command)?));
        Ok(())
    }

    /// Kills a worker with SIGKILL and waits until it has ended.
    pub(crate) async fn kill_worker(&mut self, name: &str) -> anyhow::Result<()> {
        let position = self.workers.iter().position(|(running, _)| running == name);
        let (_, process) = self.workers.swap_remove(position.with_context(|| format!("{name} is not running"))?);
        process.kill().await;
        Ok(())
    }

    /// Starts a killed worker again, and waits until it serves.
    pub(crate) async fn replace_worker(&mut self, name: &str) -> anyhow::Result<()> {
        self.start_worker(name)?;
        self.wait_for_tools().await
    }

    /// Waits until every tool has as many workers as it should.
    async fn wait_for_tools(&self) -> anyhow::Result<()> {
        let check = async || {
            let text = self.run(&["tools", "--json"]).await?;
            let tools: Vec<Value> = text.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
            let enough = |(name, workers)| {
                tools.iter().any(|tool| tool["name"] == name && tool["workers"].as_u64() >= Some(workers))
            };
            Ok(TOOLS.into_iter().all(enough).then_some(()))
        };
        until("every tool has its workers", check).await
    }

    /// Shuts everything down: the workers first, because a dispatcher must still accept their reports.
    pub(crate) async fn close(self) -> anyhow::Result<()> {
        self.workers.iter().for_each(|(_, process)| process.signal(Signal::TERM));
        let dev = self.dev.into_iter().map(|process| ("redial dev".to_owned(), process));
        for (name, process) in self.workers.into_iter().chain(dev) {
            let status = process.stop(Signal::TERM, GRACE).await;
            ensure!(status.success(), "{name} ended with {status}; logs: {}/*.log", self.folder.display());
        }
        Ok(())
    }

    fn log(&self, name: &str) -> anyhow::Result<File> {
        let path = self.folder.join(format!("{name}.log"));
        OpenOptions::new().create(true).append(true).open(&path).with_context(|| path.display().to_string())
    }

    // ---- The command line ----

    /// Runs `redial` with these arguments, which must succeed; returns what it prints.
    pub(crate) async fn run(&self, arguments: &[&str]) -> anyhow::Result<String> {
        let mut command = tokio::process::Command::from(command("redial")?);
        command.args(arguments).kill_on_drop(true);
        command.env("REDIAL_NATS_URL", &self.addresses.nats_url);
        let done = command.env("REDIAL_DATABASE_URL", &self.addresses.database_url).output().await?;
        let [stdout, stderr] = [done.stdout, done.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        let command = format!("redial {}", arguments.join(" "));
        writeln!(self.log("cli")?, "$ {command}\n{stdout}{stderr}→ {}\n", done.status)?;
        ensure!(done.status.success(), "`{command}` ended with {}: {}", done.status, stderr.trim());
        Ok(stdout)
    }

    /// Runs a command that prints one JSON value.
    pub(crate) async fn json<T: DeserializeOwned>(&self, arguments: &[&str]) -> anyhow::Result<T> {
        let text = self.run(&[arguments, &["--json"]].concat()).await?;
        serde_json::from_str(&text).with_context(|| format!("`redial {}` printed {text}", arguments.join(" ")))
    }

    pub(crate) async fn call(&self, tool: &str, arguments: &str) -> anyhow::Result<String> {
        let submitted: Value = self.json(&["call", tool, arguments]).await?;
        submitted["call"].as_str().map(str::to_owned).with_context(|| format!("the call was not accepted: {submitted}"))
    }

    pub(crate) async fn show_call(&self, call: &str) -> anyhow::Result<Call> {
        self.json(&["show", call]).await
    }

    pub(crate) async fn ended_call(&self, call: &str) -> anyhow::Result<Call> {
        let ended = async || Ok(Some(self.show_call(call).await?).filter(Call::has_ended));
        until("the call ends", ended).await
    }

    pub(crate) async fn task(&self, agent: &str, input: &str) -> anyhow::Result<TaskId> {
        let submitted: TaskResult = self.json(&["task", input, "--agent", agent]).await?;
        submitted.task.with_context(|| format!("the task was not accepted: {submitted:?}"))
    }

    pub(crate) async fn show_task(&self, id: TaskId) -> anyhow::Result<Task> {
        self.json(&["show", &id.to_string()]).await
    }

    /// Waits for the end of a task; its record must replay to the same decisions.
    pub(crate) async fn ended_task(&self, id: TaskId) -> anyhow::Result<Task> {
        let ended = async || Ok(Some(self.show_task(id).await?).filter(Task::has_ended));
        let task = until("the task ends", ended).await?;
        self.run(&["replay", &id.to_string()]).await?;
        Ok(task)
    }

    // ---- The world outside ----

    /// Returns what the airline or the bank (`airline`, `bank`) has on record, independent of Redial: the effects that
    /// really happened. An incomplete last line is still being written.
    pub(crate) fn ledger(&self, name: &str) -> anyhow::Result<Vec<Value>> {
        let text = match fs::read_to_string(self.folder.join(format!("{name}.jsonl"))) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            text => text?,
        };
        let complete = text.rsplit_once('\n').map_or("", |(complete, _rest)| complete);
        Ok(complete.lines().map(serde_json::from_str).collect::<Result<_, _>>()?)
    }
}

/// Checks repeatedly until `check` returns a value. Does not time out: the scene around it does.
pub(crate) async fn until<T>(what: &str, check: impl AsyncFn() -> anyhow::Result<Option<T>>) -> anyhow::Result<T> {
    loop {
        if let Some(found) = check().await.with_context(|| format!("waiting until {what}"))? {
            return Ok(found);
        }
        tokio::time::sleep(Duration::from_millis(40)).await;
    }
}

/// Makes the command of a program that was built together with this one, without the user's settings of Redial.
fn command(program: &str) -> anyhow::Result<Command> {
    let path = std::env::current_exe()?.with_file_name(program);
    ensure!(path.is_file(), "{} is missing; ./dev demo builds it", path.display());
    let mut command = Process::command(path)?;
    let ours = |name: &OsStr| name.to_str().is_some_and(|name| name.starts_with("REDIAL_") && !KEPT.contains(&name));
    for (name, _) in std::env::vars_os().filter(|(name, _)| ours(name)) {
        command.env_remove(name);
    }
    // Instead of a redial.toml in the current folder.
    command.env("REDIAL_CONFIG", "/dev/null").stdin(Stdio::null());
    Ok(command)
}

/// Removes the folder, unless a server of an earlier run still uses it.
fn empty(folder: &Path) -> anyhow::Result<()> {
    for server in ["postgres", "nats"] {
        // Every process of a server holds this lock.
        if let Ok(lock) = File::open(folder.join(server).join("lock")) {
            ensure!(lock.try_lock().is_ok(), "{server} of an earlier run is still running");
        }
    }
    if let Ok(target) = fs::read_link(folder.join("postgres/elsewhere"))
        && target.parent() == Some(Path::new(ELSEWHERE))
        && target.exists()
    {
        fs::remove_dir_all(target)?;
    }
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}
