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
    tool: String,
    began: Instant,
    calls: u32,
    /// An id that sorts before all of theirs.
    first: CallId,
}

/// Makes 200 bytes of arguments.
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

    /// Measures calls per second, from the first submission to the last result on record.
    pub(crate) async fn throughput(&self, calls: u32) -> anyhow::Result<f64> {
        let submitted = self.submit(ECHO, calls).await?;
        self.rate(&submitted).await
    }

    /// Begins with so many calls of [`ECHO`] that will be submitted from now on, by somebody else.
    pub(crate) fn begin(calls: u32) -> Submitted {
        Submitted { tool: ECHO.to_owned(), began: Instant::now(), calls, first: CallId::generate() }
    }

    /// Measures calls per second for calls that were submitted.
    pub(crate) async fn rate(&self, submitted: &Submitted) -> anyhow::Result<f64> {
        let took = self.drained(submitted).await?.duration_since(submitted.began);
        Ok(f64::from(submitted.calls) / took.as_secs_f64())
    }

    /// Submits calls and returns once all are accepted.
    pub(crate) async fn submit(&self, tool: &str, calls: u32) -> anyhow::Result<Submitted> {
        let batch = |from: u32| -> anyhow::Result<SubmitBatch> {
            let calls = (from..calls).take(BATCH).map(|n| Ok(to_raw_value(&submission(tool, n)?)?));
            Ok(SubmitBatch { calls: calls.collect::<anyhow::Result<_>>()? })
        };
        let mut batches = (0..calls).step_by(BATCH).map(batch);
        let submitted = Submitted { tool: tool.to_owned(), ..Self::begin(calls) };
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

    /// Waits until each of these calls has ended, and checks that all succeeded. Returns the time of the last end.
    pub(crate) async fn drained(&self, submitted: &Submitted) -> anyhow::Result<Instant> {
        while self.database.any_live_call_of(&submitted.tool, submitted.first).await? {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let ended = Instant::now();
        let done = self.database.succeeded_between(submitted.first, CallId::generate()).await?;
        anyhow::ensure!(done == u64::from(submitted.calls), "{done} of {} calls succeeded", submitted.calls);
        Ok(ended)
    }

    /// Measures latencies from the submission to the result at the client, sorted.
    pub(crate) async fn sequential(&self, calls: u32) -> anyhow::Result<Vec<Duration>> {
        let mut events = self.queue.subscribe("redial.events.*.calls.*").await?;
        timed(calls, async |n| {
            let submission = Submission { notify: true, ..submission(ECHO, n)? };
            let result = self.queue.ask(Verb::CallSubmit, &submission, PATIENCE).await?;
            ended(&mut events, accepted(result)?).await
        })
        .await
    }
}

/// Measures how long each of so many calls takes, one after another, sorted.
pub(crate) async fn timed(
    calls: u32,
    mut call: impl AsyncFnMut(u32) -> anyhow::Result<()>,
) -> anyhow::Result<Vec<Duration>> {
    let mut latencies = Vec::new();
    for n in 0..calls {
        let began = Instant::now();
        call(n).await?;
        latencies.push(began.elapsed());
    }
    latencies.sort();
    Ok(latencies)
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
        if serde_json::from_slice::<CallView>(&event)?.call == call {
            return Ok(());
        }
    }
}

/// Returns the 50th and the 99th percentile of sorted latencies, in ms.
pub(crate) fn percentiles(sorted: &[Duration]) -> (f64, f64) {
    let percentile = |percent: usize| {
        let position = (sorted.len() * percent / 100).min(sorted.len().saturating_sub(1));
        sorted.get(position).map_or(0.0, |latency| latency.as_secs_f64() * 1000.0)
    };
    (percentile(50), percentile(99))
}
