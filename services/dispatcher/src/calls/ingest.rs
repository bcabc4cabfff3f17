//! Ingests reports: decodes and stores them, acknowledges them, notifies the workers.

mod decode;

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
    time::{Duration, Instant},
};

use chrono::Utc;
use redial_backoff::Backoff;
use redial_engine::call::{CallEvent, succeeded, takes_back};
use redial_loops::Loops;
use redial_proto::{CallId, CallState, ControlMessage, GrantRef, Outcome, WorkerId, limits, subjects};
use redial_queue::Delivery;
use redial_records::{CallRecord, Transition};
use redial_shares::FairQueue;
use redial_store::{HeldGrant, LateReport, LostGrant, StoreError};
use redial_telemetry::{ingest_result, metrics};
use tokio::{
    sync::{Mutex, Semaphore},
    time::sleep,
};
use tokio_util::sync::CancellationToken;

use self::decode::{Decoded, Fate, Reported, ResultMessage, decode};
use crate::{
    apart::{self, NotTogether},
    context::Context,
    effects,
    left_bytes::WITHIN,
    transitions,
    wait::until,
};

/// Messages taken at once; each holds up to 256 reports.
const BATCH: usize = 64;
/// Batches stored at once.
const CONCURRENT_BATCHES: usize = 3;
/// Reports whose bodies are in pieces that are worked on at once.
const LARGE: usize = 2;
/// Too many of a sender wait, or the call of a report is locked: delivered again after this.
const LATER: Duration = Duration::from_secs(5);
/// A message that is left to a newer version is delivered again after this, perhaps to a dispatcher that can read it; then each time
/// later by as much, up to a minute.
const LEFT_FOR: Duration = Duration::from_secs(5);
/// Waits before a batch that could not be stored is tried again.
const RETRY: Backoff = Backoff::new(Duration::from_millis(50), Duration::from_secs(1));

pub(crate) async fn run(context: Arc<Context>, shutdown: CancellationToken, loops: Loops) {
    let mut deliveries = context.workers.results();
    let free = Arc::new(Semaphore::new(CONCURRENT_BATCHES));
    let large = Arc::<Large>::default();
    for _ in 0..LARGE {
        let (context, shutdown, large) = (context.clone(), shutdown.clone(), large.clone());
        loops.spawn("ingest large reports", ingest_large(context, shutdown, large));
    }
    while let Ok(permit) = free.clone().acquire_owned().await {
        let Some(batch) = until(&shutdown, deliveries.next(BATCH)).await else { break };
        let (context, shutdown, large) = (context.clone(), shutdown.clone(), large.clone());
        loops.spawn("ingest reports", async move {
            ingest(&context, &shutdown, &large, batch).await;
            drop(permit);
        });
    }
    for delivery in large.close(Duration::ZERO).await {
        delivery.nak(Duration::ZERO).await;
    }
    deliveries.end().await;
}

/// Messages whose bodies are in pieces. Those of each worker identity have their turns, and no others wait behind them.
type Large = FairQueue<Delivery>;

async fn ingest_large(context: Arc<Context>, shutdown: CancellationToken, large: Arc<Large>) {
    while let Some(Some(deliveries)) = until(&shutdown, large.take(1)).await {
        for delivery in deliveries {
            ingest_apart(&context, &shutdown, delivery).await;
        }
    }
}

/// Stores a batch of messages and answers them. A batch that could not be stored before the shutdown goes back to the
/// stream: other dispatchers get it at once.
async fn ingest(context: &Context, shutdown: &CancellationToken, large: &Large, batch: Vec<Delivery>) {
    let (apart, batch): (Vec<_>, Vec<_>) = batch.into_iter().partition(|delivery| delivery.apart.is_some());
    for delivery in apart {
        let sender = apart::owner(delivery.subject()).unwrap_or_default();
        if let Err(delivery) = large.add(&sender, delivery, 0) {
            delivery.nak(LATER).await;
        }
    }
    if let Some(decoded) = ingest_messages(context, shutdown, &batch).await {
        for (message, delivery) in batch.iter().enumerate() {
            match decoded.fate(message) {
                Fate::Stored => delivery.ack().await,
                Fate::Locked => delivery.nak(LATER).await,
                Fate::Left => delivery.nak(left_for(delivery.delivered)).await,
            }
        }
        notify_workers(context, decoded.stored()).await;
    }
}

