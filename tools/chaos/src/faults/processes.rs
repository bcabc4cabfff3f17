//! Processes that are killed, frozen, restarted.

use std::time::{Duration, Instant};

use chrono::Utc;
use redial_proto::ToolEffect;
use redial_testkit::{Paused, Process};
use tokio::task::JoinSet;

use super::{Injector, Outcome, PATIENCE, RECONNECTION, Recovery, Target, between, reached};
use crate::{
    client,
    fixture::LEASE,
    load,
    schedule::{DISPATCHERS, Line, Step, Victim, WORKERS},
};

/// Between two probes.
const PROBES: Duration = Duration::from_millis(50);
/// How long to wait until a worker that will be killed runs calls.
const BUSY: Duration = Duration::from_secs(3);

impl Injector {
    pub(super) async fn kill_worker(&mut self, n: usize) -> anyhow::Result<Outcome> {
        let id = self.fixture.workers[n].id.clone();
        let began = Instant::now();
        while began.elapsed() < BUSY
            && self.fixture.observer.running_on(&id).await.is_none_or(|running| running.is_empty())
        {
            tokio::time::sleep(super::LOOK).await;
        }
        let patient = self.outage_ended.is_some_and(|ended| ended.elapsed() < RECONNECTION + LEASE);
        self.fixture.disturb(n);
        self.fixture.workers[n].process.kill().await;
        let killed = Instant::now();
        let mut lost = self.fixture.observer.running_on(&id).await.unwrap_or_default();
        // After its outage, calls of this tool wait for retry tokens by design. Unsafe ones never run again: they end after their
        // timeouts.
        lost.retain(|running| running.tool != load::FRAGILE && running.tool != ToolEffect::Unsafe.as_str());
        self.fixture.replace_worker(n).await;
        let again = reached(async || self.fixture.observer.stuck(&lost).await == Some(0)).await;
        let outcome =
            Outcome::recovered(again.map(|_| killed.elapsed())).noted(format!("{} calls ran on it", lost.len()));
        Ok(match (lost.is_empty(), patient) {
            (true, _) => Outcome { recovery: Recovery::NotMeasured, ..outcome },
            (false, true) => outcome.noted(format!("{} calls ran on it; soon after an outage", lost.len())),
            (false, false) => outcome.counts_for(Target::WorkerKilled),
        })
    }

    pub(super) async fn kill_dispatcher(&mut self, n: usize) -> anyhow::Result<Outcome> {
        let killed = Utc::now();
        self.fixture.dispatchers[n].process.kill().await;
        self.fixture.replace_dispatcher(n);
        let done = self.completion(killed).await;
        self.fixture.dispatcher_is_ready(n).await;
        Ok(Outcome::recovered(done))
    }

    pub(super) async fn kill_nats(&mut self, step: &Step) -> anyhow::Result<Outcome> {
        self.fixture.servers.kill_nats().await;
        tokio::time::sleep(between(Duration::ZERO, Duration::from_millis(1500), step)).await;
        self.fixture.servers.start_nats().await;
        Ok(Outcome::recovered(self.completion(Utc::now()).await).counts_for(Target::NatsBack))
    }

    pub(super) async fn kill_postgres(&mut self, step: &Step) -> anyhow::Result<Outcome> {
        self.fixture.servers.kill_postgres().await;
        tokio::time::sleep(between(Duration::ZERO, Duration::from_millis(1500), step)).await;
        self.fixture.servers.start_postgres().await;
        Ok(Outcome::recovered(self.accepted().await).counts_for(Target::PostgresBack))
    }

