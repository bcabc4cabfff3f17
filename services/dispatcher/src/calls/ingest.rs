//! Takes results in: decode, settle, keep what came late, acknowledge, tell the workers.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use redial_engine::Event;
use redial_proto::{
    Code, ErrorClass, Failure, JobRef, Outcome, Report, ReportBatch, WorkerId, WorkerNotice, limits, subjects,
};
use redial_queue::Delivery;
use redial_store::{CallRow, Change, DeadLetter, LateReport, StoreError};
use redial_telemetry::{ingest_result, metrics};
use tokio::{sync::Semaphore, time::sleep};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    context::Context,
    decide::{self, Reported},
    effects,
    wait::until,
};

/// Messages taken at once; each holds up to 256 reports.
const BATCH: usize = 64;
/// Batches settled at once.
const AT_ONCE: usize = 3;

pub(crate) async fn run(context: Arc<Context>, shutdown: CancellationToken) {
    let mut deliveries = context.queue.results();
    let free = Arc::new(Semaphore::new(AT_ONCE));
    let tasks = TaskTracker::new();
    while let Ok(permit) = free.clone().acquire_owned().await {
        let Some(batch) = until(&shutdown, deliveries.next(BATCH)).await else { break };
        let (context, shutdown) = (context.clone(), shutdown.clone());
        tasks.spawn(async move {
            ingest(&context, &shutdown, batch).await;
            drop(permit);
        });
    }
    tasks.close();
    tokio::join!(tasks.wait(), deliveries.end());
}

/// One report, ready to be settled.
#[derive(Clone)]
struct Result {
    job: JobRef,
    worker: WorkerId,
    duration_ms: u64,
    outcome: Outcome,
}

/// Settles a batch of messages. The database is waited for as long as it takes: the results are here, and a message
/// that NATS delivers again meanwhile finds its attempts settled.
async fn ingest(context: &Context, shutdown: &CancellationToken, batch: Vec<Delivery>) {
    let (results, rejected) = decode(&batch);
    metrics().batch_size("ingest", results.len());
    let mut pause = Duration::from_millis(50);
    while let Err(error) = settle(context, &results, &rejected).await {
        tracing::warn!(%error, results = results.len(), "results wait for the database");
        if until(shutdown, sleep(pause)).await.is_none() {
            return;
        }
        pause = (pause * 2).min(Duration::from_secs(1));
    }
    for delivery in &batch {
        delivery.ack().await;
    }
    tell_workers(context, &results).await;
}

fn decode(batch: &[Delivery]) -> (Vec<Result>, Vec<DeadLetter>) {
    let (mut results, mut rejected) = (Vec::new(), Vec::new());
    let mut reject = |message: String, payload: &[u8]| {
        tracing::error!(message, "a result cannot be read and is kept aside");
        rejected.push(DeadLetter { source: "results", code: Code::InvalidMessage, message, payload: payload.to_vec() });
    };
    let mut seen = HashSet::new();
    for delivery in batch {
        let reports: ReportBatch = match serde_json::from_slice(&delivery.payload) {
            Ok(reports) => reports,
            Err(error) => {
                reject(format!("no batch of reports: {error}"), &delivery.payload);
                continue;
            }
        };
        for raw in &reports.reports {
            match read_report(raw.get()) {
                // Sent twice within one batch: the first counts.
                Ok((job, ..)) if !seen.insert((job, reports.worker.clone())) => {}
                Ok((job, duration_ms, outcome)) => {
                    results.push(Result { job, worker: reports.worker.clone(), duration_ms, outcome });
                }
                Err(error) => reject(format!("no report: {error}"), raw.get().as_bytes()),
            }
        }
    }
    (results, rejected)
}

fn read_report(raw: &str) -> std::result::Result<(JobRef, u64, Outcome), String> {
    let report: Report = serde_json::from_str(raw).map_err(|error| error.to_string())?;
    let (job, duration_ms) = (report.job_ref(), report.duration_ms);
    Ok((job, duration_ms, within_limits(report.outcome()?)))
}

/// A worker in another language may not keep the limits: its attempt then ends with an error instead of a result that
/// the database refuses for ever.
fn within_limits(outcome: Outcome) -> Outcome {
    let failure = |class, message| Outcome::Failure(Failure::new(class, message));
    match outcome {
        Outcome::Success(output) if output.get().len() > limits::MAX_OUTPUT => failure(
            ErrorClass::OutputTooLarge,
            format!("the result takes {} bytes; allowed: {}", output.get().len(), limits::MAX_OUTPUT),
        ),
        Outcome::Success(output) if limits::json_depth(output.get()) > limits::MAX_DEPTH => failure(
            ErrorClass::OutputInvalid,
            format!("the result nests deeper than {} arrays and objects", limits::MAX_DEPTH),
        ),
        Outcome::Failure(mut failure) => {
            failure.message = limits::shorten(&failure.message, limits::MAX_ERROR_MESSAGE);
            failure.details.truncate(100);
            Outcome::Failure(failure)
        }
        fits @ Outcome::Success(_) => fits,
    }
}

