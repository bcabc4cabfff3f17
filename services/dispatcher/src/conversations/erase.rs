//! Carries out erasures in steps: makes sure that nothing of one is open, then deletes it. Everything that is remembered is in
//! its tombstone, so whoever takes the next step goes on there.

use std::sync::Arc;

use redial_engine::call::CallEvent;
use redial_proto::{CallId, Code, OpenWork, Tenant};
use redial_records::{Effect, Transition};
use redial_store::{Phase, StoreError, Tombstone};
use redial_telemetry::set_aside;
use tokio_util::sync::CancellationToken;

use crate::{context::Context, effects, transitions, wait::carry_out};

/// A dispatcher that takes a step for longer is dead, or its step comes to nothing.
const LEASE_MS: u64 = 15_000;
/// Rows that one step deletes at first.
const ROWS: u32 = 1_000;
/// Open tasks that are cancelled at once.
const TASKS: u32 = 100;
/// Calls that one statement looks at.
const CALLS: u32 = 1_000;
/// Between two looks at what has to end first.
const PAUSE_MS: u64 = 500;
/// Between two looks at statements that are about to end.
const SHORT_PAUSE_MS: u64 = 20;

pub(crate) async fn run(context: Arc<Context>, shutdown: CancellationToken) {
    carry_out(&shutdown, &context.erasures, || take_step(&context)).await;
}

/// Takes a step; false if none is due.
async fn take_step(context: &Context) -> bool {
    match context.store.take_erasure(LEASE_MS).await {
        Ok(Some((erasure, Ok(tombstone)))) => {
            if let Err(error) = Box::pin(step(context, &tombstone)).await {
                tracing::warn!(%erasure, %error, "Failed to carry out a step of an erasure; it is tried again");
            }
            true
        }
        Ok(Some((erasure, Err(why)))) => {
            set_aside("erasures", 1, &erasure, &why);
            true
        }
        Ok(None) => false,
        Err(error) => {
            tracing::warn!(%error, "Failed to look for erasures");
            false
        }
    }
}

async fn step(context: &Context, tombstone: &Tombstone) -> Result<(), StoreError> {
    let (store, erasure) = (&context.store, tombstone.id);
    if tombstone.phase == Phase::Open {
        return match look(context, tombstone).await? {
            Look::Clear(last) => store.looked_at(tombstone, last).await,
            Look::Waits { ms } => store.look_again(tombstone, ms).await,
            Look::Refused(OpenWork { tasks, calls }) => {
                tracing::info!(%erasure, tasks, calls, "Gave up an erasure because of work that has not ended");
                store.give_up_erasure(erasure, Code::WrongState).await
            }
        };
    }
    let mut rows = ROWS;
    loop {
        match store.erase_step(erasure, rows).await {
            Ok(done) => {
                if let Some(Tombstone { phase: Phase::Done, counts, .. }) = done {
                    tracing::info!(%erasure, tasks = counts.tasks, calls = counts.calls, "Erasure finished");
                }
                return Ok(());
            }
            Err(error) if error.is_timeout() && rows > 1 => {
                rows /= 2;
                tracing::debug!(%error, rows, "A step of an erasure took too long; trying half of it");
            }
            Err(error) => return Err(error),
        }
    }
}

enum Look {
    /// Nothing is open up to this call; `None`: nothing at all.
    Clear(Option<CallId>),
    /// Something has to end first: look again after this, in ms.
    Waits { ms: u64 },
    /// Something has not ended, and is not to be cancelled.
    Refused(OpenWork),
}

async fn look(context: &Context, at: &Tombstone) -> Result<Look, StoreError> {
    let store = &context.store;
    if !store.writers_are_gone(at.until).await? {
        return Ok(Look::Waits { ms: SHORT_PAUSE_MS });
    }
    let tasks = store.open_tasks(at, TASKS).await?;
    let calls = store.open_calls(at, CALLS).await?;
    if tasks.is_empty() && calls.open.is_empty() {
        return Ok(Look::Clear(calls.last));
    }
    if !at.cancels {
        return Ok(Look::Refused(counted(tasks.len(), calls.open.len())));
    }
    let (tenant, mut woken) = (Tenant::on_record(&at.scope.tenant), Vec::new());
    for task in tasks {
        if !task.is_asked {
            store.of(&tenant).cancel_task(task.task).await?;
        }
        woken.push(Effect::WakeTask(task.task));
    }
    effects::carry_out(context, woken).await;
    cancel(context, &calls.open).await?;
    Ok(Look::Waits { ms: PAUSE_MS })
}

pub(super) async fn open_work(context: &Context, at: &Tombstone) -> Result<OpenWork, StoreError> {
    if at.phase != Phase::Open {
        return Ok(OpenWork::default());
    }
    let tasks = context.store.open_tasks(at, TASKS).await?;
    let calls = context.store.open_calls(at, CALLS).await?;
    Ok(counted(tasks.len(), calls.open.len()))
}

fn counted(tasks: usize, calls: usize) -> OpenWork {
    let count = |found| u64::try_from(found).unwrap_or(u64::MAX);
    OpenWork { tasks: count(tasks), calls: count(calls) }
}

/// Asks for all these calls to be stopped. What changes meanwhile is asked again at the next look.
async fn cancel(context: &Context, calls: &[CallId]) -> Result<(), StoreError> {
    let loaded = context.store.load(calls).await?;
    let plan = |call| transitions::plan(context, call, &CallEvent::Cancel);
    let cancelled: Vec<Transition> = loaded.iter().filter_map(plan).collect();
    let (_, effects) = transitions::write(context, &cancelled).await?;
    effects::carry_out(context, effects).await;
    Ok(())
}
