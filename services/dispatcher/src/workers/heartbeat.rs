//! Takes heartbeats of workers: extends their leases, and answers which attempts are lost and which were cancelled.

use std::{collections::HashMap, sync::Arc};

use chrono::Datelike as _;
use redial_proto::{ApiError, Heartbeat, HeartbeatReply, JobRef, WorkerCaller, limits::YEARS};
use redial_store::WorkerHeartbeat;

use crate::{context::Context, error::store_failed, serve::check_own};

pub(crate) async fn heartbeat(
    context: Arc<Context>,
    caller: WorkerCaller,
    request: Heartbeat,
) -> Result<HeartbeatReply, ApiError> {
    check_own(&caller, &request.worker)?;
    let after = request.after.filter(|at| YEARS.contains(&at.year()));
    let beat = WorkerHeartbeat {
        worker: &request.worker,
        slots: request.slots,
        running: u32::try_from(request.running.len()).unwrap_or(u32::MAX),
        draining: request.draining,
        lease_ms: context.config.live_ms(),
        after: after.filter(|_| request.running.is_empty()),
    };
    // First, so that a worker stays live while others have locked what it runs.
    let at = context.store.heartbeat(&beat).await.map_err(|error| store_failed(&error))?;
    let held = match request.running.as_slice() {
        [] => Vec::new(),
        running => {
            let lease_ms = context.config.lease_ms();
            let renewed = context.store.renew(&request.worker, running, after, lease_ms).await;
            renewed.map_err(|error| store_failed(&error))?
        }
    };
    let held: HashMap<JobRef, bool> = held.into_iter().collect();
    Ok(HeartbeatReply {
        lost: request.running.iter().filter(|job| !held.contains_key(job)).copied().collect(),
        cancelled: held.iter().filter(|(_, cancelled)| **cancelled).map(|(job, _)| *job).collect(),
        register: at.is_none(),
        at,
    })
}
