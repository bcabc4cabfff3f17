//! Ingests reports: decodes and stores them, acknowledges them, notifies the workers.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use redial_backoff::Backoff;
use redial_engine::call::{CallEvent, succeeded};
use redial_proto::{
    Code, ControlMessage, ErrorClass, Failure, JobRef, Outcome, Report, ReportBatch, WorkerId, limits, subjects,
};
use redial_queue::Delivery;
use redial_records::{CallRecord, Transition};
use redial_store::{DeadLetter, LateReport, StoreError};
use redial_telemetry::{ingest_result, metrics};
use tokio::{sync::Semaphore, time::sleep};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{context::Context, effects, transitions, wait::until};

/// Messages taken at once; each holds up to 256 reports.
const BATCH: usize = 64;
/// Batches stored at once.
const CONCURRENT_BATCHES: usize = 3;
/// Waits before a batch that could not be stored is tried again.
const RETRY: Backoff = Backoff::new(Duration::from_millis(50), Duration::from_secs(1));

pub(crate) async fn run(context: Arc<Context>, shutdown: CancellationToken) {
    let mut deliveries = context.queue.results();
    let free = Arc::new(Semaphore::new(CONCURRENT_BATCHES));
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

/// One report, ready to be stored.
#[derive(Clone)]
struct Reported {
    job: JobRef,
    worker: WorkerId,
    duration_ms: u64,
    outcome: Outcome,
}

/// Stores a batch of messages. Waits for the database as long as it takes: a message that NATS delivers again
/// meanwhile finds its reports stored.
async fn ingest(context: &Context, shutdown: &CancellationToken, batch: Vec<Delivery>) {
    let (reports, unreadable) = decode(&batch);
    metrics().batch_size("ingest", reports.len());
    let mut waits = RETRY.waits();
    while let Err(error) = store(context, &reports, &unreadable).await {
        tracing::warn!(%error, reports = reports.len(), "Failed to store reports; trying again");
        if until(shutdown, sleep(waits.next_wait())).await.is_none() {
            return;
        }
    }
    for delivery in &batch {
        delivery.ack().await;
    }
    notify_workers(context, &reports).await;
}

fn decode(batch: &[Delivery]) -> (Vec<Reported>, Vec<DeadLetter>) {
    let (mut reports, mut unreadable) = (Vec::new(), Vec::new());
    let mut reject = |message: String, payload: &[u8]| {
        tracing::error!(message, "Stored an unreadable report as a dead letter");
        unreadable.push(DeadLetter {
            source: "results",
            code: Code::InvalidMessage,
            message,
            payload: payload.to_vec(),
        });
    };
    let mut seen = HashSet::new();
    for delivery in batch {
        let message: ReportBatch = match serde_json::from_slice(&delivery.payload) {
            Ok(message) => message,
            Err(error) => {
                reject(format!("not a batch of reports: {error}"), &delivery.payload);
                continue;
            }
        };
        for raw in &message.reports {
            match read_report(raw.get()) {
                // Sent twice within one batch: the first counts.
                Ok((job, ..)) if !seen.insert((job, message.worker.clone())) => {}
                Ok((job, duration_ms, outcome)) => {
                    reports.push(Reported { job, worker: message.worker.clone(), duration_ms, outcome });
                }
                Err(error) => reject(format!("not a report: {error}"), raw.get().as_bytes()),
            }
        }
    }
    (reports, unreadable)
}

fn read_report(raw: &str) -> Result<(JobRef, u64, Outcome), String> {
    let report: Report = serde_json::from_str(raw).map_err(|error| error.to_string())?;
    let (job, duration_ms) = (report.job_ref(), report.duration_ms);
    Ok((job, duration_ms, within_limits(report.outcome()?)))
}

/// A worker in another language may not keep the limits: its attempt then ends with an error instead of a result that
/// the database always refuses.
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
            failure.details.truncate(limits::MAX_DETAILS);
            Outcome::Failure(failure)
        }
        fits @ Outcome::Success(_) => fits,
    }
}

