//! The servers and processes that faults are injected into.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::Context as _;
use chrono::{DateTime, Utc};
use redial_queue::Queue;
use redial_testkit::{Disturbance, Ear, FaultProxy, Ledger, Observer, Process, Servers, unique_path};

use crate::{
    access::{self, Login, MALLORY, OF_FAULTS},
    cli::ToolSet,
    disk::Disk,
    load,
    schedule::{DISPATCHERS, Line, Redundancy, TOOL_WORKERS, WORKERS},
    stranger, worker,
};

/// How long a worker holds a call without a heartbeat. Short, so that many can be lost in a run.
pub(crate) const LEASE: Duration = Duration::from_secs(3);
/// How long a process may take to stop.
const STOPS: Duration = Duration::from_mins(1);

pub(crate) struct Dispatcher {
    pub(crate) process: Process,
    pub(crate) nats: FaultProxy,
    pub(crate) postgres: FaultProxy,
    nats_url: String,
    database_url: String,
}

pub(crate) struct Worker {
    pub(crate) process: Process,
    pub(crate) id: String,
    pub(crate) nats: FaultProxy,
    nats_url: String,
    /// What it can run from its next start on.
    pub(crate) tools: ToolSet,
}

pub(crate) struct Fixture {
    pub(crate) servers: Servers,
    pub(crate) disk: Disk,
    pub(crate) ledger: Ledger,
    pub(crate) observer: Observer,
    /// As the user of faults; it does not go through a proxy.
    pub(crate) control: Queue,
    pub(crate) client: FaultProxy,
    pub(crate) client_url: String,
    pub(crate) dispatchers: Vec<Dispatcher>,
    pub(crate) workers: Vec<Worker>,
    /// What the hostile user receives.
    pub(crate) mallory: Ear,
    /// While this file exists, the fragile tool is down.
    pub(crate) outage: PathBuf,
    /// Workers that were started, in order.
    pub(crate) started: Vec<String>,
    /// When workers were killed, stopped, or cut off for long.
    pub(crate) disturbed: Vec<Disturbance>,
    /// Workers that were stopped with SIGSTOP.
    pub(crate) paused: Vec<String>,
    /// Processes that ended by themselves.
    pub(crate) crashes: Vec<String>,
    /// The output of processes that have ended.
    pub(crate) outputs: Vec<(String, String)>,
    models: PathBuf,
    /// The setting of the first dispatcher for the replicas of streams.
    replicas: Option<&'static str>,
    /// The programs `redial` and this one, which a concurrent build must not replace.
    redial: PathBuf,
    own: PathBuf,
}

impl Fixture {
    pub(crate) async fn start(redundancy: Redundancy) -> anyhow::Result<Self> {
        let own = std::env::current_exe()?;
        let redial = own.with_file_name("redial");
        anyhow::ensure!(redial.exists(), "{} is missing; build it: cargo build -p redial", redial.display());
        let disk = Disk::make()?;
        let servers = servers(&disk, redundancy).await?;
        redial_store::admin::create_database(servers.postgres_url(), servers.database()).await?;
        redial_store::admin::migrate(servers.database_url()).await?;
        let (script, models) = (unique_path("script.toml"), unique_path("models.toml"));
        std::fs::write(&script, load::script())?;
        std::fs::write(&models, load::models(&script))?;
        let control = access::connect(servers.nats_url(), OF_FAULTS).await?;
        let (client, client_url) = FaultProxy::before(servers.nats_url()).await;
        let mut fixture = Self {
            observer: Observer::new(&servers.primary_url()),
            servers,
            disk,
            ledger: Ledger::create(),
            control,
            client,
            client_url,
            dispatchers: Vec::new(),
            workers: Vec::new(),
            mallory: Ear::new("the hostile user", Some(MALLORY.0)),
            outage: unique_path("outage"),
            started: Vec::new(),
            disturbed: Vec::new(),
            paused: Vec::new(),
            crashes: Vec::new(),
            outputs: Vec::new(),
            models,
            replicas: redundancy.cluster.then_some("3"),
            redial: pinned(&redial)?,
            own: pinned(&own)?,
        };
        fixture.start_roles().await?;
        stranger::eavesdrop(fixture.servers.one_nats_url(), access::mallory()?, fixture.mallory.clone());
        Ok(fixture)
    }