/// Returns the pause after a message was delivered so many times.
fn left_for(delivered: u64) -> Duration {
    WITHIN.min(LEFT_FOR * u32::try_from(delivered).unwrap_or(u32::MAX))
}

/// Puts a message together and ingests it, then drops its pieces: should this process die before, another one gets the message and
/// needs them. If they are not there, or only a newer version can read it, its worker sends it again, in new ones, because it does not
/// hear of it: one body is read once, however many messages refer to it.
async fn ingest_apart(context: &Context, shutdown: &CancellationToken, mut delivery: Delivery) {
    let apart = delivery.apart.take();
    let Some((payload, owner)) = apart.zip(apart::owner(delivery.subject())) else { return delivery.term().await };
    let together = || async {
        match apart::assembled(context, &owner, payload).await {
            Err(NotTogether::Store(error)) => Err(error),
            other => Ok(other),
        }
    };
    match until_stored(shutdown, together).await {
        Some(Ok((body, _memory))) => {
            delivery.payload = body;
            let batch = [delivery];
            match ingest_messages(context, shutdown, &batch).await {
                // Its pieces are needed again.
                Some(decoded) if decoded.fate(0) == Fate::Locked => {
                    batch[0].nak(LATER).await;
                    notify_workers(context, decoded.stored()).await;
                }
                Some(decoded) => {
                    batch[0].ack().await;
                    notify_workers(context, decoded.stored()).await;
                    apart::forget(context, &owner, payload).await;
                }
                None => {}
            }
        }
        Some(Err(error)) => {
            let error = error.error(payload);
            tracing::debug!(%error, "Dropped reports in pieces; their worker sends them again");
            delivery.ack().await;
        }
        None => delivery.nak(Duration::ZERO).await,
    }
}

/// Ingests messages. What it returns is on record then, or kept as dead letters, but for what is left to a newer
/// version. `None` if the shutdown came first: then they went back.
async fn ingest_messages(context: &Context, shutdown: &CancellationToken, batch: &[Delivery]) -> Option<Decoded> {
    if batch.is_empty() {
        return None;
    }
    let decoded = until_all_stored(context, shutdown, batch).await;
    match &decoded {
        Some(decoded) => decoded.tell_left(batch),
        None => {
            for delivery in batch {
                delivery.nak(Duration::ZERO).await;
            }
        }
    }
    decoded
}

/// Stores what a batch of messages holds, and returns that. Waits for the database as long as it takes: a message
/// that NATS delivers again meanwhile finds its reports stored. `None` if the shutdown came first.
async fn until_all_stored(context: &Context, shutdown: &CancellationToken, batch: &[Delivery]) -> Option<Decoded> {
    let now = Instant::now();
    let mut decoded = decode(batch.iter().map(message_of), Utc::now(), context.config.max_payload, |message| {
        context.left.has_room(message.subject, message.payload.len(), message.left_before, now)
    });
    metrics().batch_size("ingest", decoded.reports.len());
    decoded.locked = until_reports_stored(context, shutdown, &decoded.reports).await?;
    let dead_letters = Mutex::new(decoded.dead_letters(batch));
    let keep = || async { context.store.insert_dead_letters(&mut *dead_letters.lock().await).await };
    until_stored(shutdown, keep).await?;
    Some(decoded)
}

/// Stores reports, in parts that become half as large each time that one times out, until what takes too long is alone: it is put off,
/// and so are reports of calls that are locked; both are returned. `None` if the shutdown came first.
async fn until_reports_stored(
    context: &Context,
    shutdown: &CancellationToken,
    mut reports: &[Reported],
) -> Option<HashSet<GrantRef>> {
    let (mut put_off, mut size, mut waits) = (HashSet::new(), reports.len().max(1), RETRY.waits());
    while !reports.is_empty() {
        let (part, rest) = reports.split_at(size.min(reports.len()));
        match store(context, part).await {
            Ok(locked) => {
                put_off.extend(locked);
                (reports, size) = (rest, size.saturating_mul(2));
                continue;
            }
            Err(error) if error.is_timeout() && part.len() > 1 => {
                tracing::warn!(%error, reports = part.len(), "Failed to store reports in time; trying fewer");
                size = part.len() / 2;
            }
            Err(error) if error.is_timeout() => {
                tracing::warn!(%error, call = %part[0].grant.call, "Failed to store a report in time; putting it off");
                put_off.insert(part[0].grant);
                reports = rest;
            }
            Err(error) => tracing::warn!(%error, "Failed to store reports; trying again"),
        }
        until(shutdown, sleep(waits.next_wait())).await?;
    }
    Some(put_off)
}