/// Writes what the reports change, late reports, and unreadable messages as dead letters. Safe to
/// repeat.
///
/// Successes are planned without reading their calls. The others read them first, and a call may change between the
/// read and the write (its user cancels it): what a guard prevented is planned again.
async fn store(context: &Context, reports: &[Reported], unreadable: &[DeadLetter]) -> Result<(), StoreError> {
    let mut open: HashMap<JobRef, &Reported> = reports.iter().map(|report| (report.job, report)).collect();
    let successes: Vec<Transition> = reports.iter().filter_map(success).collect();
    write(context, &successes, &mut open).await?;
    while !open.is_empty() {
        let ids: Vec<_> = open.keys().map(|job| job.call).collect();
        let calls = context.store.load(&ids).await?;
        let transitions: Vec<Transition> = calls.iter().filter_map(|call| plan(context, call, &open)).collect();
        if transitions.is_empty() {
            break;
        }
        write(context, &transitions, &mut open).await?;
    }
    insert_late_reports(context, open.into_values()).await?;
    if !unreadable.is_empty() {
        context.store.insert_dead_letters(unreadable).await?;
    }
    Ok(())
}

fn success(report: &Reported) -> Option<Transition> {
    match &report.outcome {
        Outcome::Success(output) => {
            Some(succeeded(report.job, &report.worker, report.duration_ms, output.get().to_owned()))
        }
        Outcome::Failure(_) => None,
    }
}

/// The change that a report makes to its call; `None` if the report is late.
fn plan(context: &Context, call: &CallRecord, open: &HashMap<JobRef, &Reported>) -> Option<Transition> {
    let report = open.get(&JobRef { call: call.id, attempt: call.attempt })?;
    if call.worker.as_ref() != Some(&report.worker) {
        return None;
    }
    let duration_ms = report.duration_ms;
    let event = match &report.outcome {
        Outcome::Success(output) => CallEvent::Succeeded { duration_ms, output: output.get() },
        Outcome::Failure(failure) => CallEvent::Failed { duration_ms, failure },
    };
    transitions::plan(context, call, &event)
}

/// Writes transitions, and removes the reports that they store from `open`.
async fn write(
    context: &Context,
    transitions: &[Transition],
    open: &mut HashMap<JobRef, &Reported>,
) -> Result<(), StoreError> {
    for batch in transitions.chunks(limits::MAX_BATCH) {
        let (facts, effects) = transitions::write(context, batch).await?;
        for call in &facts {
            let report = open.remove(&JobRef { call: call.call, attempt: call.attempt });
            if let (Some(report), Some(traceparent)) = (report, &call.traceparent) {
                ingest_result(&call.tool, traceparent, report.failure_class());
            }
        }
        effects::carry_out(context, effects).await;
    }
    Ok(())
}

impl Reported {
    fn failure_class(&self) -> Option<&'static str> {
        match &self.outcome {
            Outcome::Success(_) => None,
            Outcome::Failure(failure) => Some(failure.class.as_str()),
        }
    }
}

/// A late report goes to the audit and changes nothing.
async fn insert_late_reports(context: &Context, late: impl Iterator<Item = &Reported>) -> Result<(), StoreError> {
    let reports: Vec<LateReport> = late
        .map(|report| {
            let result = match &report.outcome {
                Outcome::Success(output) => Ok(output.get().to_owned()),
                Outcome::Failure(failure) => Err(failure.clone()),
            };
            LateReport { job: report.job, worker: report.worker.clone(), result }
        })
        .collect();
    if reports.is_empty() {
        return Ok(());
    }
    let stored = context.store.insert_late_reports(&reports).await?;
    metrics().results_stale(stored.len() as u64);
    for job in stored {
        tracing::info!(call = %job.call, attempt = job.attempt, "Stored a late report");
    }
    Ok(())
}

/// A worker keeps its results until a control message says that they are on record. If this message is lost it sends them again.
async fn notify_workers(context: &Context, reports: &[Reported]) {
    let mut ingested = BTreeMap::<&WorkerId, Vec<JobRef>>::new();
    for report in reports {
        ingested.entry(&report.worker).or_default().push(report.job);
    }
    for (worker, jobs) in ingested {
        for ingested in jobs.chunks(5_000) {
            let message = ControlMessage { ingested: ingested.to_vec(), cancelled: Vec::new() };
            if let Err(error) = context.queue.publish(&subjects::worker(worker), &message).await {
                tracing::debug!(%error, %worker, "Failed to notify a worker that its results are on record");
            }
        }
    }
}
