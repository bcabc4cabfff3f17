//! Pull: takes as many jobs from a pool as it has free permits.

use std::{
    collections::{BTreeMap, HashSet},
    pin::pin,
    sync::Arc,
    time::Duration,
};

use redial_proto::{
    Pack, PackedJob, ReturnedPack,
    limits::{MAX_CLAIM, MAX_PACK},
};
use redial_queue::{Delivery, Jobs};
use redial_telemetry::set_aside;
use tokio::{sync::watch, time::timeout};

use crate::{
    claim,
    message::PulledMessage,
    pool::{LimitReached, Permit, Pool, PulledJob},
    state::{WorkerState, pause_up_to},
};

/// How long one pull stays open; the next one asks for as many jobs as there are free permits then. Available jobs
/// arrive at once.
const WAIT: Duration = Duration::from_secs(5);
const PAUSE_CAP: Duration = Duration::from_secs(1);
/// A message for which no slot is left goes back after this.
const SOON: Duration = Duration::from_millis(50);
/// A job whose tool has reached its limit goes back to the stream for a time that doubles up to this. It is not
/// claimed, so it uses up no attempt, no time of its lease, and no permit that another job could use.
const LIMITED_CAP: Duration = Duration::from_secs(4);
/// A job of a newer version that this one cannot read is delivered again after this, perhaps to a worker that can. If there is none, it
/// leaves the stream like every job that nobody takes.
const LEFT_FOR: Duration = Duration::from_secs(5);

/// Pulls jobs and spawns a claim for each batch, until the worker drains.
pub(crate) async fn pull(state: Arc<WorkerState>, pool: Pool) {
    let mut consumers = state.consumers.subscribe();
    while !state.draining.is_cancelled() {
        // The jobs of a consumer that was not named are for others.
        let Some(consumer) = consumers.borrow_and_update().get(&pool.name).cloned() else {
            state.draining.run_until_cancelled(consumers.changed()).await;
            continue;
        };
        match state.queue.jobs(&consumer) {
            Ok(stream) => pull_from(&state, &pool, Source { consumer, stream }, &mut consumers).await,
            Err(error) => {
                tracing::error!(pool = %pool.name, consumer, %error, "Cannot pull jobs; waiting for another registration");
                state.draining.run_until_cancelled(consumers.changed()).await;
            }
        }
    }
    tracing::debug!(pool = %pool.name, "Stopped pulling jobs");
}

/// Pulls from one consumer, until a registration names another one.
async fn pull_from(
    state: &Arc<WorkerState>,
    pool: &Pool,
    mut source: Source,
    consumers: &mut watch::Receiver<BTreeMap<String, String>>,
) {
    // A pack has a quarter of a worker's slots at most. So every idle worker has an open pull for four of them, and those of a burst are
    // dealt out evenly.
    let largest = (pool.permits.available_permits() / 4).clamp(1, MAX_PACK);
    let mut history = PullHistory { jobs_per_message: largest, ..PullHistory::default() };
    loop {
        let brought = tokio::select! {
            biased;
            () = state.draining.cancelled() => break,
            _ = consumers.changed() => break,
            brought = next(state, pool, &mut source.stream, &mut history) => brought,
        };
        let pulled = match brought {
            Brought::Jobs(deliveries) => take_all(state, pool, &source.consumer, &mut history, deliveries).await,
            Brought::Late(deliveries) => {
                for delivery in deliveries {
                    delivery.nak(Duration::ZERO).await;
                }
                continue;
            }
        };
        for batch in claim::batches(pulled) {
            state.control_tasks.spawn("claim jobs", claim::claim(Arc::clone(state), batch));
        }
    }
    for delivery in source.stream.end().await {
        delivery.nak(Duration::ZERO).await;
    }
}

struct Source {
    consumer: String,
    stream: Jobs,
}

#[derive(Default)]
struct PullHistory {
    /// Jobs in a message of the last pull, rounded up. At first so many that a pull takes too few messages, not too many.
    jobs_per_message: usize,
    /// Consecutive pulls that failed.
    failures: u32,
    /// Tools of discarded jobs that this worker does not have.
    missing_tools: HashSet<String>,
}

enum Brought {
    /// There are permits for at least some of their jobs.
    Jobs(Vec<Delivery>),
    /// They came while there was none.
    Late(Vec<Delivery>),
}

