//! The rounds: every case once; what is compared in turns, on the same servers.

use redial_servers::Process;

use crate::{
    baseline::{self, Baseline, PACKED, PLAIN, Tuning},
    before::Before,
    case::Case,
    database::Database,
    fleet::{Fleet, Program},
    http,
    load::{ECHO, Load, WORKER, arguments, percentiles},
    meter::{Reading, peak_memory},
    output::note,
    plan::Plan,
    samples::{Metric, Samples, Side},
    servers::Servers,
    slow_worker, tasks,
    turns::Turn,
    unserved::Unserved,
    waiting_http,
};

pub(crate) struct Rounds<'a> {
    plan: &'a Plan,
    servers: &'a Servers,
    database: Database,
    /// The database with a history, if some case wants it.
    history: Option<Database>,
    /// The databases of case (k), if it is wanted.
    unserved: Option<Unserved>,
    before: Option<&'a Before>,
    samples: Samples,
}

/// Measures everything that the plan holds.
pub(crate) async fn run(plan: &Plan, servers: &Servers, before: Option<&Before>) -> anyhow::Result<Samples> {
    let database = servers.database().await?;
    let history = if plan.wants(Case::E) { Some(with_history(plan, servers).await?) } else { None };
    let unserved = if plan.wants(Case::K) { Some(Unserved::prepare(servers, plan, note).await?) } else { None };
    let mut rounds = Rounds { plan, servers, database, history, unserved, before, samples: Samples::default() };
    for round in 1..=plan.rounds {
        rounds.round(round).await?;
    }
    let Rounds { database, history, unserved, samples, .. } = rounds;
    database.close().await;
    if let Some(history) = history {
        history.close().await;
    }
    if let Some(unserved) = unserved {
        unserved.close().await;
    }
    Ok(samples)
}

async fn with_history(plan: &Plan, servers: &Servers) -> anyhow::Result<Database> {
    servers.check_room(plan.history)?;
    let database = servers.history().await?;
    let (calls, begin) = (plan.history, chrono::Utc::now() - chrono::TimeDelta::days(1));
    let progress = |done| note(&format!("(e) history: {done} of {calls} ended calls written …"));
    database.fill_history(begin, calls, &arguments(0), progress).await?;
    Ok(database)
}

