//! The servers and processes that faults are injected into.

mod programs;

use std::{path::PathBuf, time::Duration};

use chrono::{DateTime, Utc};
use redial_proto::subjects::{INTAKE_STREAM, JOBS_STREAM, RESULTS_STREAM};
use redial_queue::{Queue, QueueConfig};
use redial_testkit::{Disturbance, Ear, FaultProxy, Ledger, Observer, Process, RawNats, Servers, unique_path};
use serde_json::json;

use self::programs::Programs;
pub(crate) use self::programs::Python;
use crate::{
    access::{self, Login, MALLORY, OF_FAULTS, ROGUE},
    cli::ToolSet,
    clock::WrongClock,
    disk::Disk,
    echo::Echo,
    load,
    schedule::{DISPATCHERS, Line, Redundancy, TOOL_WORKERS, WORKERS},
    stranger, worker,
};

/// How long a process may take to stop.
const STOPS: Duration = Duration::from_mins(1);

/// A dispatcher and its connections.
pub(crate) struct Dispatcher {
    pub(crate) process: Process,
    pub(crate) nats: FaultProxy,
    pub(crate) postgres: FaultProxy,
    nats_url: String,
    database_url: String,
}

/// A worker and its connection.
pub(crate) struct Worker {
    pub(crate) process: Process,
    pub(crate) id: String,
    pub(crate) nats: FaultProxy,
    nats_url: String,
    clock: Option<WrongClock>,
    /// What it can run from its next start on.
    pub(crate) tools: ToolSet,
    /// True if its program is in Python.
    python: bool,
}

/// See the module.
pub(crate) struct Fixture {
    pub(crate) servers: Servers,
    pub(crate) disk: Disk,
    pub(crate) ledger: Ledger,
    pub(crate) observer: Observer,
    /// As the user of faults; it does not go through a proxy.
    pub(crate) control: Queue,
    /// The proxy of the clients' connection.
    pub(crate) client: FaultProxy,
    pub(crate) client_url: String,
    pub(crate) dispatchers: Vec<Dispatcher>,
    pub(crate) workers: Vec<Worker>,
    pub(crate) echo: Echo,
    /// What the hostile user and the rogue worker receive.
    pub(crate) mallory: Ear,
    pub(crate) rogue: Ear,
    pub(crate) lease: Duration,
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
    pub(crate) wrong_clocks: usize,
    /// The secret that must not leak.
    pub(crate) secret: String,
    models: PathBuf,
    /// The setting of the first dispatcher for the replicas of streams.
    replicas: Option<&'static str>,
    programs: Programs,
}

impl Fixture {
    /// Starts everything.
    pub(crate) async fn start(
        lease: Duration,
        clock_error: i64,
        redundancy: Redundancy,
        python: Option<Python>,
    ) -> anyhow::Result<Self> {
        let disk = Disk::make()?;
        let servers = servers(&disk, redundancy).await?;
        redial_store::admin::create_database(servers.postgres_url(), servers.database()).await?;
        redial_store::admin::migrate(servers.database_url()).await?;
        let (script, models) = (unique_path("script.toml"), unique_path("models.toml"));
        std::fs::write(&script, load::script())?;
        std::fs::write(&models, load::models(&script))?;
        let all_rights = connect(servers.nats_url(), "chaos").await?;
        let control = access::connect(servers.nats_url(), OF_FAULTS).await?;
        let (client, client_url) = FaultProxy::before(servers.nats_url()).await;
        let secret = format!("canary-{:032x}", rand::random::<u128>());
        let mut fixture = Self {
            observer: Observer::new(&servers.primary_url()),
            echo: Echo::listen(&all_rights, &secret).await?,
            secret,
            servers,
            disk,
            ledger: Ledger::create(),
            control,
            client,
            client_url,
            dispatchers: Vec::new(),
            workers: Vec::new(),
            mallory: Ear::new("the hostile user", Some(MALLORY.0)),
            rogue: Ear::new("the rogue worker", None),
            lease,
            outage: unique_path("outage"),
            started: Vec::new(),
            disturbed: Vec::new(),
            paused: Vec::new(),
            crashes: Vec::new(),
            outputs: Vec::new(),
            wrong_clocks: 0,
            models,
            replicas: redundancy.cluster.then_some("3"),
            programs: Programs::pin(python)?,
        };
        fixture.start_roles(clock_error).await?;
        let (mallory, rogue) = Self::strangers()?;
        stranger::eavesdrop(fixture.servers.one_nats_url(), mallory, fixture.mallory.clone());
        stranger::eavesdrop(fixture.servers.one_nats_url(), rogue, fixture.rogue.clone());
        Ok(fixture)
    }

