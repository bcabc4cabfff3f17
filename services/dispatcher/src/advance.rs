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

use redial_engine::publish::FIRST_CHECK_MS;
use redial_proto::{SubmitStatus, TaskId, TaskNotice, subjects};
use redial_store::{Advanced, StoreError, TaskChange};
use redial_telemetry::metrics;
use tokio::time::sleep;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use self::decide::Decider;
use crate::{
    cancel,
    shared::Shared,
    submit::{first_job, metric_tool, status_name},
    until,
};

/// Tasks that are advanced in one transaction.
const BATCH: u32 = 64;
/// Batches that are worked on at once.
const LANES: usize = 3;
/// Between two looks for tasks that nobody poked.
const INTERVAL: Duration = Duration::from_secs(1);
/// Batches of one look at most: what cannot be advanced must not keep it busy.
const MOST_BATCHES: usize = 50;

pub(crate) fn start(shared: &Arc<Shared>, tasks: &TaskTracker, shutdown: &CancellationToken) {
    for _ in 0..LANES {
        tasks.spawn(lane(shared.clone(), shutdown.clone()));
    }
    tasks.spawn(sweep(shared.clone(), shutdown.clone()));
}

/// Advances the tasks that were poked, as many at once as piled up.
async fn lane(shared: Arc<Shared>, shutdown: CancellationToken) {
    while until(&shutdown, shared.pokes.wait()).await.is_some() {
        let tasks = shared.pokes.take(BATCH as usize);
        if let Err(error) = advance(&shared, &tasks, true).await {
            tracing::warn!(%error, tasks = tasks.len(), "tasks could not be advanced now; the next sweep does");
        }
    }
}

/// Finds what nobody poked: another dispatcher died, or a task's time has come.
async fn sweep(shared: Arc<Shared>, shutdown: CancellationToken) {
    while until(&shutdown, sleep(INTERVAL)).await.is_some() {
        if let Err(error) = pass(&shared).await {
            tracing::warn!(%error, "the sweep over tasks waits for the database");
        }
    }
}

async fn pass(shared: &Shared) -> Result<(), StoreError> {
    for _ in 0..MOST_BATCHES {
        let due = shared.store.due_tasks(BATCH).await?;
        advance(shared, &due, false).await?;
        if due.len() < BATCH as usize {
            break;
        }
    }
    Ok(())
}

/// Advances tasks. `wait`: for those that somebody else is about to advance; otherwise they are left to him.
async fn advance(shared: &Shared, tasks: &[TaskId], wait: bool) -> Result<(), StoreError> {
    if tasks.is_empty() {
        return Ok(());
    }
    metrics().batch_size("advance", tasks.len());
    let tools = shared.registry.tools();
    let advanced = shared.store.advance(tasks, wait, FIRST_CHECK_MS, &mut Decider::new(&tools)).await?;
    for task in advanced {
        act(shared, task).await;
    }
    Ok(())
}

/// Does what a committed change asks for.
async fn act(shared: &Shared, advanced: Advanced) {
    let change = advanced.change;
    count(&change);
    for call in change.calls.iter().filter(|call| call.refusal.is_none()) {
        shared.publish(first_job(call)).await;
    }
    for call in advanced.stop {
        if let Err(error) = cancel::stop(shared, call).await {
            tracing::warn!(%error, %call, task = %change.id, "a call is not cancelled yet; the task asks again");
        }
    }
    if let Some(next) = advanced.next {
        shared.pokes.poke(next);
    }
    tell(shared, &change).await;
}

/// Watchers ask what happened; one that misses this asks later.
async fn tell(shared: &Shared, change: &TaskChange) {
    let Some(last) = change.steps.last() else { return };
    let notice = TaskNotice { task: change.id, step: last.n, state: change.state };
    if let Err(error) = shared.queue.publish(&subjects::task_events(change.id), &notice).await {
        tracing::debug!(%error, task = %change.id, "watchers were not told of a step");
    }
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
