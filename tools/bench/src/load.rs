//! Calls under load, as a client sees it.

use std::time::{Duration, Instant};

use futures_util::{StreamExt, stream::FuturesUnordered};
use redial_proto::{
    CallId, CallView, Submission, SubmitBatch, SubmitBatchReply, SubmitResult, SubmitStatus, subjects::Verb,
};
use redial_queue::{Queue, Subscription};
use serde_json::value::{RawValue, to_raw_value};

use crate::database::Database;

/// How long the answer to a request or the end of a call may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// Submissions in one message.
const BATCH: usize = 500;
/// Messages under way at once.
const AT_ONCE: usize = 8;
/// A tool that answers at once with its arguments.
pub(crate) const ECHO: &str = "echo";
/// The worker that has it.
pub(crate) const WORKER: [&str; 3] = ["worker", "--slots", "1000"];

pub(crate) struct Load<'a> {
    queue: &'a Queue,
    database: &'a Database,
}

/// Calls that were submitted together.
pub(crate) struct Submitted {
    began: Instant,
    calls: u32,
    /// An id that sorts before all of theirs.
    first: CallId,
}

/// 200 bytes of arguments.
pub(crate) fn arguments(n: u32) -> String {
    format!(r#"{{"n":{n:>10},"text":"{}"}}"#, "x".repeat(200 - 29))
}

fn submission(tool: &str, n: u32) -> anyhow::Result<Submission> {
    Ok(Submission::new(tool, RawValue::from_string(arguments(n))?))
}

impl<'a> Load<'a> {
    pub(crate) fn new(queue: &'a Queue, database: &'a Database) -> Self {
        Self { queue, database }
    }

    /// Runs a few calls, so that connections and query plans exist.
    pub(crate) async fn warm_up(&self) -> anyhow::Result<()> {
        self.sequential(50).await.map(|_| ())
    }

    /// Calls per second, from the first submission to the last result on record.
    pub(crate) async fn throughput(&self, calls: u32) -> anyhow::Result<f64> {
        let submitted = self.submit(ECHO, calls).await?;
        self.rate(&submitted).await
    }

    /// So many calls that will be submitted from now on, by somebody else.
    pub(crate) fn begin(calls: u32) -> Submitted {
        Submitted { began: Instant::now(), calls, first: CallId::generate() }
    }

    /// The same for calls that were submitted.
    pub(crate) async fn rate(&self, submitted: &Submitted) -> anyhow::Result<f64> {
        let took = self.drained(submitted).await?.duration_since(submitted.began);
        Ok(f64::from(submitted.calls) / took.as_secs_f64())
    }

    /// The same while calls of other tools wait, which do not end.
    pub(crate) async fn throughput_beside_others(&self, calls: u32) -> anyhow::Result<f64> {
        let submitted = self.submit(ECHO, calls).await?;
        while self.database.any_live_call_of(ECHO, submitted.first).await? {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        Ok(f64::from(calls) / submitted.began.elapsed().as_secs_f64())
    }

    /// Submits calls of a tool that is down, and waits until nearly all of them wait for a retry.
    pub(crate) async fn submit_down(&self, tool: &str, calls: u32) -> anyhow::Result<()> {
        self.submit(tool, calls).await?;
        while self.database.waiting_retries(tool).await? < u64::from(calls) * 99 / 100 {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        Ok(())
    }

    /// Submits calls and returns once all are accepted.
    pub(crate) async fn submit(&self, tool: &str, calls: u32) -> anyhow::Result<Submitted> {
        let batch = |from: u32| -> anyhow::Result<SubmitBatch> {
            let calls = (from..calls).take(BATCH).map(|n| Ok(to_raw_value(&submission(tool, n)?)?));
            Ok(SubmitBatch { calls: calls.collect::<anyhow::Result<_>>()? })
        };
        let mut batches = (0..calls).step_by(BATCH).map(batch);
        let submitted = Self::begin(calls);
        let mut under_way = FuturesUnordered::new();
        loop {
            while under_way.len() < AT_ONCE
                && let Some(batch) = batches.next()
            {
                under_way.push(self.submit_batch(batch?));
            }
            match under_way.next().await {
                Some(done) => done?,
                None => return Ok(submitted),
            }
        }
    }

    async fn submit_batch(&self, batch: SubmitBatch) -> anyhow::Result<()> {
        let reply: SubmitBatchReply = self.queue.ask(Verb::CallSubmit, &batch, PATIENCE).await?;
        reply.results.into_iter().try_for_each(|result| accepted(result).map(|_| ()))
    }

    /// Waits until every call has ended, and checks that all of these succeeded. Returns the time of the last end.
    pub(crate) async fn drained(&self, submitted: &Submitted) -> anyhow::Result<Instant> {
        while self.database.any_live_call().await? {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let ended = Instant::now();
        let done = self.database.succeeded_between(submitted.first, CallId::generate()).await?;
        anyhow::ensure!(done == u64::from(submitted.calls), "{done} of {} calls succeeded", submitted.calls);
        Ok(ended)
    }

    /// How many jobs of these calls were published again.
    pub(crate) async fn republished(&self, submitted: &Submitted) -> anyhow::Result<u64> {
        self.database.republished_between(submitted.first, CallId::generate()).await
    }

    /// The longest time that one of these calls took, in ms.
    pub(crate) async fn longest(&self, submitted: &Submitted) -> anyhow::Result<f64> {
        self.database.longest_between(submitted.first, CallId::generate()).await
    }

    /// Latencies from the submission to the result at the client, sorted.
    pub(crate) async fn sequential(&self, calls: u32) -> anyhow::Result<Vec<Duration>> {
        let mut events = self.queue.subscribe("redial.events.*.calls.*").await?;
        let mut latencies = Vec::new();
        for n in 0..calls {
            let submission = Submission { notify: true, ..submission(ECHO, n)? };
            let began = Instant::now();
            let result = self.queue.ask(Verb::CallSubmit, &submission, PATIENCE).await?;
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
        let event = tokio::time::timeout(PATIENCE, events.next()).await?;
        let Some(event) = event else { anyhow::bail!("the connection to NATS was closed") };
        if serde_json::from_slice::<CallView>(&event)?.call == call {
            return Ok(());
        }
    }
}

/// The 50th and the 99th percentile of sorted latencies, in ms.
pub(crate) fn percentiles(sorted: &[Duration]) -> (f64, f64) {
    let percentile = |percent: usize| {
        let position = (sorted.len() * percent / 100).min(sorted.len().saturating_sub(1));
        sorted.get(position).map_or(0.0, |latency| latency.as_secs_f64() * 1000.0)
    };
    (percentile(50), percentile(99))
}
