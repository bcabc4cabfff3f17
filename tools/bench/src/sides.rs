//! Measures each side of each comparison once a round, on the same servers.

use std::time::Duration;

use crate::{
    baseline::{self, Baseline, PACKED, PLAIN, Tuning},
    before::Before,
    cases::{Case, Metric, Side},
    database::Database,
    fleet::Fleet,
    http::Http,
    load::{Load, WORKER, percentiles},
    meter::Reading,
    output::note,
    plan::Plan,
    plans::fill,
    samples::Samples,
    servers::Servers,
    waiting_http,
};

struct Sides<'a> {
    plan: &'a Plan,
    servers: &'a Servers,
    database: &'a Database,
    before: Option<&'a Before>,
    /// The database with a long history, if it is wanted.
    history: Option<Database>,
    samples: Samples,
}

/// Measures everything that the plan holds.
pub(crate) async fn run(
    plan: &Plan,
    servers: &Servers,
    database: &Database,
    before: Option<&Before>,
) -> anyhow::Result<Samples> {
    let mut history = None;
    if plan.cases.contains(&Case::E) {
        let database = servers.another("redial_history").await?;
        fill(&database, plan.history).await?;
        history = Some(database);
    }
    let mut sides = Sides { plan, servers, database, history, before, samples: Samples::default() };
    for round in 1..=plan.rounds {
        for side in plan.sides(round) {
            note(&format!("round {round} of {}: {:?} …", plan.rounds, side));
            sides.measure(side).await?;
        }
    }
    if let Some(history) = &sides.history {
        history.close().await;
    }
    Ok(sides.samples)
}

impl Sides<'_> {
    async fn measure(&mut self, side: Side) -> anyhow::Result<()> {
        match side {
            Side::Packed => self.baseline(side, PACKED).await,
            Side::Plain => self.baseline(side, PLAIN).await,
            Side::Http => self.over_http().await,
            Side::WaitingHttp => {
                let peak = waiting_http::peak_memory(self.servers, self.database, self.plan.waiting_http).await?;
                if let Some(mb) = peak {
                    self.samples.add((side, Metric::Memory), mb);
                }
                Ok(())
            }
            Side::Before => {
                let Some(before) = self.before else { return Ok(()) };
                let fleet = before.fleet().await?;
                self.load(side, &before.load(), &before.database).await?;
                fleet.stop().await;
                Ok(())
            }
            Side::Redial | Side::TwoWorkers | Side::FourWorkers | Side::History => self.fleet(side).await,
        }
    }

    /// Measures a baseline's part of (a), (c) and (h). No dispatcher and no worker runs meanwhile.
    async fn baseline(&mut self, side: Side, tuning: Tuning) -> anyhow::Result<()> {
        let (plan, database) = (self.plan, self.database);
        let baseline = Baseline::create(&database.url, self.servers.nats_url(), tuning).await?;
        baseline.warm_up().await?;
        if plan.wants(side, &Metric::OF_LOAD) {
            database.vacuum().await?;
            let before = Reading::take(database, baseline::SCHEMA).await?;
            let rate = baseline.throughput(plan.calls).await?;
            let cost = before.until(&Reading::take(database, baseline::SCHEMA).await?, plan.calls);
            self.samples.add_load(side, rate, &cost);
        }
        if plan.wants(side, &Metric::OF_LATENCY) {
            self.add_latencies(side, &baseline.sequential(plan.sequential).await?);
        }
        baseline.remove().await
    }

    async fn fleet(&mut self, side: Side) -> anyhow::Result<()> {
        let (dispatchers, workers) = match side {
            Side::TwoWorkers => (2, 2),
            Side::FourWorkers => (2, 4),
            _ => (1, 1),
        };
        let history = self.history.as_ref().filter(|_| side == Side::History);
        let database = history.unwrap_or(self.database).clone();
        let mut fleet = Fleet::start(self.servers.environment(&database)?, dispatchers).await?;
        fleet.add_workers(workers, &WORKER).await?;
        let load = Load::new(&self.servers.queue, &database);
        self.load(side, &load, &database).await?;
        fleet.stop().await;
        Ok(())
    }

    /// Measures what a running fleet does with a load, and with calls one after another.
    async fn load(&mut self, side: Side, load: &Load<'_>, database: &Database) -> anyhow::Result<()> {
        let plan = self.plan;
        load.warm_up().await?;
        if plan.wants(side, &Metric::OF_LOAD) {
            // Both, or autovacuum would clean up in one while calls run through the other.
            self.database.vacuum().await?;
            database.vacuum().await?;
            let before = Reading::take(database, "public").await?;
            let rate = load.throughput(plan.calls).await?;
            let cost = before.until(&Reading::take(database, "public").await?, plan.calls);
            self.samples.add_load(side, rate, &cost);
        }
        if plan.wants(side, &Metric::OF_LATENCY) {
            self.add_latencies(side, &load.sequential(plan.sequential).await?);
        }
        Ok(())
    }

    async fn over_http(&mut self) -> anyhow::Result<()> {
        let (plan, database) = (self.plan, self.database);
        let mut fleet = Fleet::start(self.servers.environment(database)?, 1).await?;
        fleet.add_workers(1, &WORKER).await?;
        let (load, http) = (Load::new(&self.servers.queue, database), Http::new(&fleet.add_gateway().await?)?);
        http.sequential(50).await?;
        database.vacuum().await?;
        let submitted = Load::begin(plan.calls);
        http.submit(plan.calls).await?;
        let rate = load.rate(&submitted).await?;
        self.samples.add((Side::Http, Metric::Calls), rate);
        self.add_latencies(Side::Http, &http.sequential(plan.sequential).await?);
        fleet.stop().await;
        Ok(())
    }

    fn add_latencies(&mut self, side: Side, sorted: &[Duration]) {
        let (p50, p99) = percentiles(sorted);
        self.samples.add((side, Metric::P50), p50);
        self.samples.add((side, Metric::P99), p99);
    }
}