/// Writes what the results change, and keeps what came too late or cannot be read. Safe to repeat.
///
/// Successes need no look at their calls. The others do, and a call may change between the look and the write (its
/// user cancels it): what the guard let through is decided anew.
async fn settle(context: &Context, results: &[Result], rejected: &[DeadLetter]) -> std::result::Result<(), StoreError> {
    let mut open: HashMap<JobRef, &Result> = results.iter().map(|result| (result.job, result)).collect();
    let successes = results.iter().filter_map(|result| match &result.outcome {
        Outcome::Success(output) => {
            let reported = reported(result, Some(output.get().to_owned()));
            Some(decide::success(result.job, &result.worker, reported))
        }
        Outcome::Failure(_) => None,
    });
    write(context, &successes.collect::<Vec<_>>(), &mut open).await?;
    while !open.is_empty() {
        let ids: Vec<_> = open.keys().map(|job| job.call).collect();
        let rows = context.store.load(&ids).await?;
        let changes: Vec<Change> = rows.iter().filter_map(|row| decide_row(context, row, &open)).collect();
        if changes.is_empty() {
            break;
        }
        write(context, &changes, &mut open).await?;
    }
    keep_late(context, open.into_values()).await?;
    if !rejected.is_empty() {
        context.store.keep_dead_letters(rejected).await?;
    }
    Ok(())
}

async fn write(
    context: &Context,
    changes: &[Change],
    open: &mut HashMap<JobRef, &Result>,
) -> std::result::Result<(), StoreError> {
    for changes in changes.chunks(limits::MAX_BATCH) {
        apply(context, changes, open).await?;
    }
    Ok(())
}

async fn apply(
    context: &Context,
    changes: &[Change],
    open: &mut HashMap<JobRef, &Result>,
) -> std::result::Result<(), StoreError> {
    let applied = context.store.apply(changes).await?;
    for call in &applied {
        let settled = open.remove(&JobRef { call: call.call, attempt: call.attempt });
        if let (Some(result), Some(traceparent)) = (settled, &call.traceparent) {
            ingest_result(&call.tool, traceparent, result.failure_class());
        }
    }
    effects::carry_out(context, decide::effects(context, changes, applied)).await;
    Ok(())
}

fn decide_row(context: &Context, row: &CallRow, open: &HashMap<JobRef, &Result>) -> Option<Change> {
    let result = open.get(&JobRef { call: row.id, attempt: row.attempt })?;
    if row.worker.as_ref() != Some(&result.worker) {
        return None;
    }
    match &result.outcome {
        Outcome::Success(output) => {
            let reported = reported(result, Some(output.get().to_owned()));
            decide::change(&context.registry, row, &Event::Succeeded, Some(reported))
        }
        Outcome::Failure(failure) => {
            decide::change(&context.registry, row, &Event::Failed(failure), Some(reported(result, None)))
        }
    }
}

fn reported(result: &Result, output: Option<String>) -> Reported {
    Reported { duration_ms: Some(result.duration_ms), output }
}

impl Result {
    fn failure_class(&self) -> Option<&'static str> {
        match &self.outcome {
            Outcome::Success(_) => None,
            Outcome::Failure(failure) => Some(failure.class.as_str()),
        }
    }
}

/// A stale result goes to the audit and changes nothing.
async fn keep_late(context: &Context, late: impl Iterator<Item = &Result>) -> std::result::Result<(), StoreError> {
    let reports: Vec<LateReport> = late
        .map(|result| {
            let (failure, output) = match &result.outcome {
                Outcome::Success(output) => (None, Some(output.get().to_owned())),
                Outcome::Failure(failure) => (Some((failure.class, failure.message.clone())), None),
            };
            LateReport { job: result.job, worker: result.worker.clone(), failure, output }
        })
        .collect();
    if reports.is_empty() {
        return Ok(());
    }
    let kept = context.store.keep_late(&reports).await?;
    metrics().results_stale(kept.len() as u64);
    for job in kept {
        tracing::info!(call = %job.call, attempt = job.attempt, "a result came too late and is kept aside");
    }
    Ok(())
}

/// A worker keeps its results until it is told that they are on record. If this message is lost it sends them again.
async fn tell_workers(context: &Context, results: &[Result]) {
    let mut ingested = BTreeMap::<&WorkerId, Vec<JobRef>>::new();
    for result in results {
        ingested.entry(&result.worker).or_default().push(result.job);
    }
    for (worker, jobs) in ingested {
        for ingested in jobs.chunks(5_000) {
            let notice = WorkerNotice { ingested: ingested.to_vec(), cancelled: Vec::new() };
            if let Err(error) = context.queue.publish(&subjects::worker(worker), &notice).await {
                tracing::debug!(%error, %worker, "a worker was not told that its results are on record");
            }
        }
    }
}
