//! Advances tasks in batches: locks them, plans each through the engine, writes the plans in one transaction, and
//! carries out their effects.
//!
//! A process that dies anywhere loses nothing: the inbox is emptied by the same transaction, jobs that were not
//! published are found by the sweep over calls, and what is to be cancelled is asked for again when the task wakes.

use std::{collections::HashMap, sync::Arc, time::Duration};

use redial_engine::{
    publish::FIRST_CHECK_MS,
    task::{Known, Needs, Paused, PlanContext, Planned, Planning, plan},
};
use redial_proto::{CallId, SubmitStatus, TaskId};
use redial_records::{Effect, TaskStatus, TaskTransition};
use redial_store::{LockedTasks, Store, StoreError};
use redial_telemetry::metrics;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::{calls::submit::metric_tool, context::Context, effects, running::Running, wait::until};

/// Tasks that are advanced in one transaction.
const BATCH: u32 = 64;
/// Batches that are advanced at once.
const CONCURRENT_BATCHES: usize = 3;
/// Between two sweeps for due tasks that were not woken here.
const INTERVAL: Duration = Duration::from_secs(1);
/// Batches of one sweep at most: tasks that cannot be advanced must not keep it busy.
const MAX_BATCHES: usize = 50;
/// How often a batch is planned again after a failure of Postgres that passes by itself.
const RETRIES: u32 = 3;

pub(crate) fn start(running: &Running) {
    for _ in 0..CONCURRENT_BATCHES {
        running.spawn(advance_woken);
    }
    running.spawn(sweep);
}

/// Advances tasks that were woken, as many at once as have piled up.
async fn advance_woken(context: Arc<Context>, shutdown: CancellationToken) {
    while until(&shutdown, context.wake_set.wait()).await.is_some() {
        let tasks = context.wake_set.take(BATCH as usize);
        if let Err(error) = advance(&context, &tasks, true).await {
            tracing::warn!(%error, tasks = tasks.len(), "Failed to advance tasks; the next sweep tries again");
        }
    }
}

/// Finds due tasks that were not woken here: another dispatcher died, or a task's time has come.
async fn sweep(context: Arc<Context>, shutdown: CancellationToken) {
    while until(&shutdown, sleep(INTERVAL)).await.is_some() {
        if let Err(error) = sweep_once(&context).await {
            tracing::warn!(%error, "Sweep over tasks failed; the next one tries again");
        }
    }
}

async fn sweep_once(context: &Context) -> Result<(), StoreError> {
    for _ in 0..MAX_BATCHES {
        let due = context.store.due_tasks(BATCH).await?;
        advance(context, &due, false).await?;
        if due.len() < BATCH as usize {
            break;
        }
    }
    Ok(())
}

/// Advances tasks. `wait`: also those that another dispatcher has locked.
///
/// If Postgres refuses a batch because of one task, the tasks are advanced one by one, so that the others continue.
async fn advance(context: &Context, tasks: &[TaskId], wait: bool) -> Result<(), StoreError> {
    if tasks.is_empty() {
        return Ok(());
    }
    metrics().batch_size("advance", tasks.len());
    let error = match advance_together(context, tasks, wait).await {
        Err(error) if tasks.len() > 1 && !error.is_transient() => error,
        done => return done,
    };
    tracing::warn!(%error, tasks = tasks.len(), "Failed to advance tasks together; advancing them one by one");
    for task in tasks {
        if let Err(error) = advance_together(context, &[*task], wait).await {
            tracing::error!(%error, %task, "Failed to advance a task");
        }
    }
    Ok(())
}

async fn advance_together(context: &Context, tasks: &[TaskId], wait: bool) -> Result<(), StoreError> {
    let mut tries = 0;
    let written = loop {
        match plan_and_write(context, tasks, wait).await {
            Err(error) if error.is_transient() && tries < RETRIES => {
                tries += 1;
                tracing::debug!(%error, tries, "Failed to advance tasks; planning them again");
            }
            done => break done?,
        }
    };
    let mut effects = Vec::new();
    for planned in written.plans {
        for bug in planned.bugs {
            tracing::error!(task = %planned.transition.task, bug, "Found a bug while planning a task");
        }
        count(&planned.transition);
        effects.extend(planned.transition.effects);
    }
    effects.extend(written.next.into_iter().map(Effect::WakeTask));
    effects::carry_out(context, effects).await;
    Ok(())
}

/// What is on record now.
struct Written {
    plans: Vec<Planned>,
    /// Tasks whose turn it is now.
    next: Vec<TaskId>,
}

async fn plan_and_write(context: &Context, tasks: &[TaskId], wait: bool) -> Result<Written, StoreError> {
    let (store, tools) = (&context.store, context.registry.tools());
    let mut locked = store.lock_tasks(tasks, wait).await?;
    let mut new_id = CallId::generate;
    let mut plan_context = PlanContext::new(&tools, &mut new_id);
    let mut planning: Vec<Planning> =
        locked.take_records().into_iter().map(|record| plan(record, &mut plan_context)).collect();
    let mut plans = Vec::with_capacity(planning.len());
    while !planning.is_empty() {
        let mut paused = Vec::new();
        for one in planning {
            match one {
                Planning::Done(planned) => plans.push(*planned),
                Planning::Paused(one) => paused.push(*one),
            }
        }
        let known = read(store, &mut locked, &paused).await?;
        planning = paused.into_iter().zip(known).map(|(one, known)| one.resume(known, &mut plan_context)).collect();
    }
    let transitions: Vec<&TaskTransition> = plans.iter().map(|planned| &planned.transition).collect();
    let next = locked.commit(store, &transitions, FIRST_CHECK_MS).await?;
    Ok(Written { plans, next })
}

/// What paused plans need, in their order, with one statement for each kind of need.
async fn read(store: &Store, locked: &mut LockedTasks, paused: &[Paused]) -> Result<Vec<Known>, StoreError> {
    let (mut whole, mut calls) = (Vec::new(), Vec::new());
    for one in paused {
        match one.needs() {
            Needs::Conversation => whole.push(one.task()),
            Needs::Results(needed) => calls.extend(needed.iter().map(|call| (one.task(), call.clone()))),
        }
    }
    let mut conversations = match whole.as_slice() {
        [] => HashMap::new(),
        whole => locked.conversations(store, whole).await?,
    };
    let mut results = HashMap::<TaskId, HashMap<String, String>>::new();
    if !calls.is_empty() {
        for ((task, call), result) in locked.results(store, &calls).await? {
            results.entry(task).or_default().insert(call, result);
        }
    }
    let known = |one: &Paused| match one.needs() {
        Needs::Conversation => Known::Conversation(conversations.remove(&one.task()).unwrap_or_default()),
        Needs::Results(_) => Known::Results(results.remove(&one.task()).unwrap_or_default()),
    };
    Ok(paused.iter().map(known).collect())
}

fn count(transition: &TaskTransition) {
    for call in &transition.calls {
        let status = if call.refusal.is_some() { SubmitStatus::Refused } else { SubmitStatus::Accepted };
        metrics().calls_submitted(metric_tool(call), status.as_str(), 1);
    }
    if let TaskStatus::Ended(outcome) = &transition.status {
        metrics().task_finished(outcome.code.as_str(), transition.turns, transition.corrections);
    }
}
