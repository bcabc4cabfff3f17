//! A tool without workers or without its service, for a while: its calls wait, and all else goes on.

use std::{fs, time::Duration};

use chrono::{DateTime, Utc};
use redial_proto::CallId;
use serde_json::{Value, json};

use super::{Injector, Outcome, Target, reached, reached_within};
use crate::{
    cli::ToolSet,
    load,
    schedule::{TOOL_WORKERS, Victim},
};

/// How long nobody has the tool.
const GONE: Duration = Duration::from_secs(2);
/// Calls that wait for a worker: fewer than it has slots, so that all of them can start at once.
const WAITING: u64 = 50;
/// Calls that are submitted in each phase of a change.
const SOME: u64 = 20;
/// Calls that wait for a tool that is down, besides those of the usual clients.
const BACKLOG: u64 = 1_000;
/// How long they may take once it is back.
const SLOW_START: Duration = Duration::from_secs(90);

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

    /// Takes a tool down for a minute, and lets calls wait; then all of them run, slowly at first.
    pub(super) async fn tool_outage(&mut self) -> anyhow::Result<Outcome> {
        let pulse = self.pulse();
        fs::write(&self.fixture.outage, "")?;
        let outage = self.fixture.outage.clone();
        self.submit(load::FRAGILE, BACKLOG, |n| json!({"n": n, "down_while": outage})).await;
        tokio::time::sleep(self.minute).await;
        fs::remove_file(&self.fixture.outage)?;
        let back = Utc::now();
        let observer = &self.fixture.observer;
        let waiting = observer.open_of(load::FRAGILE, back).await.unwrap_or_default();
        let ended = reached_within(SLOW_START, async || observer.open_of(load::FRAGILE, back).await == Some(0)).await;
        let outcome = Outcome::recovered(ended).counts_for(Target::OutageOver);
        Ok(outcome.with(self.longest_pause(pulse).await).noted(format!("{waiting} calls waited")))
    }

    /// Restarts a worker with other tools; returns when it has registered.
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

    /// Returns how long after this moment the last of the calls was started, by the database's clock.
    async fn started(&self, calls: &[CallId], since: DateTime<Utc>) -> Option<Duration> {
        reached(async || self.progress(calls).await.waiting == 0).await?;
        let last = self.progress(calls).await.last_start?;
        Some((last - since).to_std().unwrap_or_default())
    }

    /// Checks that none of these starts, because nobody can run them for a while.
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
}
