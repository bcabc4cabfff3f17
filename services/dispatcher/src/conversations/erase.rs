//! Works on an erasure: makes sure that nothing of it is open, then deletes it step by step. Everything that is remembered
//! is in its tombstone, so whoever continues it does the same.

use std::time::{Duration, Instant};

use redial_engine::call::CallEvent;
use redial_proto::{CallId, Code, OpenWork, Tenant};
use redial_records::{Effect, Transition};
use redial_store::{Phase, StoreError, Tombstone};
use tokio::time::sleep;

use crate::{context::Context, effects, transitions};

/// Rows that one step deletes at first.
const ROWS: u32 = 1_000;
/// Open tasks that are cancelled at once.
const TASKS: u32 = 100;
/// Calls that one statement looks at.
const CALLS: u32 = 1_000;
/// Between two looks at what has to end first.
const PAUSE: Duration = Duration::from_millis(500);
/// Between two looks at statements that are about to end.
const SHORT_PAUSE: Duration = Duration::from_millis(20);

/// How far an erasure came.
pub(super) enum Outcome {
    /// Everything is erased.
    Erased(Tombstone),
    /// The time was over.
    Working(Tombstone, OpenWork),
    /// Something has not ended, and is not to be cancelled. Nothing was erased.
    Refused(OpenWork),
    /// Another dispatcher refused it.
    GivenUp,
}

/// Works on an erasure until then. A step that takes too long is divided.
pub(super) async fn erase(context: &Context, mut tombstone: Tombstone, until: Instant) -> Result<Outcome, StoreError> {
    let (mut rows, mut open) = (ROWS, OpenWork::default());
    loop {
        if tombstone.phase == Phase::Done {
            let (erasure, counts) = (tombstone.id, tombstone.counts);
            tracing::info!(%erasure, tasks = counts.tasks, calls = counts.calls, "Erasure finished");
            return Ok(Outcome::Erased(tombstone));
        }
        if Instant::now() >= until {
            return Ok(Outcome::Working(tombstone, open));
        }
        if tombstone.phase == Phase::Open {
            match look(context, &tombstone).await? {
                Look::Clear(last) => context.store.looked_at(&tombstone, last).await?,
                Look::Waits(found) => {
                    open = found;
                    sleep(if found == OpenWork::default() { SHORT_PAUSE } else { PAUSE }).await;
                }
                Look::Refused(found) => {
                    context.store.give_up_erasure(tombstone.id, Code::WrongState).await?;
                    return Ok(Outcome::Refused(found));
                }
            }
        }
        match context.store.erase_step(tombstone.id, rows).await {
            Ok(Some(next)) => tombstone = next,
            Ok(None) => return Ok(Outcome::GivenUp),
            Err(error) if error.is_timeout() && rows > 1 => {
                rows /= 2;
                tracing::debug!(%error, rows, "A step of an erasure took too long; trying half of it");
            }
            Err(error) => return Err(error),
        }
    }
}

/// What a look for open work found.
enum Look {
    /// Nothing is open as far as this call; `None`: nothing at all.
    Clear(Option<CallId>),
    /// Something has to end first.
    Waits(OpenWork),
    Refused(OpenWork),
}

async fn look(context: &Context, at: &Tombstone) -> Result<Look, StoreError> {
    let store = &context.store;
    if !store.writers_are_gone(at.until).await? {
        return Ok(Look::Waits(OpenWork::default()));
    }
    let tasks = store.open_tasks(&at.scope, at.until, TASKS).await?;
    let calls = store.open_calls(at, CALLS).await?;
    if tasks.is_empty() && calls.open.is_empty() {
        return Ok(Look::Clear(calls.last));
    }
    let count = |found: usize| u64::try_from(found).unwrap_or(u64::MAX);
    let open = OpenWork { tasks: count(tasks.len()), calls: count(calls.open.len()) };
    if !at.cancels {
        return Ok(Look::Refused(open));
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
    Ok(Look::Waits(open))
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
