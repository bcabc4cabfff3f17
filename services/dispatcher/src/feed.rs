//! The feeder's loop: look at the workers, at the stream and at the backlog, then publish what there is room for.
//!
//! NATS holds a short queue, Postgres the rest. Below the window a submission is published at once and there is nothing
//! to do here but to look at the stream twice a second. What no live worker can run is not published, and the health of a
//! tool says how many of its retries may run.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
    time::Duration,
};

use redial_engine::{
    health::{self, Observed},
    publish::{FIRST_CHECK_MS, MAX_CHECK_MS},
    tools::retry_budget,
    window::{Order, Round},
};
use redial_records::{Effect, ToolHealth};
use redial_store::{Fed, Feed, Position, StoreError};
use redial_telemetry::metrics;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::{context::Context, effects, error::DispatcherError, search::AT_ONCE, wait::until};

/// The longest time between two rounds.
const INTERVAL: Duration = Duration::from_millis(500);
/// The shortest time from the beginning of a round to the next one.
const SHORTEST: Duration = Duration::from_millis(20);
/// The pause after a round that failed.
const PAUSE: Duration = Duration::from_millis(500);
/// About how long one round publishes.
const LONGEST: Duration = Duration::from_millis(250);
/// How often workers are looked at.
const WORKERS: Duration = Duration::from_secs(1);
/// How often the usual rates of tools are written, and read when tools were last served.
const SLOW: Duration = Duration::from_secs(5);
/// Agents are offered a tool so long after its last worker was seen: a rolling restart takes a while.
const OFFER_GRACE: Duration = Duration::from_mins(2);

pub(crate) async fn run(context: Arc<Context>, shutdown: CancellationToken) {
    let mut rounds = Rounds::default();
    while !shutdown.is_cancelled() {
        let began = Instant::now();
        let next = rounds.round(&context, &shutdown).await;
        let shortest = SHORTEST.saturating_sub(began.elapsed());
        let pause = async {
            match next {
                Ok(true) => sleep(shortest).await,
                Ok(false) => {
                    let _elapsed = timeout(INTERVAL, context.feeder.wait()).await;
                    sleep(shortest).await;
                }
                Err(error) => {
                    tracing::warn!(%error, "Failed to feed the queue; trying again");
                    sleep(PAUSE).await;
                }
            }
        };
        if until(&shutdown, pause).await.is_none() {
            return;
        }
    }
}

#[derive(Default)]
struct Rounds {
    workers_at: Option<Instant>,
    slow_at: Option<Instant>,
}

impl Rounds {
    /// Runs a round. True if more may wait, and there may be room for it soon. A part that fails does not keep the
    /// others from their turn, unless a server cannot be reached; its error is returned at the end.
    async fn round(&mut self, context: &Context, shutdown: &CancellationToken) -> Result<bool, DispatcherError> {
        let mut failed = None;
        let workers = is_due(&mut self.workers_at, WORKERS);
        let slow = workers && is_due(&mut self.slow_at, SLOW);
        // Tools about which conclusions are due, even if nothing was observed.
        let mut due = Vec::new();
        if workers {
            kept(&mut failed, look_at_workers(context, slow, Instant::now()).await)?;
            let declared = context.access.at(std::time::Instant::now()).await.value;
            context.feeder.expect_several_tenants(declared.is_some_and(|access| access.tenants.len() > 1));
            due = context.feeder.unwell();
        }
        let began = context.uptime();
        let unclaimed = kept(&mut failed, context.queue.unclaimed_jobs().await)?;
        let mut waiting = waiting(context, &mut failed).await?;
        let mut round = Round::default();
        if let Some(unclaimed) = unclaimed {
            context.feeder.set_depths(&unclaimed, began);
            round = context.feeder.round(&waiting);
        }
        due.extend(tools_with_retries(&waiting).map(str::to_owned));
        let observed = context.feeder.take_observed(due, slow);
        take_tokens(context, &waiting, &mut round, observed).await;
        let more = feed(context, &mut waiting, &mut round, shutdown).await;
        // Other dispatchers may have retries. If this one dies before, the tool earns the tokens again.
        take_tokens(context, &waiting, &mut Round::default(), unused_tokens(&round)).await;
        context.feeder.ended(&round, context.uptime().saturating_sub(began));
        failed.map_or(Ok(more), Err)
    }
}