/// Waits for the next messages. Cancel-safe: the future owns no delivery while it waits.
async fn next(state: &WorkerState, pool: &Pool, stream: &mut Jobs, history: &mut PullHistory) -> Brought {
    // Only this loop acquires permits of the pool, so the free ones are still free when the jobs arrive. A permit that
    // command tools of several pools share may be gone by then; such a job goes back to the stream.
    let may_run = async {
        state.may_claim().await;
        state.reports.wait_for_capacity().await;
        pool.wait_for_permit().await;
    };
    if let Some(late) = late_before(may_run, stream).await {
        return Brought::Late(late);
    }
    let free = pool.permits.available_permits().min(MAX_CLAIM);
    match stream.pull(free.div_ceil(history.jobs_per_message), WAIT).await {
        Ok(deliveries) => {
            history.failures = 0;
            Brought::Jobs(deliveries)
        }
        Err(error) => {
            history.failures += 1;
            let wait = pause_up_to(PAUSE_CAP, history.failures);
            tracing::warn!(pool = %pool.name, wait_ms = wait.as_millis(), %error, "Failed to pull jobs");
            tokio::time::sleep(wait).await;
            Brought::Jobs(Vec::new())
        }
    }
}

/// Returns what the open request brings before a slot is free. It may have been for more messages than there are slots
/// now: its packs were larger than the last ones.
async fn late_before(until: impl Future<Output = ()>, stream: &mut Jobs) -> Option<Vec<Delivery>> {
    let mut until = pin!(until);
    // With fast tools a slot is free again before another worker could have the message.
    if timeout(SOON, &mut until).await.is_ok() {
        return None;
    }
    tokio::select! {
        biased;
        () = until => None,
        late = stream.late() => Some(late),
    }
}

async fn take_all(
    state: &WorkerState,
    pool: &Pool,
    consumer: &str,
    history: &mut PullHistory,
    deliveries: Vec<Delivery>,
) -> Vec<PulledJob> {
    let (mut pulled, mut messages) = (Vec::new(), 0);
    for delivery in deliveries {
        let taken = take(state, pool, consumer, history, delivery).await;
        messages += usize::from(!taken.is_empty());
        pulled.extend(taken);
    }
    if messages > 0 {
        let returned: usize = pulled.iter().filter_map(|job| Some(job.rest.as_ref()?.pack.jobs.len())).sum();
        history.jobs_per_message = (pulled.len() + returned).div_ceil(messages);
    }
    pulled
}

/// Parses a message and acquires permits for its jobs, as many as there are. The others go back with the claim. A message of which no
/// job can run here goes back to the stream, or is discarded.
async fn take(
    state: &WorkerState,
    pool: &Pool,
    consumer: &str,
    history: &mut PullHistory,
    delivery: Delivery,
) -> Vec<PulledJob> {
    let Pack { tool, mut jobs } = match Pack::read(&delivery.payload) {
        Ok(pack) if !pack.jobs.is_empty() => pack,
        Err(error) if delivery.is_newer() => {
            set_aside("jobs", 1, &delivery.subject(), &error);
            delivery.nak(LEFT_FOR).await;
            return Vec::new();
        }
        read => {
            let error = read.err().map(tracing::field::display);
            tracing::error!(subject = delivery.subject(), error, "Discarded a job that could not be parsed");
            delivery.term().await;
            return Vec::new();
        }
    };
    if !state.tools.contains_key(&tool) {
        // Left over from workers with other tools that had this consumer before. It is only a hint, and in nobody's way
        // once it is gone: the dispatchers publish it again where the tool is.
        delivery.ack().await;
        if history.missing_tools.insert(tool.clone()) {
            tracing::warn!(tool, pool = %pool.name, "Discarded a job whose tool this worker does not have");
        }
        return Vec::new();
    }
    let (mut permits, mut reached) = (Vec::with_capacity(jobs.len()), None);
    while permits.len() < jobs.len() && reached.is_none() {
        match pool.try_acquire(&tool, jobs[permits.len()].bytes) {
            Ok(permit) => permits.push(permit),
            Err(limit) => reached = Some(limit),
        }
    }
    if let (true, Some(limit)) = (permits.is_empty(), reached) {
        hand_back(limit, &delivery).await;
        return Vec::new();
    }
    let (message, rest) = (PulledMessage::new(delivery), jobs.split_off(permits.len()));
    let back = |jobs| ReturnedPack { consumer: consumer.to_owned(), pack: Pack { tool: tool.clone(), jobs } };
    let mut rest = (!rest.is_empty()).then(|| back(rest));
    let with_permit = |(job, permit): (PackedJob, Permit)| {
        let (job, message) = (job.of_tool(&tool), message.clone());
        PulledJob { job, message, permit, rest: rest.take() }
    };
    jobs.into_iter().zip(permits).map(with_permit).collect()
}

/// Gives a message back of which nothing can run now. Where the pool has no permit any more, another worker may have one.
async fn hand_back(reached: LimitReached, delivery: &Delivery) {
    match reached {
        LimitReached::Tool | LimitReached::Memory => {
            let times = u32::try_from(delivery.delivered).unwrap_or(u32::MAX);
            delivery.nak(pause_up_to(LIMITED_CAP, times)).await;
        }
        LimitReached::Pool => delivery.nak(Duration::ZERO).await,
    }
}
