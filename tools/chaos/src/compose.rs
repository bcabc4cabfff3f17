//! `redial-chaos compose`, which `./dev compose` starts: breaks the containers of a running Compose project, and checks the
//! invariants.
//!
//! | file | does |
//! | --- | --- |
//! | `plan.rs` | which faults and which work, from a seed |
//! | `docker.rs` | containers, through the program `docker` |
//! | `faults.rs`, `ended.rs` | injects, heals, measures recovery; a run that is over |
//! | `http.rs` | submits calls to the gateway |
//! | `report.rs` | the report |

mod docker;
mod ended;
mod faults;
mod http;
mod plan;
mod report;

use std::{
    collections::HashSet,
    fs,
    path::Path,
    time::{Duration, Instant},
};

use anyhow::Context as _;
use redial_queue::{Queue, QueueConfig};
use redial_testkit::{Claims, Disturbance, Ledger, Observer, check};
use tokio::task::JoinSet;

use self::{
    docker::Docker,
    ended::Ended,
    faults::{Disturbed, Faults, Injected},
    http::Gateway,
    report::Report,
};
use crate::{
    access::{self, Login},
    cli::ComposeArgs,
    client::{Clients, Customer},
    run::say,
};

/// The user of the compose file that submits.
const APP: (&str, &str) = ("default", "app");
/// What has not ended this long after the last fault does not end.
const DRAIN: Duration = Duration::from_mins(4);
/// About how long a step takes: the submissions are spread over the faults by it.
const STEP: Duration = Duration::from_secs(10);
/// One in so many calls is submitted over HTTP.
const OVER_HTTP: u32 = 10;

/// See the module.
pub(crate) async fn run(args: &ComposeArgs) -> anyhow::Result<Report> {
    let (seed, began) = (args.seed.unwrap_or_else(rand::random), Instant::now());
    let steps = plan::steps(seed, args.faults as usize);
    let settings = Settings::read(&args.env)?;
    let docker = Docker::of_project(&args.project);
    let queue = connect(args, &settings).await?;
    let observer = Observer::new(&settings.database(args)?);
    ready(&docker, &observer).await?;
    say(&format!("seed {seed}: {} calls, {} tasks, {} faults", args.calls, args.tasks, steps.len()));

    let over_http = args.calls / OVER_HTTP;
    let mut calls = plan::calls(seed, args.calls);
    let of_gateway = calls.split_off(calls.len() - over_http as usize);
    let customer = Customer::new(queue.clone(), calls, plan::tasks(args.tasks)).await?;
    let time = STEP * u32::try_from(steps.len())?;
    let clients = Clients::new(vec![customer], time);
    let mut submitting = clients.start(&observer);
    let gateway = Gateway::start(args.http, settings.token()?, of_gateway, time);

    let mut faults = Faults::new(docker, queue, observer.clone());
    let mut injected = Vec::new();
    for (n, step) in steps.iter().enumerate() {
        let one = faults.step(step).await.with_context(|| step.to_string())?;
        say(&line(&one, (n + 1, steps.len()), began.elapsed(), &clients, &gateway));
        injected.push(one);
    }
    say("the faults are over; submitting the rest, and waiting until all has ended");
    clients.skip_pauses();
    gateway.skip_pauses();
    let acknowledged = acknowledged(args, &clients, &mut submitting, &gateway).await;
    let living = drain(&observer).await;
    let wrong = wrong(acknowledged, living, &clients, &gateway);
    let asked_again = clients.log().unknown + gateway.asked_again();
    let ended = Ended {
        seed,
        took: began.elapsed(),
        injected,
        evidence: observer.evidence().await,
        claims: claims(args, &clients, &gateway, &faults).await?,
        wrong,
        unhealthy: faults.docker.unhealthy_after(DRAIN).await?,
        crashes: faults.docker.panics().await?,
        over_http: gateway.acknowledged().len(),
        asked_again,
    };
    let violations = check(&ended.evidence, &ended.claims);
    Ok(report::make(args, &ended, &violations))
}

/// The file of settings that Compose read.
struct Settings(String);

impl Settings {
    fn read(path: &Path) -> anyhow::Result<Self> {
        Ok(Self(fs::read_to_string(path).with_context(|| path.display().to_string())?))
    }

    fn get(&self, name: &str) -> anyhow::Result<&str> {
        let lines = self.0.lines().filter_map(|line| line.split_once('='));
        let mut values = lines.filter(|(one, _)| *one == name).map(|(_, value)| value);
        values.next_back().with_context(|| format!("{name} is not set in the file of settings"))
    }

