//! Takes back attempts that a worker will not finish; they do not count.

use std::{collections::HashSet, sync::Arc};

use redial_engine::call::CallEvent;
use redial_proto::{ApiError, Code, GrantRef, ReleaseReply, ReleaseRequest, WorkerCaller, WorkerId, limits};
use redial_records::Transition;

use crate::{
    context::Context,
    effects,
    error::store_failed,
    serve::check_own,
    transitions::{self, MAX_TRIES},
};

pub(crate) async fn answer(
    context: Arc<Context>,
    caller: WorkerCaller,
    request: ReleaseRequest,
) -> Result<ReleaseReply, ApiError> {
    check_own(&caller, &request.worker)?;
    if request.jobs.len() > limits::MAX_CLAIM {
        let message = format!("jobs holds {} attempts; allowed: {}", request.jobs.len(), limits::MAX_CLAIM);
        return Err(ApiError::new(Code::TooLarge, message));
    }
    let released = try_release(&context, &request.worker, &request.jobs).await?;
    Ok(ReleaseReply { released })
}

/// Takes attempts back for a worker that cannot be answered; a failure is left to the end of the leases.
pub(crate) async fn release(context: &Context, worker: &WorkerId, jobs: &[GrantRef]) {
    if let Err(error) = try_release(context, worker, jobs).await {
        tracing::warn!(%error, jobs = jobs.len(), "Failed to release attempts; their leases will expire");
    }
}

async fn try_release(context: &Context, worker: &WorkerId, jobs: &[GrantRef]) -> Result<u32, ApiError> {
    let (mut released, mut locked) = (0, HashSet::new());
    for _ in 0..MAX_TRIES {
        let mut transitions = plan_all(context, worker, jobs).await?;
        transitions.retain(|one| !locked.contains(&one.call));
        if transitions.is_empty() {
            break;
        }
        let written = transitions::write_unlocked(context, &transitions).await;
        let (applied, effects) = written.map_err(|error| store_failed(&error))?;
        released += u32::try_from(applied.facts.len()).unwrap_or(u32::MAX);
        locked.extend(applied.locked);
        effects::carry_out(context, effects).await;
    }
    if !locked.is_empty() {
        let message = format!("{} calls are locked in the database, the others are released; try again", locked.len());
        return Err(ApiError::new(Code::Unavailable, message));
    }
    Ok(released)
}

/// Plans the ends of those of these attempts that the worker still holds.
async fn plan_all(context: &Context, worker: &WorkerId, jobs: &[GrantRef]) -> Result<Vec<Transition>, ApiError> {
    let ids: Vec<_> = jobs.iter().map(|job| job.call).collect();
    let calls = context.store.load(&ids).await.map_err(|error| store_failed(&error))?;
    let jobs: HashSet<GrantRef> = jobs.iter().copied().collect();
    let held = calls
        .iter()
        .filter(|call| call.worker.as_ref() == Some(worker) && call.grant().is_some_and(|grant| jobs.contains(&grant)));
    Ok(held.filter_map(|call| transitions::plan(context, call, &CallEvent::Released)).collect())
}
