//! Calls that nobody can run: most of a pool without workers, some of a tool that no worker of a busy pool has. And a
//! pool of which one worker has a tool more than the other.

use std::{fs, path::Path, time::Duration};

use redial_worker::CommandUser;
use tokio::time::{Instant, timeout};

use crate::{
    database::Database,
    fleet::{Fleet, Program},
    load::{Load, WORKER, percentiles},
    plan::Plan,
    samples::{Metric, Samples},
    servers::Servers,
};

/// The tool of a pool of its own.
const LONELY: &str = "bench_lonely";
/// The tool of the pool that is measured.
const REMOVED: &str = "bench_removed";
/// So many calls wait for the one for each that waits for the other.
const LONELY_FOR_EACH_REMOVED: u32 = 100;
/// A call that does not end in this time after a wipe is submitted again.
const PROBE: Duration = Duration::from_millis(500);

pub(crate) struct Unserved {
    /// Nothing waits in it.
    empty: Database,
    /// All these calls wait in it.
    full: Database,
    manifest: String,
}

impl Unserved {
    /// Registers the tools, stops their only worker, and submits the calls.
    pub(crate) async fn prepare(servers: &Servers, plan: &Plan, note: impl Fn(&str)) -> anyhow::Result<Self> {
        let manifest = manifest(&servers.folder)?;
        let (empty, full) = (servers.another("redial_served").await?, servers.another("redial_unserved").await?);
        let unserved = Self { empty, full, manifest };
        let mut fleet = Fleet::start(servers, &unserved.full, 1).await?;
        fleet.add_workers(1, Program::Redial, &unserved.worker_with_more()).await?;
        let load = Load::new(&servers.queue, &unserved.full);
        load.warm_up().await?;
        fleet.stop_workers().await;
        note(&format!("(k) submitting {} calls that nobody can run", plan.unserved));
        load.submit(REMOVED, plan.unserved / LONELY_FOR_EACH_REMOVED).await?;
        load.submit(LONELY, plan.unserved).await?;
        fleet.stop().await;
        Ok(unserved)
    }

    /// Throughput and latency without and beside these calls, in turns; then what NATS stores, and a wipe of that.
    pub(crate) async fn round(&self, servers: &Servers, plan: &Plan, samples: &mut Samples) -> anyhow::Result<()> {
        let (fleet, rate, p99) = measure(servers, plan, &self.empty).await?;
        samples.add(Metric::CallsAlone, rate);
        samples.add(Metric::P99Alone, p99);
        fleet.stop().await;
        let (fleet, rate, p99) = measure(servers, plan, &self.full).await?;
        samples.add(Metric::CallsBesideUnserved, rate);
        samples.add(Metric::P99BesideUnserved, p99);
        samples.add(Metric::NatsStore, servers.nats_store_bytes()? / 1e6);
        samples.add(Metric::Healed, self.heal(servers).await?.as_secs_f64());
        fleet.stop().await;
        for (metric, second) in
            [(Metric::CallsEvenPool, WORKER.to_vec()), (Metric::CallsUnevenPool, self.worker_with_more())]
        {
            let mut fleet = Fleet::start(servers, &self.empty, 1).await?;
            fleet.add_workers(1, Program::Redial, &WORKER).await?;
            fleet.add_workers(1, Program::Redial, &second).await?;
            let load = Load::new(&servers.queue, &self.empty);
            load.warm_up().await?;
            self.empty.vacuum().await?;
            samples.add(metric, load.throughput(plan.calls).await?);
            fleet.stop().await;
        }
        Ok(())
    }

    /// Wipes the store of NATS; returns how long after its restart the first call ended.
    async fn heal(&self, servers: &Servers) -> anyhow::Result<Duration> {
        servers.wipe_nats().await?;
        let began = Instant::now();
        let load = Load::new(&servers.queue, &self.full);
        while !matches!(timeout(PROBE, load.sequential(1)).await, Ok(Ok(_))) {}
        Ok(began.elapsed())
    }

    fn worker_with_more(&self) -> Vec<&str> {
        // They only have to be registered: no program ever runs.
        let user = CommandUser::Own.is_missing().then_some("--command-user=nobody");
        WORKER.into_iter().chain([self.manifest.as_str()]).chain(user).collect()
    }

    pub(crate) async fn close(&self) {
        self.empty.close().await;
        self.full.close().await;
    }
}

/// Calls per second and the 99th percentile of latencies; the fleet still runs.
async fn measure(servers: &Servers, plan: &Plan, database: &Database) -> anyhow::Result<(Fleet, f64, f64)> {
    let mut fleet = Fleet::start(servers, database, 1).await?;
    fleet.add_workers(1, Program::Redial, &WORKER).await?;
    let load = Load::new(&servers.queue, database);
    load.warm_up().await?;
    database.vacuum().await?;
    let rate = load.throughput_beside_others(plan.calls).await?;
    let (_, p99) = percentiles(&load.sequential(plan.sequential).await?);
    Ok((fleet, rate, p99))
}

/// Declares both tools; returns the flag of a worker that has them.
fn manifest(folder: &Path) -> anyhow::Result<String> {
    let tool = |name: &str, pool: &str| {
        format!(
            "[[tool]]\nname = {name:?}\npool = {pool:?}\ndescription = \"Does nothing.\"\neffect = \"read\"\n\
             parameters = {{ type = \"object\" }}\n\n[tool.command]\nargv = [\"true\"]\n\n"
        )
    };
    let file = folder.join("more-tools.toml");
    fs::write(&file, tool(LONELY, "lonely") + &tool(REMOVED, "default"))?;
    Ok(format!("--tools={}", file.display()))
}