fn message_of(delivery: &Delivery) -> ResultMessage<'_> {
    ResultMessage {
        subject: delivery.subject(),
        payload: &delivery.payload,
        is_newer: delivery.is_newer(),
        sent_at: delivery.stored_at,
        left_before: delivery.delivered.checked_sub(1).filter(|times| *times > 0).map(left_for),
    }
}

/// Repeats `work` until the database takes it; `None` if the shutdown came first.
async fn until_stored<T, F>(shutdown: &CancellationToken, work: impl Fn() -> F) -> Option<T>
where
    F: Future<Output = Result<T, StoreError>>,
{
    let mut waits = RETRY.waits();
    loop {
        match work().await {
            Ok(done) => return Some(done),
            Err(error) => tracing::warn!(%error, "Failed to store reports; trying again"),
        }
        until(shutdown, sleep(waits.next_wait())).await?;
    }
}

/// Writes what the reports change, and late reports; returns those of calls that are locked. Safe to repeat.
///
/// Successes are planned without reading their calls. The others read them first, and a call may change between the
/// read and the write (its user cancels it): what a guard prevented is planned again.
async fn store(context: &Context, reports: &[Reported]) -> Result<HashSet<GrantRef>, StoreError> {
    let mut open: Open<'_> = reports.iter().map(|report| (report.grant, report)).collect();
    let mut locked = HashSet::new();
    let successes: Vec<Transition> = reports.iter().filter_map(success).collect();
    locked.extend(write(context, &successes, &mut open).await?);
    while !open.is_empty() {
        let ids: Vec<_> = open.keys().map(|grant| grant.call).collect();
        let mut calls = context.store.load(&ids).await?;
        let lost = take_back(context, &calls, &open).await?;
        if !lost.is_empty() {
            let put_off: Vec<GrantRef> =
                lost.iter().filter(|lost| !lost.is_refused && !lost.is_taken).map(|lost| lost.grant).collect();
            open.retain(|grant, _| !put_off.contains(grant));
            locked.extend(put_off);
            calls = context.store.load(&ids).await?;
        }
        let transitions: Vec<Transition> = calls.iter().filter_map(|call| plan(context, call, &open)).collect();
        if transitions.is_empty() {
            break;
        }
        locked.extend(write(context, &transitions, &mut open).await?);
    }
    insert_late_reports(context, open.into_values()).await?;
    Ok(locked)
}

/// Reports that are not stored yet. A report under another claim than the one that was granted must not hide the true one.
type Open<'a> = HashMap<GrantRef, &'a Reported>;

fn success(report: &Reported) -> Option<Transition> {
    match &report.outcome {
        Outcome::Success(output) => {
            Some(succeeded(report.grant, &report.worker, report.duration_ms, output.get().to_owned()))
        }
        Outcome::Failure(_) => None,
    }
}

/// Takes back the grants of reports that the database lost: whoever reports an attempt held it until then. Returns all that were lost.
async fn take_back(context: &Context, calls: &[CallRecord], open: &Open<'_>) -> Result<Vec<LostGrant>, StoreError> {
    let ready: HashMap<CallId, &CallRecord> =
        calls.iter().filter(|call| call.state == CallState::Ready).map(|call| (call.id, call)).collect();
    let held = open.values().filter_map(|report| {
        let (call, grant) = (ready.get(&report.grant.call)?, report.grant);
        let held_at = Some(call.read_at);
        takes_back(call, grant, held_at).then_some(HeldGrant { worker: &report.worker, grant, held_at })
    });
    let held: Vec<HeldGrant<'_>> = held.collect();
    if held.is_empty() { Ok(Vec::new()) } else { context.store.take_back(&held, context.config.lease_ms()).await }
}