    fn database(&self, args: &ComposeArgs) -> anyhow::Result<String> {
        let password = self.get("REDIAL_POSTGRES_PASSWORD")?;
        Ok(format!("postgres://redial:{password}@127.0.0.1:{}/redial?sslmode=disable", args.postgres))
    }

    fn token(&self) -> anyhow::Result<String> {
        self.get("REDIAL_CHECK_TOKEN").map(str::to_owned)
    }
}

/// The login of the user of the compose file.
async fn connect(args: &ComposeArgs, settings: &Settings) -> anyhow::Result<Queue> {
    let (tenant, user) = (access::named(APP.0)?, access::named(APP.1)?);
    let password = settings.get("REDIAL_NATS_APP_PASSWORD")?;
    let url = format!("nats://{}.{}:{password}@127.0.0.1:{}", APP.0, APP.1, args.nats);
    let inbox_prefix = Some(Login::user(&tenant, &user).inbox);
    let config = QueueConfig { url, name: "compose".to_owned(), inbox_prefix, tenant, user, ..QueueConfig::default() };
    Ok(Queue::connect(&config).await?)
}

/// Waits until every container runs and every tool is registered.
async fn ready(docker: &Docker, observer: &Observer) -> anyhow::Result<()> {
    let (began, tools) = (Instant::now(), plan::tools());
    loop {
        let unhealthy = docker.unhealthy().await?;
        if unhealthy.is_empty() && observer.registered(&tools).await == Some(tools.len()) {
            return Ok(());
        }
        anyhow::ensure!(began.elapsed() < DRAIN, "the containers did not become ready: {unhealthy:?}");
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

/// Waits until everything is acknowledged, or is not any more, which is returned.
async fn acknowledged(
    args: &ComposeArgs,
    clients: &Clients,
    submitting: &mut JoinSet<()>,
    gateway: &Gateway,
) -> Option<String> {
    let all = async {
        while submitting.join_next().await.is_some() {}
        gateway.done().await;
    };
    let _too_late = tokio::time::timeout(DRAIN, all).await;
    let ((calls, tasks), over_http) = (clients.acknowledged(), gateway.acknowledged().len());
    let missing = (calls + over_http, tasks) != (args.calls as usize, args.tasks as usize);
    missing.then(|| {
        let all = format!("{} of {} calls and {tasks} of {} tasks", calls + over_http, args.calls, args.tasks);
        format!("{all} were acknowledged")
    })
}

/// Waits until everything has ended, or does not any more, which is returned.
async fn drain(observer: &Observer) -> Vec<String> {
    let began = Instant::now();
    while began.elapsed() < DRAIN {
        if observer.live().await == Some(0) {
            return Vec::new();
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    observer.living().await.unwrap_or_default()
}

/// What was not acknowledged, what did not end, and answers that must not occur.
fn wrong(acknowledged: Option<String>, living: Vec<String>, clients: &Clients, gateway: &Gateway) -> Vec<String> {
    let surprises = clients.log().surprises.clone();
    acknowledged.into_iter().chain(living).chain(surprises).chain(gateway.surprises()).collect()
}

/// What clients received, what tools did, and what was done to workers.
async fn claims(args: &ComposeArgs, clients: &Clients, gateway: &Gateway, faults: &Faults) -> anyhow::Result<Claims> {
    let mut claims = clients.claims();
    claims.acknowledged.extend(gateway.acknowledged());
    claims.acknowledged.extend(faults.probes.iter().cloned());
    let (mut disturbed, mut paused) = (Vec::new(), HashSet::new());
    for Disturbed { container, from, until, paused: stood_still } in &faults.disturbed {
        // A container that was started again has several workers.
        for worker in faults.docker.workers(container).await? {
            disturbed.push(Disturbance { worker: Some(worker.clone()), from: *from, until: Some(*until) });
            if *stood_still {
                paused.insert(worker);
            }
        }
    }
    let tool_events = Ledger::open(&args.ledger).entries();
    Ok(Claims { tool_events, disturbed, paused: paused.into_iter().collect(), ..claims })
}

fn line(one: &Injected, (n, all): (usize, usize), at: Duration, clients: &Clients, gateway: &Gateway) -> String {
    let recovery = one.told();
    let (calls, tasks) = clients.acknowledged();
    let calls = calls + gateway.acknowledged().len();
    format!("{:>4} s {n:>3}/{all}  {}{recovery}   [{calls} calls, {tasks} tasks]", at.as_secs(), one.step)
}
