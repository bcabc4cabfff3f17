//! Takes back attempts that a worker will not finish; they do not count.

use std::{collections::HashSet, sync::Arc};

use redial_engine::Event;
use redial_proto::{ApiError, GrantRef, ReleaseReply, ReleaseRequest, WorkerId};
use redial_store::Change;

use crate::{context::Context, decide, effects, error::store_failed};

pub(crate) async fn answer(context: Arc<Context>, request: ReleaseRequest) -> Result<ReleaseReply, ApiError> {
    let released = try_release(&context, &request.worker, &request.jobs).await?;
    Ok(ReleaseReply { released })
}

/// Takes attempts back for a worker that cannot be answered; a failure is left to the end of the leases.
pub(crate) async fn release(context: &Context, worker: &WorkerId, jobs: &[GrantRef]) {
    if let Err(error) = try_release(context, worker, jobs).await {
        tracing::warn!(%error, jobs = jobs.len(), "attempts could not be released; their leases will expire");
    }
}

async fn try_release(context: &Context, worker: &WorkerId, jobs: &[GrantRef]) -> Result<u32, ApiError> {
    // First, so that a copy of the claim that comes any later than this is refused.
    context.store.give_up(jobs).await.map_err(|error| store_failed(&error))?;
    let mut released = 0;
    // A call may change between the look and the write (its user cancels it): what the guard let through is decided
    // anew, a few times at most, because a call has few states to move through.
    for _ in 0..10 {
        let changes = decide_all(context, worker, jobs).await?;
        if changes.is_empty() {
            break;
        }
        let applied = context.store.apply(&changes).await.map_err(|error| store_failed(&error))?;
        released += u32::try_from(applied.len()).unwrap_or(u32::MAX);
        effects::carry_out(context, decide::effects(context, &changes, applied)).await;
    }
    Ok(released)
}

/// What becomes of those of these attempts that the worker still holds.
async fn decide_all(context: &Context, worker: &WorkerId, jobs: &[GrantRef]) -> Result<Vec<Change>, ApiError> {
    let ids: Vec<_> = jobs.iter().map(|job| job.call).collect();
    let rows = context.store.load(&ids).await.map_err(|error| store_failed(&error))?;
    let jobs: HashSet<GrantRef> = jobs.iter().copied().collect();
    let held = rows.iter().filter(|row| {
        let grant = row.claim.map(|claim| GrantRef { call: row.id, attempt: row.attempt, claim });
        row.worker.as_ref() == Some(worker) && grant.is_some_and(|grant| jobs.contains(&grant))
    });
    Ok(held.filter_map(|row| decide::change(&context.registry, row, &Event::Released, None)).collect())
}
