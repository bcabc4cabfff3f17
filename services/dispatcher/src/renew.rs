//! Heartbeats of workers: extends their leases, tells them what is lost and what was cancelled.

use std::{collections::HashMap, sync::Arc};

use redial_proto::{ApiError, JobRef, RenewReply, RenewRequest, subjects};
use redial_queue::QueueError;
use redial_store::WorkerBeat;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{error::store_failed, serve, shared::Shared};

pub(crate) async fn start(
    shared: &Arc<Shared>,
    tasks: &TaskTracker,
    shutdown: &CancellationToken,
) -> Result<(), QueueError> {
    let dispatcher = shared.clone();
    serve::each(&shared.queue, subjects::RENEW, tasks, shutdown, move |request| {
        let dispatcher = dispatcher.clone();
        async move { renew(&dispatcher, request).await }
    })
    .await
}

async fn renew(shared: &Shared, request: RenewRequest) -> Result<RenewReply, ApiError> {
    let beat = WorkerBeat {
        worker: &request.worker,
        slots: request.slots,
        running: u32::try_from(request.running.len()).unwrap_or(u32::MAX),
        draining: request.draining,
    };
    let known = shared.store.beat(&beat).await.map_err(|error| store_failed(&error))?;
    let held = match request.running.as_slice() {
        [] => Vec::new(),
        running => {
            let lease_ms = shared.config.lease_ms();
            shared.store.renew(&request.worker, running, lease_ms).await.map_err(|error| store_failed(&error))?
        }
    };
    let held: HashMap<JobRef, bool> = held.into_iter().collect();
    Ok(RenewReply {
        lost: request.running.iter().filter(|job| !held.contains_key(job)).copied().collect(),
        cancelled: held.iter().filter(|(_, cancelled)| **cancelled).map(|(job, _)| *job).collect(),
        announce: !known,
    })
}