/// Returns what a part returned; `None` if it failed.
fn kept<T>(
    failed: &mut Option<DispatcherError>,
    done: Result<T, impl Into<DispatcherError>>,
) -> Result<Option<T>, DispatcherError> {
    let error = match done.map_err(Into::into) {
        Ok(value) => return Ok(Some(value)),
        Err(error) => error,
    };
    let is_away = match &error {
        DispatcherError::Store(error) => error.is_outage(),
        error => error.is_outage(),
    };
    if is_away {
        return Err(error);
    }
    failed.get_or_insert(error);
    Ok(None)
}

/// Reads what waits of the tools that live workers have, and where the first of each part does, in the order of the
/// parts. Something may wait where that could not be read.
async fn waiting(context: &Context, failed: &mut Option<DispatcherError>) -> Result<Vec<Position>, DispatcherError> {
    let at = std::time::Instant::now();
    let mut waiting = Vec::new();
    for asked in context.feeder.positions(at).chunks(AT_ONCE) {
        match kept(failed, context.store.waiting(asked).await)? {
            Some(found) => {
                context.feeder.looked(asked, &found, at);
                waiting.extend(found);
            }
            None => waiting.extend_from_slice(asked),
        }
    }
    waiting.sort_unstable_by(|one: &Position, other| one.part.cmp(&other.part));
    Ok(waiting)
}

fn is_due(at: &mut Option<Instant>, interval: Duration) -> bool {
    let now = Instant::now();
    let due = at.is_none_or(|at| now >= at);
    if due {
        *at = Some(now + interval);
    }
    due
}

/// Learns which consumers have live workers. What was published for workers that are gone goes back to the backlog if
/// others can take it now. `since`: when what is to be learned was on record; one look serves all that waited for it.
pub(crate) async fn look_at_workers(context: &Context, slow: bool, since: Instant) -> Result<(), DispatcherError> {
    // One at a time: what was read earlier must not replace what was read later.
    let mut looking = context.feeder.looking.lock().await;
    if looking.is_some_and(|last| last >= since) && !slow {
        return Ok(());
    }
    let began = Instant::now();
    let consumers = context.store.working_consumers().await?;
    let gone = context.feeder.set_consumers(consumers, !context.grace().is_zero());
    *looking = Some(began);
    if slow || !gone.is_empty() {
        match context.store.tools_last_seen().await {
            Ok(last_seen) => context.feeder.set_last_seen(last_seen),
            // What is published does not depend on it.
            Err(error) => tracing::debug!(%error, "Failed to read when tools were last served"),
        }
    }
    let seen_after = context.feeder.seen_until(context.store.now().await?, context.grace().is_zero()) - OFFER_GRACE;
    context.registry.offer(|tool, _| context.feeder.is_offered(tool, seen_after));
    drop(looking);
    for consumer in gone {
        match context.store.requeue_consumer(&consumer, MAX_CHECK_MS).await {
            Ok(requeued) => {
                context.feeder.requeued(&consumer);
                context.feeder.recheck();
                tracing::info!(
                    consumer,
                    requeued,
                    "The last worker of a consumer is gone; its calls wait in the backlog"
                );
                metrics().jobs_requeued(requeued);
            }
            Err(error) if error.is_outage() => return Err(error.into()),
            // The calls of the others go back meanwhile, and the queue is fed.
            Err(error) => tracing::warn!(%error, consumer, "Failed to put calls back into the backlog; trying again"),
        }
    }
    Ok(())
}