impl Rounds<'_> {
    async fn round(&mut self, round: u32) -> anyhow::Result<()> {
        let note = |what: &str| note(&format!("round {round} of {}: {what} …", self.plan.rounds));
        let plan = self.plan;
        for turn in Turn::of_round(plan, round) {
            note(turn.name());
            self.turn(turn).await?;
        }
        if plan.wants(Case::D) {
            note("(d): a backlog, then a worker");
            self.backlog().await?;
        }
        if plan.wants(Case::F) {
            note("(f): calls that take a second");
            self.slow().await?;
        }
        if plan.wants(Case::G) {
            note("(g): tasks of five turns");
            self.tasks().await?;
        }
        if plan.wants(Case::I) {
            note("(i): beside calls that wait for a tool that is down");
            self.beside_outage(round).await?;
        }
        if plan.wants(Case::J) {
            note("(j): beside the backlog of another pool");
            self.beside_backlog(round).await?;
        }
        if plan.wants(Case::L) {
            note("(l): over NATS and over HTTP");
            self.over_http(round).await?;
        }
        if plan.wants(Case::M) {
            note("(m): waiting HTTP calls");
            if let Some(mb) = waiting_http::peak_memory(self.servers, &self.database, plan.slow).await? {
                self.samples.add(Metric::HttpWorkerMemory, mb);
            }
        }
        if let Some(unserved) = &self.unserved {
            note("(k): beside calls that nobody can run");
            unserved.round(self.servers, plan, &mut self.samples).await?;
        }
        Ok(())
    }

    async fn turn(&mut self, turn: Turn) -> anyhow::Result<()> {
        match turn {
            Turn::Redial => {
                let (fleet, database) = (self.fleet(&self.database, 1, 1).await?, self.database.clone());
                let load = Load::new(&self.servers.queue, &database);
                self.one_worker(&load, (fleet, &database), (Side::Redial, &[Metric::P50, Metric::P99])).await?;
            }
            Turn::Before => {
                if let Some(before) = self.before {
                    let (fleet, load) = (before.fleet().await?, before.load());
                    self.one_worker(&load, (fleet, &before.database), (Side::Before, &[Metric::BeforeP50])).await?;
                }
            }
            Turn::Packed => self.baseline(Side::Packed, PACKED).await?,
            Turn::Plain => self.baseline(Side::Plain, PLAIN).await?,
            Turn::TwoWorkers => self.many_workers(2, Metric::CallsTwoWorkers).await?,
            Turn::FourWorkers => self.many_workers(4, Metric::CallsFourWorkers).await?,
            Turn::History => {
                if let Some(history) = self.history.clone() {
                    let rate = self.throughput(&history, 1, 1).await?;
                    self.samples.add(Metric::CallsHistory, rate);
                }
            }
        }
        Ok(())
    }

    /// A baseline's part of (a), (c) and (h). No dispatcher and no worker runs meanwhile.
    async fn baseline(&mut self, side: Side, tuning: Tuning) -> anyhow::Result<()> {
        let (plan, database) = (self.plan, &self.database);
        let baseline = Baseline::create(&database.url, self.servers.nats_url(), tuning).await?;
        baseline.warm_up().await?;
        if plan.wants(Case::A) || plan.wants(Case::H) {
            database.vacuum().await?;
            let before = Reading::take(database, baseline::SCHEMA).await?;
            let rate = baseline.throughput(plan.calls).await?;
            let cost = before.until(&Reading::take(database, baseline::SCHEMA).await?, plan.calls);
            self.samples.add_side(side, rate, &cost);
        }
        if plan.wants(Case::C) && side == Side::Plain {
            let (p50, p99) = percentiles(&baseline.sequential(plan.sequential).await?);
            self.samples.add(Metric::BaselineP50, p50);
            self.samples.add(Metric::BaselineP99, p99);
        }
        baseline.remove().await
    }

    /// A fleet's part of (a), (c) and (h); the metrics are those of its latencies, p50 first.
    async fn one_worker(
        &mut self,
        load: &Load<'_>,
        (fleet, database): (Fleet, &Database),
        (side, latencies): (Side, &[Metric]),
    ) -> anyhow::Result<()> {
        let plan = self.plan;
        load.warm_up().await?;
        if plan.wants_a() {
            database.vacuum().await?;
            let before = Reading::take(database, "public").await?;
            let rate = load.throughput(plan.calls).await?;
            let cost = before.until(&Reading::take(database, "public").await?, plan.calls);
            self.samples.add_side(side, rate, &cost);
        }
        if plan.wants(Case::C) {
            let (p50, p99) = percentiles(&load.sequential(plan.sequential).await?);
            latencies.iter().zip([p50, p99]).for_each(|(metric, value)| self.samples.add(*metric, value));
        }
        fleet.stop().await;
        Ok(())
    }

    async fn many_workers(&mut self, workers: usize, metric: Metric) -> anyhow::Result<()> {
        let rate = self.throughput(&self.database, 2, workers).await?;
        self.samples.add(metric, rate);
        Ok(())
    }

    /// Calls per second of such a fleet.
    async fn throughput(&self, database: &Database, dispatchers: usize, workers: usize) -> anyhow::Result<f64> {
        let fleet = self.fleet(database, dispatchers, workers).await?;
        let load = Load::new(&self.servers.queue, database);
        load.warm_up().await?;
        // Both, or autovacuum would clean up in one while calls run through the other.
        self.database.vacuum().await?;
        database.vacuum().await?;
        let rate = load.throughput(self.plan.calls).await?;
        fleet.stop().await;
        Ok(rate)
    }

    async fn fleet(&self, database: &Database, dispatchers: usize, workers: usize) -> anyhow::Result<Fleet> {
        let mut fleet = Fleet::start(self.servers, database, dispatchers).await?;
        fleet.add_workers(workers, Program::Redial, &WORKER).await?;
        Ok(fleet)
    }

    async fn backlog(&mut self) -> anyhow::Result<()> {
        let load = Load::new(&self.servers.queue, &self.database);
        let mut fleet = self.fleet(&self.database, 1, 1).await?;
        load.warm_up().await?;
        fleet.stop_workers().await;
        let submitted = load.submit(ECHO, self.plan.backlog).await?;
        let began = std::time::Instant::now();
        fleet.add_workers(1, Program::Redial, &WORKER).await?;
        let took = load.drained(&submitted).await?.duration_since(began);
        self.samples.add(Metric::CallsBacklog, f64::from(self.plan.backlog) / took.as_secs_f64());
        let republished = u32::try_from(load.republished(&submitted).await?)?;
        self.samples.add(Metric::Republished, f64::from(republished));
        fleet.stop().await;
        Ok(())
    }

    async fn over_http(&mut self, round: u32) -> anyhow::Result<()> {
        let (mut fleet, database) = (self.fleet(&self.database, 1, 1).await?, self.database.clone());
        let load = Load::new(&self.servers.queue, &database);
        load.warm_up().await?;
        database.vacuum().await?;
        http::round(&mut fleet, &load, self.plan, &mut self.samples, round.is_multiple_of(2)).await?;
        fleet.stop().await;
        Ok(())
    }

    async fn slow(&mut self) -> anyhow::Result<()> {
        let slow = self.plan.slow;
        let mut fleet = Fleet::start(self.servers, &self.database, 1).await?;
        fleet.add_workers(1, Program::Own, &["slow-worker", "--slots", &slow.to_string()]).await?;
        let load = Load::new(&self.servers.queue, &self.database);
        let submitted = load.submit(slow_worker::SLEEP, slow).await?;
        load.drained(&submitted).await?;
        let late = load.longest(&submitted).await? - slow_worker::TAKES.as_secs_f64() * 1000.0;
        self.samples.add(Metric::SlowLate, late);
        for (metric, processes) in
            [(Metric::WorkerMemory, &fleet.workers), (Metric::DispatcherMemory, &fleet.dispatchers)]
        {
            let memory = processes.iter().map(Process::pid).filter_map(peak_memory);
            memory.for_each(|mib| self.samples.add(metric, mib));
        }
        fleet.stop().await;
        Ok(())
    }

    async fn tasks(&mut self) -> anyhow::Result<()> {
        let models = tasks::model(&self.servers.folder)?;
        let mut fleet = Fleet::start(self.servers, &self.database, 1).await?;
        fleet.add_workers(1, Program::Redial, &["worker", "--slots", "1000", &models]).await?;
        let rate = tasks::throughput(&self.servers.queue, &self.database, self.plan.tasks).await?;
        self.samples.add(Metric::Tasks, rate);
        fleet.stop().await;
        Ok(())
    }

    async fn beside_outage(&mut self, round: u32) -> anyhow::Result<()> {
        let database = self.servers.another(&format!("redial_outage_{round}")).await?;
        let mut fleet = self.fleet(&database, 1, 1).await?;
        fleet.add_workers(1, Program::Own, &["slow-worker", "--slots", "1000"]).await?;
        let load = Load::new(&self.servers.queue, &database);
        load.warm_up().await?;
        load.submit_down(slow_worker::DOWN, self.plan.waiting).await?;
        database.vacuum().await?;
        let rate = load.throughput_beside_others(self.plan.calls).await?;
        self.samples.add(Metric::CallsBesideOutage, rate);
        fleet.stop().await;
        database.close().await;
        Ok(())
    }

    async fn beside_backlog(&mut self, round: u32) -> anyhow::Result<()> {
        let database = self.servers.another(&format!("redial_backlog_{round}")).await?;
        let mut fleet = self.fleet(&database, 1, 1).await?;
        fleet.add_workers(1, Program::Own, &["slow-worker", "--slots", "10"]).await?;
        let load = Load::new(&self.servers.queue, &database);
        load.warm_up().await?;
        let (_, alone) = percentiles(&load.sequential(self.plan.sequential).await?);
        load.submit(slow_worker::SLEEP, self.plan.waiting).await?;
        database.vacuum().await?;
        let (_, beside) = percentiles(&load.sequential(self.plan.sequential).await?);
        self.samples.add(Metric::PoolP99, alone);
        self.samples.add(Metric::PoolP99BesideBacklog, beside);
        fleet.stop().await;
        database.close().await;
        Ok(())
    }
}