    /// Measures the time until a submission is accepted. Asks again and again without waiting for the answer to what
    /// was asked before, as many clients would.
    pub(super) async fn accepted(&mut self) -> Option<Duration> {
        let (mut asked, began) = (JoinSet::new(), Instant::now());
        while began.elapsed() < PATIENCE {
            let (control, probe) = (self.fixture.control.clone(), self.probe());
            asked.spawn(async move { client::submit_once(&control, &probe, PATIENCE).await });
            let answers = async {
                while let Some(answer) = asked.join_next().await {
                    if let Ok(Some(_)) = answer {
                        return;
                    }
                }
                std::future::pending::<()>().await;
            };
            if tokio::time::timeout(PROBES, answers).await.is_ok() {
                return Some(began.elapsed());
            }
        }
        None
    }

    pub(super) async fn freeze(&mut self, victim: Victim, step: &Step) -> anyhow::Result<Outcome> {
        if let Victim::Worker(n) = victim {
            self.fixture.disturb(n);
            self.fixture.paused.push(self.fixture.workers[n].id.clone());
        }
        let paused: Vec<Paused> = self.pids(victim).into_iter().map(Paused::new).collect();
        tokio::time::sleep(between(LEASE + Duration::from_millis(300), LEASE + Duration::from_millis(1500), step))
            .await;
        drop(paused);
        if let Victim::Worker(n) = victim {
            self.fixture.healed(n);
        }
        let now = Utc::now();
        Ok(match victim {
            Victim::Worker(n) => Outcome::recovered(self.recovered(Line::WorkerToNats(n)).await),
            Victim::Dispatcher(n) => Outcome::recovered(self.answers(Line::DispatcherToPostgres(n)).await),
            Victim::Nats => Outcome::recovered(self.completion(now).await).counts_for(Target::NatsBack),
            Victim::Postgres => Outcome::recovered(self.accepted().await).counts_for(Target::PostgresBack),
        })
    }

    fn pids(&self, victim: Victim) -> Vec<u32> {
        match victim {
            Victim::Dispatcher(n) => vec![self.fixture.dispatchers[n].process.pid()],
            Victim::Worker(n) => vec![self.fixture.workers[n].process.pid()],
            Victim::Nats => self.fixture.servers.nats_pids(),
            Victim::Postgres => vec![self.fixture.servers.postgres_pid()],
        }
    }

    /// Sends SIGTERM to every process in turn, repeatedly: nothing may be lost, and nothing may fail.
    pub(super) async fn rolling_restart(&mut self) -> anyhow::Result<Outcome> {
        let began = Instant::now();
        let mut restarts = 0;
        while began.elapsed() < self.minute {
            for victim in everything() {
                self.restart(victim).await?;
                restarts += 1;
                if began.elapsed() >= self.minute {
                    break;
                }
            }
        }
        let recovery = self.completion(Utc::now()).await;
        Ok(Outcome::recovered(recovery).noted(format!("{restarts} restarts")))
    }

    pub(super) async fn restart(&mut self, victim: Victim) -> anyhow::Result<()> {
        match victim {
            Victim::Dispatcher(n) => {
                ends_when_asked(&self.fixture.dispatchers[n].process).await?;
                self.fixture.replace_dispatcher(n);
                self.fixture.dispatcher_is_ready(n).await;
            }
            Victim::Worker(n) => {
                ends_when_asked(&self.fixture.workers[n].process).await?;
                self.fixture.replace_worker(n).await;
            }
            Victim::Nats => {
                self.fixture.servers.stop_nats().await;
                self.fixture.servers.start_nats().await;
            }
            Victim::Postgres => {
                self.fixture.servers.stop_postgres().await;
                self.fixture.servers.start_postgres().await;
            }
        }
        Ok(())
    }
}

async fn ends_when_asked(process: &Process) -> anyhow::Result<()> {
    process.terminate();
    let status = process.ended().await;
    anyhow::ensure!(status.success(), "a process that was asked to end: {status}");
    Ok(())
}

/// Returns every process, once.
fn everything() -> impl Iterator<Item = Victim> {
    let roles = (0..DISPATCHERS).map(Victim::Dispatcher).chain((0..WORKERS).map(Victim::Worker));
    roles.chain([Victim::Nats, Victim::Postgres])
}
