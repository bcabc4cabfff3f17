//! Claim: asks for the right to run jobs; runs what was granted.

use std::{collections::HashMap, sync::Arc, time::Duration};

use redial_proto::{ClaimId, ClaimReply, ClaimRequest, GrantRef, JobRef, limits::MAX_CLAIM, subjects};
use redial_queue::QueueError;
use tokio::time::Instant;

use crate::{
    held::Right,
    pause,
    pull::Pulled,
    release::release,
    run,
    shared::{Shared, margin},
};

/// Bytes of arguments that one claim may ask for: the reply must fit one message.
const MAX_BYTES: usize = 700 * 1024;
/// After this long the jobs are dropped; NATS delivers them again, 30 s after the first time.
const GIVE_UP: Duration = Duration::from_secs(20);

/// Cuts jobs into claims whose replies fit one message.
pub(crate) fn batches(jobs: Vec<Pulled>) -> Vec<Vec<Pulled>> {
    let mut batches: Vec<Vec<Pulled>> = Vec::new();
    let mut bytes = 0;
    for pulled in jobs {
        let size = usize::try_from(pulled.job.bytes).unwrap_or(usize::MAX);
        match batches.last_mut() {
            Some(batch) if fits(batch.len(), bytes, size) => {
                bytes += size;
                batch.push(pulled);
            }
            _ => {
                bytes = size;
                batches.push(vec![pulled]);
            }
        }
    }
    batches
}

fn fits(count: usize, bytes: usize, more: usize) -> bool {
    count < MAX_CLAIM && bytes.saturating_add(more) <= MAX_BYTES
}

/// One claim, from the question to the running tools.
pub(crate) async fn claim(shared: Arc<Shared>, jobs: Vec<Pulled>) {
    let request = ClaimRequest {
        claim: ClaimId::generate(),
        worker: shared.id.clone(),
        jobs: jobs.iter().map(Pulled::job_ref).collect(),
    };
    let sent = Instant::now();
    match ask(&shared, &request, sent).await {
        Some(reply) => settle(&shared, jobs, (request.claim, reply), sent).await,
        None => give_up(&shared, jobs, request.claim).await,
    }
}

/// Asks until there is an answer, always with the same claim id, so that a lost answer costs nothing.
async fn ask(shared: &Shared, request: &ClaimRequest, sent: Instant) -> Option<ClaimReply> {
    let mut failures = 0;
    loop {
        let error = match shared.ask(subjects::CLAIM, request, failures).await {
            Ok(reply) => return Some(reply),
            Err(error) => error,
        };
        failures += 1;
        tracing::warn!(claim = %request.claim, jobs = request.jobs.len(), failures, "a claim failed: {error}");
        let hopeless = matches!(&error, QueueError::Api(error) if !error.code.is_retryable());
        if hopeless || shared.draining.is_cancelled() || sent.elapsed() >= GIVE_UP {
            return None;
        }
        tokio::time::sleep(pause::after(failures, shared.pause_cap())).await;
    }
}

/// Runs what was granted, gives back what it cannot run any more, and answers all jobs: the lease guards them now.
async fn settle(shared: &Arc<Shared>, jobs: Vec<Pulled>, (claim, reply): (ClaimId, ClaimReply), sent: Instant) {
    shared.set_lease(reply.lease_ms);
    let length = Duration::from_millis(reply.lease_ms);
    // Counted from the first question: the lease may have begun then.
    let lease = sent + length.saturating_sub(margin(length));
    let mut slots = HashMap::with_capacity(jobs.len());
    let mut deliveries = Vec::with_capacity(jobs.len());
    for pulled in jobs {
        let job = pulled.job_ref();
        slots.insert(job, pulled.slot);
        deliveries.push(pulled.delivery);
    }
    let mut unwanted = Vec::new();
    for grant in reply.grants {
        let JobRef { call, attempt } = grant.job_ref();
        let right = Right { grant: GrantRef { call, attempt, claim }, effect: grant.effect, lease };
        match slots.remove(&grant.job_ref()) {
            Some(slot) if may_start(shared, lease) => run::start(shared, grant, right, slot),
            _ => unwanted.push(right.grant),
        }
    }
    for delivery in deliveries {
        delivery.ack().await;
    }
    release(shared, unwanted).await;
}

fn may_start(shared: &Shared, lease: Instant) -> bool {
    !shared.draining.is_cancelled() && Instant::now() < lease
}

/// Nobody answered. The claim may have been granted all the same, so it is given back: nothing was started.
async fn give_up(shared: &Arc<Shared>, jobs: Vec<Pulled>, claim: ClaimId) {
    if shared.draining.is_cancelled() {
        for pulled in &jobs {
            pulled.delivery.nak(Duration::ZERO).await;
        }
    }
    tracing::warn!(jobs = jobs.len(), "a claim was given up");
    let grants = jobs.iter().map(|pulled| GrantRef { call: pulled.job.call, attempt: pulled.job.attempt, claim });
    let grants = grants.collect();
    // The slots are free again while the release still tries.
    drop(jobs);
    release(shared, grants).await;
}
