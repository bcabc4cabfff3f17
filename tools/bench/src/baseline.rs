//! The baseline: the same calls with nothing but the bare work.

mod pipe;
mod tables;

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::{sync::Semaphore, task::JoinSet};
use uuid::Uuid;

pub(crate) use self::tables::SCHEMA;
use self::{
    pipe::{Messages, Pipe},
    tables::Tables,
};
use crate::load::arguments;

/// Calls in one statement.
const BATCH: usize = 500;
/// Statements of one kind under way at once.
const AT_ONCE: usize = 3;

pub(crate) struct Baseline {
    tables: Tables,
    jobs: Pipe,
    results: Pipe,
}

impl Baseline {
    pub(crate) async fn create(database_url: &str, nats_url: &str) -> anyhow::Result<Self> {
        let jetstream = pipe::connect(nats_url).await?;
        Ok(Self {
            tables: Tables::create(database_url).await?,
            jobs: Pipe::create(&jetstream, "BASELINE_JOBS").await?,
            results: Pipe::create(&jetstream, "BASELINE_RESULTS").await?,
        })
    }

    pub(crate) async fn remove(self) -> anyhow::Result<()> {
        self.jobs.remove().await;
        self.results.remove().await;
        self.tables.remove().await
    }

    /// Latencies of calls one after another, sorted.
    pub(crate) async fn sequential(&self, calls: u32) -> anyhow::Result<Vec<Duration>> {
        let mut latencies = Vec::new();
        let (mut jobs, mut results) = (self.jobs.messages(BATCH).await?, self.results.messages(BATCH).await?);
        for n in 0..calls {
            let began = Instant::now();
            self.submit(n..n + 1).await?;
            run(&self.tables, &self.results, take_one(&mut jobs).await?).await?;
            finish(&self.tables, take_one(&mut results).await?).await?;
            latencies.push(began.elapsed());
        }
        latencies.sort();
        Ok(latencies)
    }

    async fn submit(&self, numbers: std::ops::Range<u32>) -> anyhow::Result<()> {
        let ids: Vec<Uuid> = numbers.clone().map(|_| Uuid::now_v7()).collect();
        let arguments: Vec<String> = numbers.map(arguments).collect();
        self.tables.insert(&ids, &arguments).await?;
        let jobs = ids.iter().map(|id| id.as_bytes().to_vec().into()).collect();
        self.jobs.publish(jobs).await
    }

    /// Calls per second, in three pipelined stages: insert and publish; pull, mark and publish; pull and finish.
    pub(crate) async fn throughput(&self, calls: u32) -> anyhow::Result<f64> {
        let began = Instant::now();
        let submit = async {
            let free = Semaphore::new(AT_ONCE);
            let batches = (0..calls).step_by(BATCH).map(|from| {
                let free = &free;
                async move {
                    let _turn = free.acquire().await?;
                    let until = calls.min(from + u32::try_from(BATCH)?);
                    self.submit(from..until).await
                }
            });
            futures_util::future::try_join_all(batches).await.map(|_| ())
        };
        let (tables, results) = (self.tables.clone(), self.results.clone());
        let work = stage(&self.jobs, calls, move |batch| {
            let (tables, results) = (tables.clone(), results.clone());
            async move { run(&tables, &results, batch).await }
        });
        let tables = self.tables.clone();
        let ingest = stage(&self.results, calls, move |batch| {
            let tables = tables.clone();
            async move { finish(&tables, batch).await }
        });
        tokio::try_join!(submit, work, ingest)?;
        Ok(f64::from(calls) / began.elapsed().as_secs_f64())
    }
}

/// The contents of messages.
type Batch = Vec<Vec<u8>>;

async fn take_one(messages: &mut Messages) -> anyhow::Result<Batch> {
    for _ in 0..10 {
        let taken = messages.next().await;
        let batch: Batch = taken.payloads().map(|payload| payload.to_vec()).collect();
        taken.ack().await;
        if !batch.is_empty() {
            return Ok(batch);
        }
    }
    anyhow::bail!("a message of the baseline did not arrive")
}

/// Takes messages as they come and works on a few batches at once, until so many were worked on.
async fn stage<F>(pipe: &Pipe, calls: u32, work: impl Fn(Batch) -> F) -> anyhow::Result<()>
where
    F: Future<Output = anyhow::Result<u32>> + Send + 'static,
{
    let mut messages = pipe.messages(BATCH).await?;
    let done = Arc::new(AtomicU32::new(0));
    let mut tasks = JoinSet::new();
    let (mut received_all, mut silent) = (0, Duration::ZERO);
    while received_all < calls {
        let began = Instant::now();
        let taken = messages.next().await;
        let batch: Batch = taken.payloads().map(|payload| payload.to_vec()).collect();
        silent = if batch.is_empty() { silent + began.elapsed() } else { Duration::ZERO };
        anyhow::ensure!(silent < Duration::from_secs(20), "the baseline received no message for 20 s");
        received_all += u32::try_from(batch.len())?;
        while tasks.len() >= AT_ONCE {
            tasks.join_next().await.transpose()?.transpose()?;
        }
        if !batch.is_empty() {
            let (work, done) = (work(batch), done.clone());
            tasks.spawn(async move {
                done.fetch_add(work.await?, Ordering::Relaxed);
                taken.ack().await;
                anyhow::Ok(())
            });
        }
    }
    while let Some(ended) = tasks.join_next().await {
        ended??;
    }
    let done = done.load(Ordering::Relaxed);
    anyhow::ensure!(done == calls, "the baseline did {done} of {calls} calls");
    Ok(())
}

async fn run(tables: &Tables, results: &Pipe, batch: Batch) -> anyhow::Result<u32> {
    let ids = batch.iter().map(|id| Ok(Uuid::from_slice(id)?)).collect::<anyhow::Result<Vec<_>>>()?;
    let granted = tables.claim(&ids).await?;
    let messages = granted.iter().map(|(id, output)| [id.as_bytes().as_slice(), output.as_bytes()].concat().into());
    results.publish(messages.collect()).await?;
    Ok(u32::try_from(granted.len())?)
}

async fn finish(tables: &Tables, batch: Batch) -> anyhow::Result<u32> {
    let mut ids = Vec::with_capacity(batch.len());
    let mut outputs = Vec::with_capacity(batch.len());
    for message in batch {
        let (id, output) = message.split_at_checked(16).ok_or_else(|| anyhow::anyhow!("a short message"))?;
        ids.push(Uuid::from_slice(id)?);
        outputs.push(String::from_utf8(output.to_vec())?);
    }
    Ok(u32::try_from(tables.finish(&ids, &outputs).await?)?)
}