    /// The logins of the hostile user and of the rogue worker.
    pub(crate) fn strangers() -> anyhow::Result<(Login, Login)> {
        let (tenant, user) = MALLORY;
        Ok((Login::user(&access::named(tenant)?, &access::named(user)?), Login::worker(ROGUE.0)))
    }

    async fn start_roles(&mut self, clock_error: i64) -> anyhow::Result<()> {
        for n in 0..DISPATCHERS {
            let (nats, nats_url) = FaultProxy::before(self.servers.nats_url()).await;
            let (postgres, database_url) = FaultProxy::before(self.servers.database_url()).await;
            let process = self.dispatcher_process(n, &nats_url, &database_url);
            self.dispatchers.push(Dispatcher { process, nats, postgres, nats_url, database_url });
        }
        for n in 0..DISPATCHERS {
            self.dispatcher_is_ready(n).await;
        }
        let mut clock = WrongClock::make(clock_error);
        for n in 0..WORKERS {
            let (nats, nats_url) = FaultProxy::before(self.servers.nats_url()).await;
            let clock = if n + 1 == TOOL_WORKERS { clock.take() } else { None };
            let tools = if n < TOOL_WORKERS { ToolSet::Whole } else { ToolSet::Models };
            let python = self.programs.python.as_ref().is_some_and(|python| n < python.workers);
            let python = python && tools == ToolSet::Whole;
            let (process, id) = self.worker_process(&nats_url, clock.as_ref(), tools, python).await?;
            self.workers.push(Worker { process, id, nats, nats_url, clock, tools, python });
        }
        let model = redial_proto::turn::tool_name(load::MODEL);
        let tools: Vec<String> = load::tools().into_iter().map(|(name, _)| name).chain([model]).collect();
        redial_testkit::until("every tool is registered", async || {
            (self.observer.registered(&tools).await? == tools.len()).then_some(())
        })
        .await;
        Ok(())
    }

    /// Only the first one has the setting of replicas: the other one must keep to it.
    fn dispatcher_process(&self, n: usize, nats_url: &str, database_url: &str) -> Process {
        let lease = format!("{}ms", self.lease.as_millis());
        Process::start(&self.programs.redial, |command| {
            command.args(["dispatcher", "--lease", &lease, "--database-connections", "8", "--log-format", "text"]);
            let login = Login::dispatcher();
            command.args(["--nats-url", &login.url(nats_url), "--nats-inbox-prefix", &login.inbox]);
            command.args(["--database-url", database_url]);
            if let Some(replicas) = self.replicas.filter(|_| n == 0) {
                command.args(["--nats-replicas", replicas]);
            }
        })
    }

    async fn worker_process(
        &mut self,
        nats_url: &str,
        clock: Option<&WrongClock>,
        tools: ToolSet,
        in_python: bool,
    ) -> anyhow::Result<(Process, String)> {
        let python = self.programs.python.as_ref().filter(|_| in_python);
        let process = Process::start(python.map_or(&self.programs.own, |python| &python.program), |command| {
            if let Some(python) = python {
                let login = Login::worker(tools.identity().0);
                command.arg(&python.script).args(["--nats-url", &login.url(nats_url), "--inbox", &login.inbox]);
            } else {
                command.args(["worker", "--nats-url", nats_url]).arg("--models").arg(&self.models);
            }
            command.arg("--ledger").arg(self.ledger.path());
            command.args(["--secret", &self.secret, "--tools", tools.as_str()]);
            if let Some(clock) = clock {
                clock.give(command);
            }
        });
        self.wrong_clocks += usize::from(clock.is_some());
        let id = process.line(worker::ID).await.trim_start_matches(worker::ID).to_owned();
        self.started.push(id.clone());
        Ok((process, id))
    }

    /// Replaces a dispatcher that has ended.
    pub(crate) fn replace_dispatcher(&mut self, n: usize) {
        let Dispatcher { nats_url, database_url, .. } = &self.dispatchers[n];
        let new = self.dispatcher_process(n, nats_url, database_url);
        let old = std::mem::replace(&mut self.dispatchers[n].process, new);
        self.outputs.push((format!("dispatcher-{}", n + 1), old.output()));
    }

