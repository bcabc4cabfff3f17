//! Claim: asks a dispatcher for permission to run jobs, and starts those that it grants.

use std::{collections::HashMap, sync::Arc, time::Duration};

use redial_proto::{
    ClaimId, ClaimReply, ClaimRequest, GrantRef, JobRef,
    limits::{MAX_CLAIM, MAX_INLINE},
    subjects::ControlVerb,
};
use redial_queue::QueueError;
use tokio::time::Instant;

use crate::{
    attempts::Lease,
    fetch, pause,
    pool::{Pulled, PulledJob},
    release::release,
    run,
    state::{WorkerState, margin},
};

/// Bytes of arguments that one claim may request: the reply must fit into one message.
const MAX_BYTES: usize = 700 * 1024;
/// The worker stops asking after this long. NATS delivers the jobs again 30 s after it delivered them first.
const GIVE_UP: Duration = Duration::from_secs(20);

/// Splits jobs into claims whose replies fit into one message each. What goes back goes with the first one.
pub(crate) fn batches(pulled: Pulled) -> Vec<Pulled> {
    let mut batches: Vec<Pulled> = Vec::new();
    let mut bytes = 0;
    for job in pulled.jobs {
        // Larger ones are fetched apart.
        let size = usize::try_from(job.job.bytes).ok().filter(|bytes| *bytes <= MAX_INLINE).unwrap_or(0);
        match batches.last_mut() {
            Some(batch) if fits(batch.jobs.len(), bytes, size) => {
                bytes += size;
                batch.jobs.push(job);
            }
            _ => {
                bytes = size;
                batches.push(Pulled { jobs: vec![job], returned: Vec::new() });
            }
        }
    }
    if let Some(first) = batches.first_mut() {
        first.returned = pulled.returned;
    }
    batches
}

fn fits(count: usize, bytes: usize, more: usize) -> bool {
    count < MAX_CLAIM && bytes.saturating_add(more) <= MAX_BYTES
}

/// What a dispatcher granted of a claim.
struct ClaimAnswer {
    claim: ClaimId,
    reply: ClaimReply,
    /// When the first request of the claim was sent.
    sent: Instant,
    /// How often it failed before; copies of those requests may still wait for a dispatcher.
    failures: u32,
}

/// Claims jobs, and starts the granted ones or gives the claim back.
pub(crate) async fn claim(state: Arc<WorkerState>, pulled: Pulled) {
    let claim = ClaimId::generate();
    let request = ClaimRequest {
        claim,
        worker: state.id.clone(),
        jobs: pulled.jobs.iter().map(PulledJob::claim_job).collect(),
        returned: pulled.returned.iter().map(|(pack, _)| pack.clone()).collect(),
    };
    match request_grants(&state, request).await {
        Some(answer) => start_granted(&state, pulled, answer).await,
        None => give_up(&state, pulled, claim).await,
    }
}

/// Repeats the request until a dispatcher replies. The claim id stays the same, so a dispatcher that granted the claim
/// before grants it again. Only the first request gives jobs back: each copy of it would publish them once more, and during an outage
/// there are many.
async fn request_grants(state: &WorkerState, mut request: ClaimRequest) -> Option<ClaimAnswer> {
    let (sent, claim, mut failures) = (Instant::now(), request.claim, 0);
    loop {
        let error = match state.request(ControlVerb::Claim, &request, failures).await {
            Ok(reply) => return Some(ClaimAnswer { claim, reply, sent, failures }),
            Err(error) => error,
        };
        failures += 1;
        request.returned.clear();
        tracing::warn!(claim = %request.claim, jobs = request.jobs.len(), failures, %error, "Failed to claim jobs");
        let permanent = matches!(&error, QueueError::Api(error) if !error.code.is_retryable());
        if permanent || state.draining.is_cancelled() || sent.elapsed() >= GIVE_UP {
            return None;
        }
        tokio::time::sleep(pause::after(failures, state.pause_cap())).await;
    }
}

/// Starts what was granted, releases late grants, and acknowledges all jobs: the leases guard them now.
async fn start_granted(state: &Arc<WorkerState>, pulled: Pulled, answer: ClaimAnswer) {
    let ClaimAnswer { claim, reply, sent, failures } = answer;
    state.set_lease(reply.lease_ms);
    let duration = Duration::from_millis(reply.lease_ms);
    // The lease may have begun with the first request, whose reply was lost.
    let expires_at = sent + duration.saturating_sub(margin(duration));
    let mut permits = HashMap::with_capacity(pulled.jobs.len());
    let mut messages = Vec::with_capacity(pulled.jobs.len());
    for (_, message) in pulled.returned {
        // Without an answer to the first request it is not known whether they were published again. Twice is harmless.
        if failures > 0 { message.hand_back().await } else { messages.push(message) }
    }
    for job in pulled.jobs {
        permits.insert(job.job_ref(), job.permit);
        messages.push(job.message);
    }
    let mut too_late = Vec::new();
    for grant in reply.grants {
        let JobRef { call, attempt } = grant.job_ref();
        let timeout = Duration::from_millis(grant.timeout_ms);
        let fetch_until = grant.apart.then(|| sent + fetch::LONGEST);
        let granted = GrantRef { call, attempt, claim };
        let lease = Lease { grant: granted, effect: grant.effect, expires_at, timeout, fetch_until };
        let permit = permits.remove(&grant.job_ref()).filter(|_| may_start(state, expires_at));
        if !permit.is_some_and(|permit| run::start(state, grant, lease, permit)) {
            too_late.push(lease.grant);
        }
    }
    if failures > 0 {
        let refused = permits.keys().map(|&JobRef { call, attempt }| GrantRef { call, attempt, claim });
        state.disowned.add(refused, state.lease());
    }
    drop(permits);
    for message in messages {
        message.claimed().await;
    }
    release(state, too_late).await;
}

fn may_start(state: &WorkerState, expires_at: Instant) -> bool {
    !state.draining.is_cancelled() && Instant::now() < expires_at
}

/// No dispatcher replied. One may have granted the claim nevertheless, so the worker releases it: nothing was started.
async fn give_up(state: &Arc<WorkerState>, pulled: Pulled, claim: ClaimId) {
    let (Pulled { jobs, returned }, hand_back) = (pulled, state.draining.is_cancelled());
    tracing::warn!(%claim, jobs = jobs.len(), "Gave up a claim");
    let grants = jobs.iter().map(|job| GrantRef { call: job.job.call, attempt: job.job.attempt, claim });
    let grants: Vec<GrantRef> = grants.collect();
    state.disowned.add(grants.iter().copied(), state.lease());
    let of_returned = returned.into_iter().map(|(_, message)| message);
    // Returns the permits before the release, which may take long.
    let messages: Vec<_> = jobs.into_iter().map(|job| job.message).chain(of_returned).collect();
    for message in messages {
        if hand_back { message.hand_back().await } else { message.unclaimed().await }
    }
    release(state, grants).await;
}
