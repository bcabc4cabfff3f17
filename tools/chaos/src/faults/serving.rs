//! Tools and pools without workers, for a while: what nobody can run waits, and all else goes on.

use std::time::Duration;

use chrono::{DateTime, Utc};
use redial_proto::CallId;
use serde_json::{Value, json};

use super::{Injector, Measured, Outcome, Target, reached};
use crate::{
    cli::ToolSet,
    load,
    schedule::{Step, TOOL_WORKERS, Victim},
};

/// How long nobody has the tool.
const GONE: Duration = Duration::from_secs(2);
/// Calls that wait for a worker: fewer than it has slots, so that all of them can start at once.
const WAITING: u64 = 50;
/// Calls that are submitted in each phase of a change.
const SOME: u64 = 20;
/// Calls of all tools that keep every worker busy for a moment.
const MANY: u64 = 300;

fn short(n: u64) -> Value {
    json!({"n": n, "before_ms": n % 40})
}

impl Injector {
    /// Restarts every worker without a tool, one after another, and then with it, while its calls are submitted.
    pub(super) async fn remove_tool(&mut self) -> anyhow::Result<Outcome> {
        let pulse = self.pulse();
        let mut calls = Vec::new();
        for n in 0..TOOL_WORKERS {
            calls.extend(self.submit(load::OPTIONAL, SOME, short).await);
            self.retool(n, ToolSet::WithoutOptional).await?;
        }
        let waiting = self.submit(load::OPTIONAL, WAITING, short).await;
        self.stay_unserved(&waiting).await;
        let back = self.retool(0, ToolSet::Whole).await?;
        let served = self.started(&waiting, back).await;
        let outcome = Outcome::recovered(served).counts_for(Target::ToolBack);
        for n in 1..TOOL_WORKERS {
            calls.extend(self.submit(load::OPTIONAL, SOME, short).await);
            self.retool(n, ToolSet::Whole).await?;
        }
        self.end_well("a tool was removed", &[calls, waiting].concat()).await;
        Ok(outcome.with(self.longest_pause(pulse).await).noted(format!("{WAITING} calls waited")))
    }

    /// A pool of one worker loses it in the middle of its work, and gets another one.
    pub(super) async fn scale_to_zero(&mut self) -> anyhow::Result<Outcome> {
        let pulse = self.pulse();
        let worker = self.fixture.start_aside().await?;
        self.registered(&worker.1).await?;
        let mut calls = self.submit(load::ASIDE, SOME, |n| json!({"n": n, "before_ms": 300})).await;
        self.fixture.stop_aside(worker).await;
        let waiting = self.submit(load::ASIDE, WAITING, short).await;
        self.stay_unserved(&waiting).await;
        let worker = self.fixture.start_aside().await?;
        let back = self.registered(&worker.1).await?;
        let outcome = Outcome::recovered(self.started(&waiting, back).await).counts_for(Target::PoolBack);
        calls.extend(waiting);
        self.end_well("a pool was scaled to zero", &calls).await;
        self.fixture.stop_aside(worker).await;
        Ok(outcome.with(self.longest_pause(pulse).await).noted(format!("{WAITING} calls waited")))
    }

    /// The tool of the pool of one worker belongs to that worker's identity: any other could take a name that nobody has yet.
    pub(super) async fn aside_is_pinned(&mut self) -> anyhow::Result<()> {
        let worker = self.fixture.start_aside().await?;
        self.registered(&worker.1).await?;
        self.fixture.stop_aside(worker).await;
        Ok(())
    }

    /// One worker has no optional tool any more, as in a rolling deployment.
    pub(super) async fn half_a_pool(&mut self, step: &Step) -> anyhow::Result<Outcome> {
        let pulse = self.pulse();
        let lacking = usize::try_from(step.measure)? % TOOL_WORKERS;
        self.retool(lacking, ToolSet::WithoutOptional).await?;
        let since = Utc::now();
        let calls = self.submit(load::OPTIONAL, WAITING, short).await;
        let served = self.started(&calls, since).await;
        let outcome = Outcome::recovered(served).counts_for(Target::HalfServed);
        let everywhere = self.everyone_works().await;
        self.end_well("half of a pool lacked a tool", &calls).await;
        let workers = self.fixture.observer.workers_of(&calls).await.unwrap_or_default();
        if workers.contains(&self.fixture.workers[lacking].id) {
            self.wrong.push(format!("worker {} ran calls of a tool that it lacks", lacking + 1));
        }
        self.retool(lacking, ToolSet::Whole).await?;
        Ok(outcome.with(everywhere).with(self.longest_pause(pulse).await))
    }

    /// Restarts a worker with other tools; when it has registered.
    async fn retool(&mut self, n: usize, tools: ToolSet) -> anyhow::Result<DateTime<Utc>> {
        self.fixture.workers[n].tools = tools;
        self.restart(Victim::Worker(n)).await?;
        let id = self.fixture.workers[n].id.clone();
        self.registered(&id).await
    }

    async fn registered(&self, worker: &str) -> anyhow::Result<DateTime<Utc>> {
        let mut seen = None;
        let observer = &self.fixture.observer;
        reached(async || {
            seen = observer.last_seen(worker).await.flatten();
            seen.is_some()
        })
        .await;
        seen.ok_or_else(|| anyhow::anyhow!("worker {worker} did not register"))
    }

    /// How long after this moment the last of the calls was started, by the database's clock.
    async fn started(&self, calls: &[CallId], since: DateTime<Utc>) -> Option<Duration> {
        reached(async || self.progress(calls).await.waiting == 0).await?;
        let last = self.progress(calls).await.last_start?;
        Some((last - since).to_std().unwrap_or_default())
    }

    /// Nobody can run these for a while, so none of them may start.
    async fn stay_unserved(&mut self, calls: &[CallId]) {
        tokio::time::sleep(GONE).await;
        let waiting = usize::try_from(self.progress(calls).await.waiting).unwrap_or_default();
        if waiting != calls.len() {
            self.wrong.push(format!("{} calls started that no worker could run", calls.len() - waiting));
        }
    }

    async fn end_well(&mut self, when: &str, calls: &[CallId]) {
        if self.end(calls).await.is_none() {
            let open = self.progress(calls).await.open;
            self.wrong.push(format!("{open} calls did not end after {when}"));
        }
    }

    /// How long it takes until each worker has completed a call.
    async fn everyone_works(&mut self) -> Measured {
        let since = Utc::now();
        self.submit(load::PROBED, MANY, short).await;
        let (observer, workers) = (&self.fixture.observer, &self.fixture.workers);
        let recovery = reached(async || {
            for worker in &workers[..TOOL_WORKERS] {
                if observer.completed_on(&worker.id, since).await != Some(true) {
                    return false;
                }
            }
            true
        });
        Measured { target: Target::EveryoneWorks, recovery: recovery.await.into(), until: Utc::now() }
    }
}
