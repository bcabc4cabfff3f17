//! Redial under load, as a client sees it.

use std::time::{Duration, Instant};

use futures_util::{StreamExt, stream::FuturesUnordered};
use redial_proto::{CallId, CallView, Submission, SubmitBatch, SubmitBatchReply, SubmitResult, SubmitStatus, subjects};
use redial_queue::{Queue, Subscription};
use redial_store::Store;
use serde_json::value::{RawValue, to_raw_value};

use super::{Round, cpu::CpuMeter};
use crate::commands::{REQUEST, api};

/// Submissions in one message.
const BATCH: usize = 500;
/// Messages under way at once.
const AT_ONCE: usize = 8;

pub(super) struct Load {
    queue: Queue,
    store: Store,
    cpu: CpuMeter,
}

/// 200 bytes of arguments.
pub(super) fn arguments(n: u32) -> String {
    format!(r#"{{"n":{n:>10},"text":"{}"}}"#, "x".repeat(200 - 29))
}

fn submission(n: u32) -> anyhow::Result<Submission> {
    Ok(Submission::new("echo", RawValue::from_string(arguments(n))?))
}

impl Load {
    pub(super) fn new(queue: Queue, store: Store, cpu: CpuMeter) -> Self {
        Self { queue, store, cpu }
    }

    /// Waits until a worker runs `echo`.
    pub(super) async fn warm_up(&self) -> anyhow::Result<()> {
        let began = Instant::now();
        loop {
            match self.sequential(20).await {
                Ok(_) => return Ok(()),
                Err(error) if began.elapsed() > Duration::from_secs(20) => return Err(error),
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }
    }

    pub(super) async fn round(&self, calls: u32, sequential: u32) -> anyhow::Result<Round> {
        let cpu = self.cpu.read();
        let per_second = self.throughput(calls).await?;
        let used = self.cpu.read().zip(cpu).map(|(after, before)| after.saturating_sub(before));
        let latencies = self.sequential(sequential).await?;
        Ok(Round {
            per_second,
            p50: percentile(&latencies, 50),
            p99: percentile(&latencies, 99),
            cpu_per_1000: used.map(|used| used * 1000 / calls),
        })
    }

    async fn throughput(&self, calls: u32) -> anyhow::Result<f64> {
        let mut batches = Vec::new();
        for from in (0..calls).step_by(BATCH) {
            let numbers = from..calls.min(from + u32::try_from(BATCH)?);
            let calls: anyhow::Result<Vec<_>> = numbers.map(|n| Ok(to_raw_value(&submission(n)?)?)).collect();
            batches.push(SubmitBatch { calls: calls? });
        }
        let first = CallId::generate();
        let began = Instant::now();
        let mut under_way = FuturesUnordered::new();
        let mut batches = batches.into_iter();
        loop {
            while under_way.len() < AT_ONCE
                && let Some(batch) = batches.next()
            {
                under_way.push(self.submit(batch));
            }
            match under_way.next().await {
                Some(done) => done?,
                None => break,
            }
        }
        while self.store.any_live().await? {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let took = began.elapsed();
        let done = self.store.succeeded_between(first, CallId::generate()).await?;
        anyhow::ensure!(done == u64::from(calls), "{done} of {calls} calls succeeded; is something else running?");
        Ok(f64::from(calls) / took.as_secs_f64())
    }

    async fn submit(&self, batch: SubmitBatch) -> anyhow::Result<()> {
        let reply: SubmitBatchReply = self.queue.request(subjects::SUBMIT, &batch, REQUEST).await.map_err(api)?;
        reply.results.into_iter().try_for_each(|result| accepted(result).map(|_| ()))
    }

    /// Latencies from the submission to the result at the client, sorted.
    async fn sequential(&self, calls: u32) -> anyhow::Result<Vec<Duration>> {
        let mut events = self.queue.subscribe("redial.events.calls.*").await?;
        let mut latencies = Vec::new();
        for n in 0..calls {
            let submission = Submission { notify: true, ..submission(n)? };
            let began = Instant::now();
            let result = self.queue.request(subjects::SUBMIT, &submission, REQUEST).await.map_err(api)?;
            ended(&mut events, accepted(result)?).await?;
            latencies.push(began.elapsed());
        }
        latencies.sort();
        Ok(latencies)
    }
}

fn accepted(result: SubmitResult) -> anyhow::Result<CallId> {
    match (result.status, result.call, result.error) {
        (SubmitStatus::Accepted, Some(call), _) => Ok(call),
        (_, _, Some(error)) => Err(error.into()),
        (status, ..) => anyhow::bail!("a submission ended as {status:?}"),
    }
}

async fn ended(events: &mut Subscription, call: CallId) -> anyhow::Result<()> {
    loop {
        let event = tokio::time::timeout(REQUEST, events.next()).await?;
        let Some(event) = event else { anyhow::bail!("the connection to NATS was closed") };
        if serde_json::from_slice::<CallView>(&event)?.call == call {
            return Ok(());
        }
    }
}

pub(super) fn percentile(sorted: &[Duration], percent: usize) -> Duration {
    sorted.get((sorted.len() * percent / 100).min(sorted.len().saturating_sub(1))).copied().unwrap_or_default()
}
