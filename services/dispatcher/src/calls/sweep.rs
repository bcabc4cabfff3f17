//! Sweeps over calls that are due: leases that ended, retries, jobs that no worker claimed, deadlines.

use std::{collections::HashMap, sync::Arc, time::Duration};

use redial_engine::{
    outage::{INTERVAL, Observation},
    publish::MAX_REPUBLISHED,
    sweep::{Conditions, SweepPlan, plan_due},
};
use redial_store::{LockedCalls, StoreError};
use redial_telemetry::metrics;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::{context::Context, effects, transitions, wait::until};

/// Calls that are checked in one transaction.
const BATCH: u32 = 500;
/// The pause before a due call that another dispatcher had locked is checked again.
const SHORTEST_PAUSE: Duration = Duration::from_millis(5);

pub(crate) async fn run(context: Arc<Context>, shutdown: CancellationToken) {
    let mut pause = Duration::ZERO;
    let mut connections = context.queue.connections();
    while until(&shutdown, wait(&context, pause)).await.is_some() {
        let reconnected = connections.has_changed().unwrap_or(true);
        connections.mark_unchanged();
        context.observe(Observation::SweepBegan { connected: context.queue.is_connected() && !reconnected });
        let swept = sweep(&context).await;
        context.observe(Observation::SweepEnded { failed: swept.is_err() });
        pause = swept.unwrap_or_else(|error| {
            tracing::warn!(%error, "Sweep failed; trying again");
            INTERVAL
        });
    }
}

/// Until the pause is over, or a retry was scheduled that may be due sooner.
async fn wait(context: &Context, pause: Duration) {
    tokio::select! {
        () = sleep(pause) => {}
        () = context.due.notified() => {}
    }
}

/// Checks every call that is due; returns when to check next.
async fn sweep(context: &Context) -> Result<Duration, StoreError> {
    let mut republished = 0;
    loop {
        let began = Instant::now();
        let locked = context.store.lock_due_calls(BATCH).await?;
        answered(context, began);
        let Some(locked) = locked else { break };
        let due = locked.calls().len();
        let SweepPlan { transitions, tokens, republished: jobs } =
            plan(context, &locked, MAX_REPUBLISHED.saturating_sub(republished));
        let facts = locked.commit(&context.store, &transitions, &tokens).await?;
        // The whole transaction: workers could not renew the locked calls meanwhile.
        answered(context, began);
        metrics().jobs_republished(u64::from(jobs));
        republished += jobs;
        effects::carry_out(context, transitions::committed(context, &transitions, &facts)).await;
        if due < BATCH as usize {
            break;
        }
    }
    let asked = Instant::now();
    let next = context.store.next_wake().await?;
    answered(context, asked);
    let longest = context.check_interval();
    Ok(next.map_or(longest, |wait| wait.to_std().unwrap_or(SHORTEST_PAUSE)).min(longest))
}

fn plan(context: &Context, locked: &LockedCalls, republish_limit: u32) -> SweepPlan {
    let successes: HashMap<String, f64> =
        locked.buckets().iter().map(|bucket| (bucket.tool.clone(), context.take_successes(&bucket.tool))).collect();
    let conditions = Conditions {
        tools: &context.registry.tools(),
        buckets: locked.buckets(),
        successes: &successes,
        grace: context.grace(),
        republish_limit,
        queued: &|pool| context.is_queued(pool),
    };
    plan_due(locked.calls(), &conditions, rand::random)
}

/// Reports that the database answered what was begun then.
fn answered(context: &Context, began: Instant) {
    context.observe(Observation::Answered { after: began.elapsed() });
}
