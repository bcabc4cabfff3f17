//! Injecting faults into containers, healing them, and measuring how long recovery takes.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use chrono::{DateTime, TimeDelta, Utc};
use redial_proto::CallId;
use redial_queue::Queue;
use redial_testkit::Observer;
use rustix::process::{Pid, Signal, kill_process};

use super::{
    docker::{Container, Docker},
    plan::{self, Fault, Step},
};
use crate::client;

/// How long a fault lasts, so that servers and clients notice it, and no lease ends because of it alone.
const SHORT: Duration = Duration::from_secs(5);
/// The same of a fault that is to cost leases, which last 15 s.
const BEYOND_A_LEASE: Duration = Duration::from_secs(20);
/// Between two faults.
const REST: Duration = Duration::from_secs(1);
/// What has not recovered after this time does not recover.
const PATIENCE: Duration = Duration::from_mins(2);
/// A request without an answer after this time is repeated.
const ANSWER: Duration = Duration::from_secs(1);
/// Between two looks.
const LOOK: Duration = Duration::from_millis(50);
/// After a fault a worker may lose what it held until it is connected again, and its leases have been judged.
const AFTERMATH: TimeDelta = TimeDelta::seconds(30);

/// A fault that was injected.
pub(crate) struct Injected {
    pub(super) step: Step,
    /// From its end to the first call that was accepted after it and ran; `None` if there was none.
    pub(super) recovery: Option<Duration>,
    /// Why it could not be injected.
    pub(super) skipped: Option<String>,
}

impl Injected {
    /// For the progress.
    pub(super) fn told(&self) -> String {
        match (&self.skipped, self.recovery) {
            (Some(why), _) => format!(": SKIPPED: {why}"),
            (None, Some(time)) => format!(": recovered after {:.2} s", time.as_secs_f64()),
            (None, None) => ": DID NOT RECOVER".to_owned(),
        }
    }
}

/// A time in which a worker's container was broken.
pub(super) struct Disturbed {
    pub(super) container: Container,
    pub(super) from: DateTime<Utc>,
    pub(super) until: DateTime<Utc>,
    /// It stood still for longer than a lease.
    pub(super) paused: bool,
}

/// Injects one fault after another.
pub(super) struct Faults {
    pub(super) docker: Docker,
    queue: Queue,
    observer: Observer,
    pub(super) disturbed: Vec<Disturbed>,
    /// Probes that were acknowledged.
    pub(super) probes: Vec<(CallId, Option<String>)>,
    probed: usize,
}

impl Faults {
    pub(super) fn new(docker: Docker, queue: Queue, observer: Observer) -> Self {
        Self { docker, queue, observer, disturbed: Vec::new(), probes: Vec::new(), probed: 0 }
    }

    /// Injects a fault, ends it, and waits until a call that is submitted afterwards has run.
    pub(super) async fn step(&mut self, step: &Step) -> anyhow::Result<Injected> {
        let containers = self.docker.containers(step.service.name()).await?;
        let container = containers.get(step.choice % containers.len().max(1)).context("it has no container")?;
        let from = Utc::now();
        let skipped = self.inject(step, container).await?;
        let injected = |recovery, skipped| Injected { step: *step, recovery, skipped };
        if skipped.is_some() {
            return Ok(injected(None, skipped));
        }
        if step.service.is_worker() {
            let (container, paused) = (container.clone(), step.fault == Fault::Pause);
            self.disturbed.push(Disturbed { container, from, until: Utc::now() + AFTERMATH, paused });
        }
        let recovery = self.recovery().await;
        tokio::time::sleep(REST).await;
        Ok(injected(recovery, None))
    }

    /// Injects a fault and ends it; why it cannot be, if so.
    async fn inject(&self, step: &Step, container: &Container) -> anyhow::Result<Option<String>> {
        let (docker, id) = (&self.docker, container.id.as_str());
        let lasts = if step.service.is_worker() { BEYOND_A_LEASE } else { SHORT };
        match step.fault {
            Fault::Kill => {
                docker.run(&["kill", id]).await?;
                tokio::time::sleep(SHORT).await;
                docker.run(&["start", id]).await?;
            }
            Fault::Crash => return self.crash(container).await,
            // Compose would give it its `stop_grace_period`; 60 s is the longest in the file.
            Fault::Restart => drop(docker.run(&["restart", "--time", "60", id]).await?),
            Fault::Pause => {
                docker.run(&["pause", id]).await?;
                tokio::time::sleep(lasts).await;
                docker.run(&["unpause", id]).await?;
            }
            Fault::Disconnect => self.disconnect(step, container, lasts).await?,
        }
        Ok(None)
    }

    /// Kills the process of a container, and waits until Docker has started it again.
    async fn crash(&self, container: &Container) -> anyhow::Result<Option<String>> {
        let before = self.docker.inspect(container).await?;
        let pid = before["State"]["Pid"].as_i64().and_then(|pid| i32::try_from(pid).ok()).context("it does not run")?;
        // The engine may be in a virtual machine, and count its processes otherwise.
        let cgroup = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
        if !cgroup.contains(&container.id) {
            return Ok(Some("the engine's processes are not those of this machine".to_owned()));
        }
        kill_process(Pid::from_raw(pid).context("a process id is positive")?, Signal::KILL)?;
        let began = Instant::now();
        loop {
            let state = self.docker.inspect(container).await?["State"].clone();
            if state["Running"] == true && state["Pid"] != before["State"]["Pid"] {
                return Ok(None);
            }
            anyhow::ensure!(began.elapsed() < PATIENCE, "{} was not started again: {state}", container.name);
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Takes a container out of one of its networks, and puts it back under the names that it had there.
    async fn disconnect(&self, step: &Step, container: &Container, lasts: Duration) -> anyhow::Result<()> {
        let networks = step.service.networks();
        let network = self.docker.network(networks[step.choice % networks.len()]);
        let before = self.docker.inspect(container).await?;
        let aliases = &before["NetworkSettings"]["Networks"][&network]["Aliases"];
        let aliases = aliases.as_array().into_iter().flatten().filter_map(|alias| alias.as_str());
        let aliases: Vec<&str> = aliases.flat_map(|alias| ["--alias", alias]).collect();
        anyhow::ensure!(!aliases.is_empty(), "{} has no name in {network}", container.name);
        self.docker.run(&["network", "disconnect", &network, &container.id]).await?;
        tokio::time::sleep(lasts).await;
        let connect = [["network", "connect"].as_slice(), &aliases, &[&network, &container.id]].concat();
        self.docker.run(&connect).await?;
        Ok(())
    }

    /// How long it takes until a call is accepted and has run.
    async fn recovery(&mut self) -> Option<Duration> {
        let began = Instant::now();
        self.probed += 1;
        let probe = plan::probe(self.probed);
        let mut accepted = None;
        while began.elapsed() < PATIENCE {
            match accepted {
                None => {
                    accepted = client::submit_once(&self.queue, &probe, ANSWER).await;
                    self.probes.extend(accepted.map(|call| (call, probe.key.clone())));
                }
                Some(call) if self.observer.ended(call).await == Some(true) => return Some(began.elapsed()),
                Some(_) => {}
            }
            tokio::time::sleep(LOOK).await;
        }
        None
    }
}