    async fn start_roles(&mut self) -> anyhow::Result<()> {
        for n in 0..DISPATCHERS {
            let (nats, nats_url) = FaultProxy::before(self.servers.nats_url()).await;
            let (postgres, database_url) = FaultProxy::before(self.servers.database_url()).await;
            let process = self.dispatcher_process(n, &nats_url, &database_url);
            self.dispatchers.push(Dispatcher { process, nats, postgres, nats_url, database_url });
        }
        for n in 0..DISPATCHERS {
            self.dispatcher_is_ready(n).await;
        }
        for n in 0..WORKERS {
            let (nats, nats_url) = FaultProxy::before(self.servers.nats_url()).await;
            let tools = if n < TOOL_WORKERS { ToolSet::Whole } else { ToolSet::Models };
            let (process, id) = self.worker_process(&nats_url, tools).await;
            self.workers.push(Worker { process, id, nats, nats_url, tools });
        }
        let model = redial_proto::turn::tool_name(load::MODEL);
        let tools: Vec<String> = load::tools().into_iter().map(|(name, _)| name).chain([model]).collect();
        redial_testkit::until("every tool is registered", async || {
            (self.observer.registered(&tools).await? == tools.len()).then_some(())
        })
        .await;
        Ok(())
    }

    /// Starts a dispatcher. Only the first one has the setting of replicas: the other one must keep to it.
    fn dispatcher_process(&self, n: usize, nats_url: &str, database_url: &str) -> Process {
        let lease = format!("{}ms", LEASE.as_millis());
        Process::start(&self.redial, |command| {
            command.args(["dispatcher", "--lease", &lease, "--database-connections", "8", "--log-format", "text"]);
            let login = Login::dispatcher();
            command.args(["--nats-url", &login.url(nats_url), "--nats-inbox-prefix", &login.inbox]);
            command.args(["--database-url", database_url]);
            if let Some(replicas) = self.replicas.filter(|_| n == 0) {
                command.args(["--nats-replicas", replicas]);
            }
        })
    }

    async fn worker_process(&mut self, nats_url: &str, tools: ToolSet) -> (Process, String) {
        let process = Process::start(&self.own, |command| {
            command.args(["worker", "--nats-url", nats_url, "--tools", tools.name()]);
            command.arg("--models").arg(&self.models).arg("--ledger").arg(self.ledger.path());
        });
        let id = process.line(worker::ID).await.trim_start_matches(worker::ID).to_owned();
        self.started.push(id.clone());
        (process, id)
    }

    pub(crate) fn replace_dispatcher(&mut self, n: usize) {
        let Dispatcher { nats_url, database_url, .. } = &self.dispatchers[n];
        let new = self.dispatcher_process(n, nats_url, database_url);
        let old = std::mem::replace(&mut self.dispatchers[n].process, new);
        self.outputs.push((format!("dispatcher-{}", n + 1), old.output()));
    }

    pub(crate) async fn replace_worker(&mut self, n: usize) {
        let (nats_url, tools) = (self.workers[n].nats_url.clone(), self.workers[n].tools);
        let (process, id) = self.worker_process(&nats_url, tools).await;
        let worker = &mut self.workers[n];
        let old = std::mem::replace(&mut worker.process, process);
        let old_id = std::mem::replace(&mut worker.id, id);
        self.outputs.push((format!("worker-{old_id}"), old.output()));
    }

    pub(crate) async fn dispatcher_is_ready(&self, n: usize) {
        self.dispatchers[n].process.line("Dispatcher started").await;
    }

