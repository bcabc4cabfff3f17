//! Sweeps over calls that are due: leases that ended, retries, jobs that no worker claimed, deadlines.

use std::{collections::HashSet, sync::Arc, time::Duration};

use redial_engine::{
    outage::{INTERVAL, Observation},
    sweep::{Conditions, plan_due},
};
use redial_proto::CallId;
use redial_records::Transition;
use redial_store::{DueCalls, LockedCalls, StoreError};
use redial_telemetry::set_aside;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::{context::Context, effects, transitions, wait::until};

/// So many calls that wait in the backlog and so many others are checked in one transaction.
const BATCH: u32 = 300;
/// Batches of one sweep at most, so that it ends however much is due.
const MAX_BATCHES: usize = 20;
/// The pause before what became due meanwhile, or another dispatcher had locked, is checked.
const SHORTEST_PAUSE: Duration = Duration::from_millis(5);
/// Calls that are remembered as locked at most: each is in every statement of a sweep.
const MAX_LOCKED: usize = 1_000;

pub(crate) async fn run(context: Arc<Context>, shutdown: CancellationToken) {
    let mut pause = Duration::ZERO;
    let (mut connections, mut locked) = (context.workers.connections(), HashSet::new());
    while until(&shutdown, wait(&context, pause)).await.is_some() {
        let reconnected = connections.has_changed().unwrap_or(true);
        connections.mark_unchanged();
        context.observe(Observation::SweepBegan { connected: context.workers.is_connected() && !reconnected });
        let swept = sweep(&context, &shutdown, &mut locked).await;
        context.observe(Observation::SweepEnded { failed: swept.is_err() });
        pause = swept.unwrap_or_else(|error| {
            tracing::warn!(%error, "Sweep failed; trying again");
            INTERVAL
        });
    }
}

/// Waits until the pause is over, or a retry was scheduled that may be due sooner.
async fn wait(context: &Context, pause: Duration) {
    tokio::select! {
        () = sleep(pause) => {}
        () = context.due.notified() => {}
    }
}

/// Checks calls that are due, up to [`MAX_BATCHES`]; returns when to check next. `met` are the due calls that somebody held locked at
/// the sweep before, such as an operator in a transaction.
async fn sweep(
    context: &Context,
    shutdown: &CancellationToken,
    met: &mut HashSet<CallId>,
) -> Result<Duration, StoreError> {
    let before: Vec<CallId> = met.iter().copied().collect();
    *met = context.store.locked(&before).await?;
    for _ in 0..MAX_BATCHES {
        let began = Instant::now();
        let DueCalls { locked, unreadable } = context.store.lock_due_calls(BATCH, &before).await?;
        answered(context, began);
        if let Some(first) = unreadable.first() {
            set_aside("calls", unreadable.len(), first, &"its row holds what this version does not know");
        }
        let Some(locked) = locked else { break };
        let due = locked.calls().len();
        let transitions = plan(context, &locked, &before);
        let facts = locked.commit(&context.store, &transitions).await?;
        // The whole transaction: workers could not renew the locked calls meanwhile.
        answered(context, began);
        effects::carry_out(context, transitions::committed(context, &transitions, &facts)).await;
        if due < BATCH as usize || shutdown.is_cancelled() {
            break;
        }
    }
    let (asked, longest) = (Instant::now(), context.check_interval());
    let known: Vec<CallId> = met.iter().copied().collect();
    let next = context.store.next_wake(longest, &known).await?;
    answered(context, asked);
    let Some(wait) = next else { return Ok(longest) };
    let Ok(wait) = wait.to_std() else {
        if met.len() >= MAX_LOCKED {
            return Ok(longest);
        }
        met.extend(context.store.locked_due_calls(BATCH, &known).await?);
        return Ok(SHORTEST_PAUSE);
    };
    Ok(wait.min(longest))
}

fn plan(context: &Context, locked: &LockedCalls, met: &[CallId]) -> Vec<Transition> {
    if let Some(call) = locked.calls().first() {
        context.observe_clock(call.read_at);
    }
    let grace = context.grace();
    let conditions = Conditions {
        tools: &context.registry.tools(),
        grace: &|call| if met.contains(&call.id) { grace.max(context.config.lease) } else { grace },
        job: &|call| context.feeder.job_state(call),
        waiting: &|call| context.feeder.waiting(call),
    };
    plan_due(locked.calls(), &conditions, rand::random)
}

/// Reports that the database answered what was begun then.
fn answered(context: &Context, began: Instant) {
    context.observe(Observation::Answered { after: began.elapsed() });
}
