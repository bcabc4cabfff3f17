//! Advances tasks in batches: locks them, plans each through the engine, writes the plans in one transaction, and
//! carries out their effects.
//!
//! A process that dies anywhere loses nothing: the inbox is emptied by the same transaction, jobs that were not
//! published are found by the sweep over calls, and what is to be cancelled is asked for again when the task wakes.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    sync::Arc,
    time::Duration,
};

use redial_engine::{
    call,
    publish::FIRST_CHECK_MS,
    task::{Known, Needs, Paused, PlanContext, Planned, Planning, plan},
};
use redial_proto::{CallId, SubmitStatus, TaskId};
use redial_records::{Effect, Reach, TaskStatus, TaskTransition};
use redial_store::{LockedTasks, Store, StoreError};
use redial_telemetry::{metrics, set_aside};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::failing::FailingTasks;
use crate::{aside::aside, context::Context, effects, new_calls::metric_tool, running::Running, wait::until};

/// Tasks that are advanced in one transaction.
const BATCH: u32 = 64;
/// Batches that are advanced at once.
const CONCURRENT_BATCHES: usize = 3;
/// Between two sweeps for due tasks that were not woken here, and between two looks at failing tasks.
const INTERVAL: Duration = Duration::from_secs(1);
/// Batches of one sweep at most.
const MAX_BATCHES: usize = 50;
/// How often a batch is planned again after a failure of Postgres that passes by itself.
const RETRIES: u32 = 3;

pub(crate) fn start(running: &Running) {
    let failing = Arc::new(FailingTasks::default());
    for _ in 0..CONCURRENT_BATCHES {
        let failing = failing.clone();
        let advance = |context, shutdown| async move { Advancer { context, failing }.advance_woken(shutdown).await };
        running.spawn("advance tasks", advance);
    }
    let again = failing.clone();
    let retry = |context, shutdown| async move { Advancer { context, failing: again }.retry_failing(shutdown).await };
    running.spawn("retry failing tasks", retry);
    let sweep = |context, shutdown| async move { Advancer { context, failing }.sweep(shutdown).await };
    running.spawn("sweep tasks", sweep);
}

struct Advancer {
    context: Arc<Context>,
    failing: Arc<FailingTasks>,
}

impl Advancer {
    /// Advances tasks that were woken, as many at once as have piled up.
    async fn advance_woken(self, shutdown: CancellationToken) {
        while until(&shutdown, self.context.wake_set.wait()).await.is_some() {
            let tasks = self.failing.others(self.context.wake_set.take(BATCH as usize));
            let count = tasks.len();
            if let Err(error) = self.advance(tasks, true).await {
                tracing::warn!(%error, tasks = count, "Failed to advance tasks; the next sweep tries again");
            }
        }
    }

    /// Tries failing tasks again, each alone, once its pause is over.
    async fn retry_failing(self, shutdown: CancellationToken) {
        while until(&shutdown, sleep(INTERVAL)).await.is_some() {
            for task in self.failing.due(Instant::now()) {
                if shutdown.is_cancelled() {
                    return;
                }
                if let Err(error) = self.advance(vec![task], false).await {
                    tracing::warn!(%error, %task, "Failed to advance a failing task; trying again");
                    break;
                }
            }
        }
    }

    /// Finds due tasks that were not woken here: another dispatcher died, or a task's time has come.
    async fn sweep(self, shutdown: CancellationToken) {
        while until(&shutdown, sleep(INTERVAL)).await.is_some() {
            if let Err(error) = self.sweep_once().await {
                tracing::warn!(%error, "Sweep over tasks failed; the next one tries again");
            }
        }
    }

    async fn sweep_once(&self) -> Result<(), StoreError> {
        // A task may be due still, because another dispatcher has locked it or a later transaction is to advance it.
        let mut seen = Vec::new();
        for _ in 0..MAX_BATCHES {
            let except = [seen.as_slice(), &self.failing.all()].concat();
            let due = self.context.store.due_tasks(BATCH, &except).await?;
            seen.extend(&due);
            let is_last = due.len() < BATCH as usize;
            self.advance(due, false).await?;
            if is_last {
                break;
            }
        }
        Ok(())
    }

    /// Advances tasks. `wait`: also those that another dispatcher has locked. Those whose conversations would make the
    /// transaction too large are woken again; those whose results would, are the next batch.
    ///
    /// If a batch fails for another reason than a lost connection, its halves are advanced, and so on: a task that fails
    /// alone is left alone for a while, and the others continue.
    async fn advance(&self, tasks: Vec<TaskId>, wait: bool) -> Result<(), StoreError> {
        let mut batches = VecDeque::from([tasks]);
        while let Some(mut batch) = batches.pop_front() {
            if batch.is_empty() {
                continue;
            }
            metrics().batch_size("advance", batch.len());
            match advance_together(&self.context, &batch, wait).await {
                Ok(behind) => {
                    let rest: Vec<TaskId> =
                        behind.rest.iter().copied().filter(|task| !behind.left.contains(task)).collect();
                    batch.retain(|task| !behind.left.contains(task) && !rest.contains(task));
                    batches.push_front(rest);
                    for task in batch {
                        self.failing.succeeded(task);
                    }
                    for task in behind.left {
                        self.context.wake_set.wake(task);
                    }
                }
                // Fewer tasks at once would not help.
                Err(error) if error.is_outage() => return Err(error),
                Err(error) => {
                    if let [task] = batch[..] {
                        self.failed(task, &error);
                        continue;
                    }
                    tracing::warn!(%error, tasks = batch.len(), "Failed to advance tasks together; dividing them");
                    let rest = batch.split_off(batch.len() / 2);
                    batches.extend([batch, rest]);
                }
            }
        }
        Ok(())
    }