/// Plans the change that a report makes to its call; `None` if the report is late.
fn plan(context: &Context, call: &CallRecord, open: &Open<'_>) -> Option<Transition> {
    let report = open.get(&call.grant()?)?;
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

/// Writes transitions, and removes the reports that they store from `open`, and those of calls that are locked, which are returned.
async fn write(
    context: &Context,
    transitions: &[Transition],
    open: &mut Open<'_>,
) -> Result<Vec<GrantRef>, StoreError> {
    let (mut locked, mut rest) = (Vec::new(), transitions);
    while !rest.is_empty() {
        let (batch, others) = rest.split_at(fitting(rest));
        rest = others;
        let (applied, effects) = transitions::write_unlocked(context, batch).await?;
        for call in &applied.facts {
            let grant = call.claim.map(|claim| GrantRef { call: call.call, attempt: call.attempt, claim });
            let report = grant.and_then(|grant| open.remove(&grant));
            if let (Some(report), Some(traceparent)) = (report, &call.traceparent) {
                ingest_result(&call.tool, traceparent, report.failure_class());
            }
        }
        if !applied.locked.is_empty() {
            locked.extend(open.extract_if(|grant, _| applied.locked.contains(&grant.call)).map(|(grant, _)| grant));
        }
        effects::carry_out(context, effects).await;
    }
    Ok(locked)
}

/// Bytes of outputs in one statement. A larger output gets its own.
const MAX_BYTES: usize = 4 * 1024 * 1024;

/// Counts the transitions that fit one statement; at least one.
fn fitting(transitions: &[Transition]) -> usize {
    let size = |one: &Transition| {
        let output = one.ended_attempt().and_then(|attempt| attempt.result.as_ref().ok());
        output.map_or(limits::MAX_ERROR_MESSAGE, String::len)
    };
    limits::fitting(transitions.iter().map(size), limits::MAX_BATCH, MAX_BYTES)
}

impl Reported {
    fn failure_class(&self) -> Option<&'static str> {
        match &self.outcome {
            Outcome::Success(_) => None,
            Outcome::Failure(failure) => Some(failure.class.as_str()),
        }
    }
}

/// Writes late reports to the audit; they change nothing.
async fn insert_late_reports(context: &Context, late: impl Iterator<Item = &Reported>) -> Result<(), StoreError> {
    let reports: Vec<LateReport> = late
        .map(|report| {
            let result = match &report.outcome {
                Outcome::Success(output) => Ok(output.get().to_owned()),
                Outcome::Failure(failure) => Err(failure.clone()),
            };
            LateReport { job: report.grant.job_ref(), worker: report.worker.clone(), result }
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

/// Tells workers that results are on record: they keep them until then, and send them again if this message is lost.
async fn notify_workers(context: &Context, reports: impl Iterator<Item = &Reported>) {
    let mut ingested = BTreeMap::<&WorkerId, Vec<GrantRef>>::new();
    for report in reports {
        ingested.entry(&report.worker).or_default().push(report.grant);
    }
    for (worker, grants) in ingested {
        for ingested in grants.chunks(5_000) {
            let message = ControlMessage { ingested: ingested.to_vec(), cancelled: Vec::new() };
            if let Err(error) = context.queue.publish(&subjects::worker(worker), &message).await {
                tracing::debug!(%error, %worker, "Failed to notify a worker that its results are on record");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use redial_proto::CallId;

    use super::*;

    #[test]
    fn statements_are_bounded_by_transitions_and_bytes() {
        let success = |bytes: usize| {
            let grant = GrantRef { call: CallId::generate(), attempt: 1, claim: redial_proto::ClaimId::generate() };
            succeeded(grant, &"w-1".parse().unwrap(), 1, "1".repeat(bytes))
        };
        let fits = |transitions: &[Transition]| fitting(transitions);
        assert_eq!(fits(&vec![success(1); 3_000]), 1_000);
        assert_eq!(fits(&vec![success(500_000); 100]), 8);
        assert_eq!(fits(&[success(16 * 1024 * 1024), success(1)]), 1, "a huge one goes alone");
    }
}
