//! Takes heartbeats of workers: extends their leases, takes back grants that the database lost, and answers which attempts are lost and
//! which were cancelled.

use std::{collections::HashSet, sync::Arc};

use chrono::Datelike as _;
use redial_proto::{ApiError, GrantRef, Heartbeat, HeartbeatReply, WorkerCaller, limits};
use redial_store::{Held, WorkerHeartbeat};

use crate::{context::Context, error::store_failed, serve::check_own};

pub(crate) async fn heartbeat(
    context: Arc<Context>,
    caller: WorkerCaller,
    request: Heartbeat,
) -> Result<HeartbeatReply, ApiError> {
    check_own(&caller, &request.worker)?;
    let beat = WorkerHeartbeat {
        worker: &request.worker,
        slots: request.slots.min(limits::MAX_SLOTS),
        running: u32::try_from(request.running.len()).unwrap_or(u32::MAX),
        draining: request.draining,
        lease_ms: context.config.live_ms(),
    };
    // First, so that a worker stays live while others have locked what it runs.
    let at = context.store.heartbeat(&beat).await.map_err(|error| store_failed(&error))?;
    let lease_ms = context.config.lease_ms();
    let held = match request.running.as_slice() {
        [] => Vec::new(),
        running => {
            let held_at = request.held_at.filter(|at| limits::YEARS.contains(&at.year()));
            let renewed = context.store.renew(&request.worker, running, held_at, lease_ms).await;
            renewed.map_err(|error| store_failed(&error))?
        }
    };
    let known: HashSet<GrantRef> = held.iter().map(|held| held.grant).collect();
    let those = |which: fn(&Held) -> bool| held.iter().filter(|held| which(held)).map(|held| held.grant).collect();
    Ok(HeartbeatReply {
        lost: request.running.iter().filter(|grant| !known.contains(grant)).copied().collect(),
        cancelled: those(|held| held.cancelled),
        locked: those(|held| !held.renewed),
        register: at.is_none(),
        at,
        lease_ms,
    })
}