    pub(crate) fn proxy(&self, line: Line) -> &FaultProxy {
        match line {
            Line::WorkerToNats(n) => &self.workers[n].nats,
            Line::DispatcherToNats(n) => &self.dispatchers[n].nats,
            Line::DispatcherToPostgres(n) => &self.dispatchers[n].postgres,
            Line::ClientToNats => &self.client,
        }
    }

    /// Records that a worker may lose leases from here on.
    pub(crate) fn disturb(&mut self, n: usize) {
        self.disturbed_since(n, Utc::now());
    }

    /// Records that a worker may have lost leases since then.
    pub(crate) fn disturbed_since(&mut self, n: usize, from: DateTime<Utc>) {
        self.disturbed.push(Disturbance { worker: Some(self.workers[n].id.clone()), from, until: None });
    }

    /// Records that a disturbed worker is connected again, and soon holds only its own leases.
    pub(crate) fn healed(&mut self, n: usize) {
        let soon = Utc::now() + LEASE + redial_queue::LONGEST_RECONNECT;
        let id = &self.workers[n].id;
        if let Some(disturbance) =
            self.disturbed.iter_mut().rev().find(|disturbance| disturbance.worker.as_ref() == Some(id))
        {
            disturbance.until = Some(soon);
        }
    }

    /// Records processes that ended by themselves, and replaces them.
    pub(crate) async fn look_after(&mut self) {
        for n in 0..DISPATCHERS {
            if !self.dispatchers[n].process.runs() {
                self.crashes.push(format!("dispatcher {} ended: {}", n + 1, last(&self.dispatchers[n].process)));
                self.replace_dispatcher(n);
            }
        }
        for n in 0..WORKERS {
            if !self.workers[n].process.runs() {
                self.crashes.push(format!("worker {} ended: {}", n + 1, last(&self.workers[n].process)));
                self.disturbed_since(n, DateTime::UNIX_EPOCH);
                self.replace_worker(n).await;
            }
        }
    }

    /// Records which calls have not ended, to find out why.
    pub(crate) async fn diagnose(&mut self) {
        let living = self.observer.living().await.unwrap_or_default();
        self.outputs.push(("diagnosis".to_owned(), living.join("\n")));
    }

    /// Stops every role; one that does not stop cleanly is recorded as a crash.
    pub(crate) async fn end_roles(&mut self) {
        let (workers, dispatchers) = (std::mem::take(&mut self.workers), std::mem::take(&mut self.dispatchers));
        for worker in &workers {
            self.end(format!("worker-{}", worker.id), &worker.process).await;
        }
        for (n, dispatcher) in dispatchers.iter().enumerate() {
            self.end(format!("dispatcher-{}", n + 1), &dispatcher.process).await;
        }
        (self.workers, self.dispatchers) = (workers, dispatchers);
    }

    async fn end(&mut self, name: String, process: &Process) {
        process.terminate();
        match tokio::time::timeout(STOPS, process.ended()).await {
            Ok(status) if status.success() => {}
            Ok(status) => {
                self.crashes.push(format!("{name} ended with {status} when asked to stop: {}", last(process)));
            }
            Err(_) => self.crashes.push(format!("{name} did not stop within {STOPS:?}: {}", last(process))),
        }
        self.outputs.push((name, process.output()));
    }
}

async fn servers(disk: &Disk, redundancy: Redundancy) -> anyhow::Result<Servers> {
    let mut servers = Servers::start_own_on(Some(disk.store()), Some(access::accounts()?)).await;
    if redundancy.cluster {
        servers = servers.with_cluster().await;
    }
    if redundancy.standby {
        servers = servers.with_standby().await;
    }
    Ok(servers)
}

fn pinned(program: &Path) -> anyhow::Result<PathBuf> {
    let copy = unique_path("program");
    if std::fs::hard_link(program, &copy).is_err() {
        std::fs::copy(program, &copy).with_context(|| format!("{} cannot be copied", program.display()))?;
    }
    Ok(copy)
}

fn last(process: &Process) -> String {
    process.output().lines().last().unwrap_or("no output").to_owned()
}
