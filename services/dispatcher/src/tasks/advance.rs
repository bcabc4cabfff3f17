//! Advances tasks in batches: what came in for them goes through the engine, and what that decides is written in one
//! transaction. Then jobs are published, calls cancelled, watchers told.
//!
//! [`decide`] is the part inside of the transaction. A process that dies anywhere loses nothing: the inbox is consumed
//! by the same transaction, jobs that were not published are found by the sweep over calls, and what is to be
//! cancelled is asked for again when the task wakes.

mod calls;
mod decide;
mod request;
#[cfg(test)]
mod tests;
mod unreadable;

use std::{sync::Arc, time::Duration};

use redial_engine::{call::submitted, publish::FIRST_CHECK_MS};
use redial_proto::{SubmitStatus, TaskId, TaskNotice};
use redial_records::Effect;
use redial_store::{Advanced, StoreError, TaskChange};
use redial_telemetry::metrics;
use tokio::time::sleep;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use self::decide::Decider;
use crate::{
    calls::submit::{metric_tool, status_name},
    context::Context,
    effects,
    wait::until,
};

/// Tasks that are advanced in one transaction.
const BATCH: u32 = 64;
/// Batches that are worked on at once.
const LANES: usize = 3;
/// Between two looks for tasks that nobody poked.
const INTERVAL: Duration = Duration::from_secs(1);
/// Batches of one look at most: what cannot be advanced must not keep it busy.
const MOST_BATCHES: usize = 50;

pub(crate) fn start(context: &Arc<Context>, tasks: &TaskTracker, shutdown: &CancellationToken) {
    for _ in 0..LANES {
        tasks.spawn(lane(context.clone(), shutdown.clone()));
    }
    tasks.spawn(sweep(context.clone(), shutdown.clone()));
}

/// Advances the tasks that were poked, as many at once as piled up.
async fn lane(context: Arc<Context>, shutdown: CancellationToken) {
    while until(&shutdown, context.wake_set.wait()).await.is_some() {
        let tasks = context.wake_set.take(BATCH as usize);
        if let Err(error) = advance(&context, &tasks, true).await {
            tracing::warn!(%error, tasks = tasks.len(), "tasks could not be advanced now; the next sweep does");
        }
    }
}

/// Finds what nobody poked: another dispatcher died, or a task's time has come.
async fn sweep(context: Arc<Context>, shutdown: CancellationToken) {
    while until(&shutdown, sleep(INTERVAL)).await.is_some() {
        if let Err(error) = pass(&context).await {
            tracing::warn!(%error, "the sweep over tasks waits for the database");
        }
    }
}

async fn pass(context: &Context) -> Result<(), StoreError> {
    for _ in 0..MOST_BATCHES {
        let due = context.store.due_tasks(BATCH).await?;
        advance(context, &due, false).await?;
        if due.len() < BATCH as usize {
            break;
        }
    }
    Ok(())
}

/// Advances tasks. `wait`: for those that somebody else is about to advance; otherwise they are left to him.
async fn advance(context: &Context, tasks: &[TaskId], wait: bool) -> Result<(), StoreError> {
    if tasks.is_empty() {
        return Ok(());
    }
    metrics().batch_size("advance", tasks.len());
    let tools = context.registry.tools();
    let advanced = context.store.advance(tasks, wait, FIRST_CHECK_MS, &mut Decider::new(&tools)).await?;
    for task in advanced {
        act(context, task).await;
    }
    Ok(())
}

/// Carries out what a committed change asks for.
async fn act(context: &Context, advanced: Advanced) {
    let change = advanced.change;
    count(&change);
    let mut effects: Vec<Effect> = change.calls.iter().flat_map(submitted).collect();
    effects.extend(advanced.stop.into_iter().map(Effect::CancelCall));
    effects.extend(advanced.next.map(Effect::WakeTask));
    effects.extend(
        change
            .steps
            .last()
            .map(|last| Effect::NotifyWatchers(TaskNotice { task: change.id, step: last.n, state: change.state })),
    );
    effects::carry_out(context, effects).await;
}

fn count(change: &TaskChange) {
    for call in &change.calls {
        let status = if call.refusal.is_some() { SubmitStatus::Refused } else { SubmitStatus::Accepted };
        metrics().calls_submitted(metric_tool(call), status_name(status), 1);
    }
    if let Some(code) = change.code {
        metrics().task_finished(code.as_str(), change.turns, change.corrections);
    }
}
