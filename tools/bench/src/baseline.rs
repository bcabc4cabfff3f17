//! The baseline: the same calls with nothing but the bare work, as fast as this machine does it.

mod pack;
mod pipe;
mod stage;
mod tables;

use std::time::{Duration, Instant};

use tokio::sync::Semaphore;
use uuid::Uuid;

pub(crate) use self::tables::SCHEMA;
use self::{
    pipe::{Messages, Pipe},
    stage::Batch,
    tables::Tables,
};
use crate::load::{arguments, timed};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tuning {
    /// Calls in one message.
    pub(crate) pack: usize,
    /// Calls in one statement, at most.
    pub(crate) batch: usize,
    /// Statements of one kind under way at once.
    pub(crate) at_once: usize,
}

/// 50 calls in a message: jobs, results and so acknowledgements too. The fastest of 30 that were measured.
pub(crate) const PACKED: Tuning = Tuning { pack: 50, batch: 2000, at_once: 8 };
/// One call in a message. The fastest of 30 that were measured.
pub(crate) const PLAIN: Tuning = Tuning { pack: 1, batch: 1000, at_once: 5 };

pub(crate) struct Baseline {
    tuning: Tuning,
    tables: Tables,
    jobs: Pipe,
    results: Pipe,
}

impl Baseline {
    /// Creates empty tables and streams, in the place of another baseline's.
    pub(crate) async fn create(database_url: &str, nats_url: &str, tuning: Tuning) -> anyhow::Result<Self> {
        // One connection for all stages: three, one for each, were measured to be no faster.
        let jetstream = pipe::connect(nats_url).await?;
        let connections = u32::try_from(tuning.at_once * 3)?;
        Ok(Self {
            tuning,
            tables: Tables::create(database_url, connections).await?,
            jobs: Pipe::create(&jetstream, "BASELINE_JOBS").await?,
            results: Pipe::create(&jetstream, "BASELINE_RESULTS").await?,
        })
    }

    pub(crate) async fn remove(self) -> anyhow::Result<()> {
        self.jobs.remove().await;
        self.results.remove().await;
        self.tables.remove().await
    }

    /// Measures latencies of calls one after another, sorted.
    pub(crate) async fn sequential(&self, calls: u32) -> anyhow::Result<Vec<Duration>> {
        let (mut jobs, mut results) = (self.jobs.messages(1).await?, self.results.messages(1).await?);
        timed(calls, async |n| {
            self.submit(n..n + 1).await?;
            run(&self.tables, &self.results, take_one(&mut jobs).await?, 1).await?;
            finish(&self.tables, take_one(&mut results).await?).await.map(|_| ())
        })
        .await
    }

    /// Opens connections and forms plans.
    pub(crate) async fn warm_up(&self) -> anyhow::Result<()> {
        let batches = self.tuning.batch * self.tuning.at_once * 2;
        self.throughput(u32::try_from(batches)?).await.map(|_| ())
    }

    async fn submit(&self, numbers: std::ops::Range<u32>) -> anyhow::Result<()> {
        let ids: Vec<Uuid> = numbers.clone().map(|_| Uuid::now_v7()).collect();
        let arguments: Vec<String> = numbers.map(arguments).collect();
        self.tables.insert(&ids, &arguments).await?;
        self.jobs.publish(pack::jobs(&ids, self.tuning.pack)).await
    }

    /// Measures calls per second, in three pipelined stages: insert and publish; pull, mark and publish; pull and
    /// finish.
    pub(crate) async fn throughput(&self, calls: u32) -> anyhow::Result<f64> {
        let Tuning { pack, batch, at_once } = self.tuning;
        let messages = (batch / pack).max(1);
        let began = Instant::now();
        let submit = async {
            let free = Semaphore::new(at_once);
            let batches = (0..calls).step_by(batch).map(|from| {
                let free = &free;
                async move {
                    let _turn = free.acquire().await?;
                    let until = calls.min(from + u32::try_from(batch)?);
                    self.submit(from..until).await
                }
            });
            futures_util::future::try_join_all(batches).await.map(|_| ())
        };
        let (tables, results) = (self.tables.clone(), self.results.clone());
        let work = stage::run(&self.jobs, (messages, at_once), calls, move |batch| {
            let (tables, results) = (tables.clone(), results.clone());
            async move { run(&tables, &results, batch, pack).await }
        });
        let tables = self.tables.clone();
        let ingest = stage::run(&self.results, (messages, at_once), calls, move |batch| {
            let tables = tables.clone();
            async move { finish(&tables, batch).await }
        });
        tokio::try_join!(submit, work, ingest)?;
        Ok(f64::from(calls) / began.elapsed().as_secs_f64())
    }
}

async fn take_one(messages: &mut Messages) -> anyhow::Result<Batch> {
    for _ in 0..10 {
        let taken = messages.next().await;
        let batch = pipe::payloads(&taken);
        pipe::ack(taken).await;
        if !batch.is_empty() {
            return Ok(batch);
        }
    }
    anyhow::bail!("a message of the baseline did not arrive")
}

/// Marks calls as running, and reports their arguments as their results. Returns how many were granted.
async fn run(tables: &Tables, results: &Pipe, batch: Batch, size: usize) -> anyhow::Result<u32> {
    let granted = tables.claim(&pack::ids(&batch)?).await?;
    results.publish(pack::results(&granted, size)?).await?;
    Ok(u32::try_from(granted.len())?)
}

/// Ends calls with their results. Returns how many ended.
async fn finish(tables: &Tables, batch: Batch) -> anyhow::Result<u32> {
    let (ids, outputs) = pack::ids_and_outputs(&batch)?;
    Ok(u32::try_from(tables.finish(&ids, &outputs).await?)?)
}