/// Credits what was observed of tools, and takes tokens for the retries that there is room for.
async fn take_tokens(context: &Context, waiting: &[Position], round: &mut Round, observed: HashMap<String, Observed>) {
    if observed.is_empty() {
        return;
    }
    match credit(context, waiting, round, &observed).await {
        Ok((health, tokens)) => {
            for (tool, tokens) in tokens {
                round.allow(&tool, tokens);
            }
            context.feeder.set_health(health);
        }
        // First attempts have their turn.
        Err(error) => {
            tracing::warn!(%error, "Failed to write the health of tools; trying again");
            context.feeder.put_back(observed);
        }
    }
}

fn unused_tokens(round: &Round) -> HashMap<String, Observed> {
    let unused = |unused_tokens| Observed { unused_tokens, ..Observed::default() };
    round.unused_tokens().map(|(tool, tokens)| (tool.to_owned(), unused(tokens))).collect()
}

/// Returns the health of the observed tools, and how many retries of each may run: on record, they run already.
async fn credit(
    context: &Context,
    waiting: &[Position],
    round: &Round,
    observed: &HashMap<String, Observed>,
) -> Result<(Vec<ToolHealth>, Vec<(String, u32)>), StoreError> {
    let tools: Vec<&str> = observed.keys().map(String::as_str).collect();
    let waits: BTreeSet<&str> = tools_with_retries(waiting).collect();
    let locked = context.store.lock_health(&tools).await?;
    let (now, registered) = (locked.now(), context.registry.tools());
    let (mut health, mut tokens) = (Vec::with_capacity(tools.len()), Vec::new());
    for (tool, seen) in observed {
        let on_record = locked.health().iter().find(|one| one.tool == *tool).cloned();
        let budget = retry_budget(&registered, tool);
        let before = on_record.unwrap_or_else(|| health::fresh(tool, &budget, now));
        let mut after = health::after(&before, &budget, *seen, waits.contains(tool.as_str()), now);
        tokens.push((tool.clone(), health::take(&mut after, round.room_for_retries(tool))));
        health.push(after);
    }
    locked.commit(&context.store, &health).await?;
    Ok((health, tokens))
}

fn tools_with_retries(waiting: &[Position]) -> impl Iterator<Item = &str> {
    waiting.iter().filter(|one| one.part.backlog.is_retry()).map(|one| one.part.tool.as_str())
}

/// Publishes what a round has room for. True if more may wait, and there may be room for it soon.
async fn feed(context: &Context, waiting: &mut [Position], round: &mut Round, shutdown: &CancellationToken) -> bool {
    let began = Instant::now();
    while !shutdown.is_cancelled() {
        if began.elapsed() > LONGEST {
            return true;
        }
        let Some(order) = context.feeder.next_order(round) else { return round.is_short_of_room() };
        let taken = match take(context, waiting, &order).await {
            Ok(taken) => taken,
            // The others have their turn.
            Err(error) => {
                tracing::warn!(%error, tool = order.part.tool, "Failed to take calls from a backlog; trying again");
                Fed::default()
            }
        };
        let count = u32::try_from(taken.jobs.len()).unwrap_or(u32::MAX);
        round.took(&order, count);
        context.feeder.fed(&order, count.into(), taken.until);
        effects::carry_out(context, taken.jobs.into_iter().map(Effect::PublishJob).collect()).await;
    }
    false
}

async fn take(context: &Context, waiting: &mut [Position], order: &Order) -> Result<Fed, StoreError> {
    let found = waiting.binary_search_by(|one| one.part.cmp(&order.part)).ok();
    let Some(from) = found.and_then(|found| waiting.get_mut(found)) else { return Ok(Fed::default()) };
    let feed = Feed {
        from: from.clone(),
        consumer: order.consumer.clone(),
        pool: order.pool.clone(),
        most: order.most,
        recovery: context.feeder.recovery(&order.part),
    };
    let taken = context.store.feed(&feed, FIRST_CHECK_MS, MAX_CHECK_MS).await?;
    from.since = taken.until.or(from.since);
    Ok(taken)
}