    /// Replaces a worker that has ended.
    pub(crate) async fn replace_worker(&mut self, n: usize) -> anyhow::Result<()> {
        let Worker { nats_url, clock, tools, python, .. } = &self.workers[n];
        let (nats_url, clock, tools, python) = (nats_url.clone(), clock.clone(), *tools, *python);
        let (process, id) = self.worker_process(&nats_url, clock.as_ref(), tools, python).await?;
        let worker = &mut self.workers[n];
        let old = std::mem::replace(&mut worker.process, process);
        let old_id = std::mem::replace(&mut worker.id, id);
        self.outputs.push((format!("worker-{old_id}"), old.output()));
        Ok(())
    }

    /// Starts a worker of the second pool, which has none otherwise.
    pub(crate) async fn start_aside(&mut self) -> anyhow::Result<(Process, String)> {
        let url = self.servers.nats_url().to_owned();
        self.worker_process(&url, None, ToolSet::Aside, false).await
    }

    /// Asks the worker of the second pool to end, and waits for it.
    pub(crate) async fn stop_aside(&mut self, worker: (Process, String)) {
        let (process, id) = worker;
        self.end(format!("worker-{id}"), &process).await;
    }

    /// Waits until a dispatcher answers requests.
    pub(crate) async fn dispatcher_is_ready(&self, n: usize) {
        self.dispatchers[n].process.line("Dispatcher started").await;
    }

    /// The proxy of a connection.
    pub(crate) fn proxy(&self, line: Line) -> &FaultProxy {
        match line {
            Line::WorkerToNats(n) => &self.workers[n].nats,
            Line::DispatcherToNats(n) => &self.dispatchers[n].nats,
            Line::DispatcherToPostgres(n) => &self.dispatchers[n].postgres,
            Line::ClientToNats => &self.client,
        }
    }

    /// A worker may lose leases from here on.
    pub(crate) fn disturb(&mut self, n: usize) {
        self.disturbed_since(n, Utc::now());
    }

    /// A worker may have lost leases since then.
    pub(crate) fn disturbed_since(&mut self, n: usize, from: DateTime<Utc>) {
        self.disturbed.push(Disturbance { worker: Some(self.workers[n].id.clone()), from, until: None });
    }

    /// A disturbed worker is connected again, and soon holds only its own leases.
    pub(crate) fn healed(&mut self, n: usize) {
        let soon = Utc::now() + self.lease + redial_queue::LONGEST_RECONNECT;
        let id = &self.workers[n].id;
        if let Some(disturbance) =
            self.disturbed.iter_mut().rev().find(|disturbance| disturbance.worker.as_ref() == Some(id))
        {
            disturbance.until = Some(soon);
        }
    }

    /// Records processes that ended by themselves, and replaces them.
    pub(crate) async fn look_after(&mut self) -> anyhow::Result<()> {
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
                self.replace_worker(n).await?;
            }
        }
        Ok(())
    }

    /// The places where the secret was found.
    pub(crate) async fn leaks(&self) -> Vec<String> {
        let tables = self
            .observer
            .tables_with(&self.secret)
            .await
            .unwrap_or_else(|| vec!["the tables could not be searched".into()]);
        let tables = tables.into_iter().map(|table| format!("the secret is in table {table}"));
        let outputs = self.outputs.iter().filter(|(_, output)| output.contains(&self.secret));
        let outputs = outputs.map(|(name, _)| format!("the secret is in the output of {name}"));
        let echo = (self.echo.leaks() > 0).then(|| format!("the secret was in {} messages", self.echo.leaks()));
        tables.chain(outputs).chain(echo).collect()
    }

    /// Records the state of calls, streams and consumers, to find out why calls do not end.
    pub(crate) async fn diagnose(&mut self) {
        let mut found = self.observer.living().await.unwrap_or_default();
        let mut nats = RawNats::connect(self.servers.one_nats_url()).await;
        for stream in [JOBS_STREAM, RESULTS_STREAM, INTAKE_STREAM] {
            found.push(nats.jetstream(&format!("STREAM.INFO.{stream}"), &json!({})).await.to_string());
            // The names of the consumers of jobs follow from what the workers have registered.
            found.push(nats.jetstream(&format!("CONSUMER.LIST.{stream}"), &json!({})).await.to_string());
        }
        self.outputs.push(("diagnosis".to_owned(), found.join("\n")));
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

/// Starts Postgres and NATS.
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

/// Connects to NATS with all rights in the account of the dispatchers.
async fn connect(url: &str, name: &str) -> anyhow::Result<Queue> {
    let config = QueueConfig { url: url.to_owned(), name: name.to_owned(), ..QueueConfig::default() };
    Ok(Queue::connect(&config).await?)
}

fn last(process: &Process) -> String {
    process.output().lines().last().unwrap_or("no output").to_owned()
}
