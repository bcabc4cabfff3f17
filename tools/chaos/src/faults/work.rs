//! Messages that come twice, calls that kill, tools that fail.

use std::{
    fs,
    time::{Duration, Instant},
};

use chrono::Utc;

use serde_json::json;

use super::{Injector, Outcome, PATIENCE, Target, between, reached, reached_within};
use crate::{
    client, load,
    schedule::{Step, WORKERS},
};

const ANSWER: Duration = Duration::from_secs(5);
/// Calls that wait for a tool that is down, besides those of the usual clients.
const BACKLOG: u64 = 1_000;
/// How long they may take once it is back.
const SLOW_START: Duration = Duration::from_secs(90);

impl Injector {
    pub(super) async fn repeat_reports(&mut self, step: &Step) -> Outcome {
        let said = self.fixture.echo.repeat_reports(step.measure.into()).await;
        self.repeated += said;
        Outcome::default().noted(format!("{said} messages"))
    }

    pub(super) async fn repeat_jobs(&mut self, step: &Step) -> Outcome {
        let said = self.fixture.echo.repeat_jobs(step.measure.into()).await;
        self.repeated += said;
        Outcome::default().noted(format!("{said} messages"))
    }

    /// The worker that runs it dies and is started again, as by a supervisor.
    pub(super) async fn poison_call(&mut self) -> anyhow::Result<Outcome> {
        self.poisoned += 1;
        let submission = load::poison(self.poisoned);
        let (mut deaths, began, since) = (0, Instant::now(), Utc::now());
        let call = loop {
            match client::submit_once(&self.fixture.control, &submission, ANSWER).await {
                Some(call) => break call,
                None if began.elapsed() < PATIENCE => {}
                None => return Ok(Outcome::recovered(None)),
            }
        };
        let ended = loop {
            let over = tokio::time::timeout(
                Duration::from_millis(200),
                reached(async || self.fixture.observer.ended(call).await == Some(true)),
            );
            let over = over.await.is_ok();
            for n in 0..WORKERS {
                if !self.fixture.workers[n].process.runs() {
                    self.fixture.disturbed_since(n, since);
                    self.fixture.replace_worker(n).await?;
                    deaths += 1;
                }
            }
            if over || began.elapsed() > 2 * PATIENCE {
                break over;
            }
        };
        if deaths > load::POISON_ATTEMPTS {
            self.fixture
                .crashes
                .push(format!("{deaths} workers died of a call with {} attempts", load::POISON_ATTEMPTS));
        }
        let word = if ended { "" } else { "; it has not ended" };
        Ok(Outcome::default().noted(format!("{deaths} workers died{word}")))
    }

    pub(super) async fn tool_outage(&mut self, step: &Step) -> anyhow::Result<Outcome> {
        let from = Utc::now();
        fs::write(&self.fixture.outage, "")?;
        tokio::time::sleep(between(Duration::from_secs(8), Duration::from_secs(12), step)).await;
        fs::remove_file(&self.fixture.outage)?;
        self.tool_outages.push((from, Utc::now()));
        Ok(Outcome::default())
    }

    /// A tool is down for a minute, and calls wait; then all of them run, slowly at first.
    pub(super) async fn backlogged_outage(&mut self) -> anyhow::Result<Outcome> {
        let (pulse, from) = (self.pulse(), Utc::now());
        fs::write(&self.fixture.outage, "")?;
        let outage = self.fixture.outage.clone();
        self.submit(load::FRAGILE, BACKLOG, |n| json!({"n": n, "down_while": outage})).await;
        tokio::time::sleep(self.minutes.of_the_whole).await;
        fs::remove_file(&self.fixture.outage)?;
        let back = Utc::now();
        self.tool_outages.push((from, back));
        let observer = &self.fixture.observer;
        let waiting = observer.open_of(load::FRAGILE, back).await.unwrap_or_default();
        let ended = reached_within(SLOW_START, async || observer.open_of(load::FRAGILE, back).await == Some(0)).await;
        let outcome = Outcome::recovered(ended).counts_for(Target::OutageOver);
        Ok(outcome.with(self.longest_pause(pulse).await).noted(format!("{waiting} calls waited")))
    }
}