    /// Leaves a task alone for a while. If this version cannot read it, one of the version that wrote it may take it meanwhile.
    fn failed(&self, task: TaskId, error: &StoreError) {
        let pause_ms = self.failing.failed(task, Instant::now()).as_millis();
        if error.is_unreadable() {
            return set_aside("tasks", 1, &task, error);
        }
        tracing::error!(%error, %task, pause_ms, "Failed to advance a task; trying again after a pause");
    }
}

struct Behind {
    /// Tasks whose conversations the transaction had no room for.
    left: HashSet<TaskId>,
    /// Tasks whose results it had no room for, in their order. It advanced at least one task, or took an item of one.
    rest: Vec<TaskId>,
}

async fn advance_together(context: &Context, tasks: &[TaskId], wait: bool) -> Result<Behind, StoreError> {
    let mut tries = 0;
    let written = loop {
        match plan_and_write(context, tasks, wait).await {
            Err(error) if error.is_transient() && !error.is_timeout() && tries < RETRIES => {
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
        effects.extend(planned.transition.calls.iter().flat_map(call::submitted));
        effects.extend(planned.transition.effects);
    }
    effects.extend(written.next.into_iter().map(Effect::WakeTask));
    effects::carry_out(context, effects).await;
    Ok(written.behind)
}

struct Written {
    plans: Vec<Planned>,
    /// Tasks whose turn it is now.
    next: Vec<TaskId>,
    behind: Behind,
}

async fn plan_and_write(context: &Context, tasks: &[TaskId], wait: bool) -> Result<Written, StoreError> {
    let (store, tools) = (&context.store, context.registry.offered());
    let mut locked = store.lock_tasks(tasks, wait).await?;
    let mut new_id = CallId::generate;
    let mut plan_context = PlanContext::new(&tools, &mut new_id).with_aside(|check| aside(check));
    let mut planning: Vec<Planning> =
        locked.take_records().into_iter().map(|record| plan(record, &mut plan_context)).collect();
    let mut plans = Vec::with_capacity(planning.len());
    let mut behind = Behind { left: HashSet::new(), rest: locked.take_left() };
    while !planning.is_empty() {
        let mut paused = Vec::new();
        for one in planning {
            match one {
                Planning::Done(planned) => plans.push(*planned),
                Planning::Paused(one) => paused.push(*one),
                Planning::Unreadable(why) => return Err(StoreError::BadData(why)),
            }
        }
        planning = Vec::with_capacity(paused.len());
        let known = read(store, &mut locked, &paused).await?;
        for (one, known) in paused.into_iter().zip(known) {
            match known {
                Some(known) => planning.push(one.resume(known, &mut plan_context)),
                None => drop(behind.left.insert(one.task())),
            }
        }
    }
    for call in plans.iter_mut().flat_map(|planned| &mut planned.transition.calls) {
        call.consumer = context.admit_new(call);
    }
    let transitions: Vec<&TaskTransition> = plans.iter().map(|planned| &planned.transition).collect();
    let committed = locked.commit(store, &transitions, FIRST_CHECK_MS).await;
    if committed.is_err() {
        context.not_published(plans.iter().flat_map(|planned| &planned.transition.calls));
    }
    let next = committed?;
    Ok(Written { plans, next, behind })
}

/// Reads what paused plans need, in their order, with one statement for each kind of need; `None` for those that this
/// transaction has no room for.
async fn read(store: &Store, locked: &mut LockedTasks, paused: &[Paused]) -> Result<Vec<Option<Known>>, StoreError> {
    let (mut wanted, mut calls) = (Vec::<(TaskId, &Reach)>::new(), Vec::new());
    for one in paused {
        match one.needs() {
            Needs::Conversation(reach) => wanted.push((one.task(), reach)),
            Needs::Results(needed) => calls.push((one.task(), needed.clone())),
        }
    }
    let mut conversations = match wanted.as_slice() {
        [] => HashMap::new(),
        wanted => locked.conversations(store, wanted).await?,
    };
    let mut results = match calls.as_slice() {
        [] => HashMap::new(),
        calls => locked.results(store, calls).await?,
    };
    let known = |one: &Paused| match one.needs() {
        Needs::Conversation(_) => conversations.remove(&one.task()).map(Known::Conversation),
        Needs::Results(_) => results.remove(&one.task()).map(Known::Results),
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
