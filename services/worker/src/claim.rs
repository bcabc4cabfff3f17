//! Claim: asks a dispatcher for permission to run jobs, and starts those that it grants.

use std::{collections::HashMap, mem, sync::Arc, time::Duration};

use redial_proto::{
    ClaimId, ClaimReply, ClaimRequest, GrantRef,
    limits::{MAX_CLAIM, MAX_INLINE},
    subjects::ControlVerb,
};
use tokio::time::Instant;

use crate::{
    attempts::Lease,
    fetch,
    heard::ClaimTime,
    pool::{Pulled, PulledJob},
    release::release,
    run,
    state::{WorkerState, is_permanent, margin},
};

/// Bytes of arguments that one claim may request: the reply must fit into one message.
const MAX_BYTES: usize = 700 * 1024;
/// A claim that waits in Postgres for the lock of a row, for 4 s at most, is granted so long after its time.
const LOCKED: Duration = Duration::from_secs(5);

/// Splits jobs into claims whose replies fit into one message each. The rest of a message goes back with the claim of its first job: a
/// dispatcher publishes it again at once if something of that claim is granted.
pub(crate) fn batches(jobs: Vec<PulledJob>) -> Vec<Pulled> {
    let (mut batches, mut batch, mut bytes) = (Vec::new(), Pulled::default(), 0);
    for mut job in jobs {
        // Larger ones are fetched apart.
        let size = usize::try_from(job.job.bytes).ok().filter(|bytes| *bytes <= MAX_INLINE).unwrap_or(0);
        if !fits(batch.jobs.len(), bytes, size) {
            batches.push(mem::take(&mut batch));
            bytes = 0;
        }
        bytes += size;
        batch.returned.extend(job.rest.take().map(|rest| (rest, job.message.clone())));
        batch.jobs.push(job);
    }
    if !batch.jobs.is_empty() {
        batches.push(batch);
    }
    batches
}

fn fits(count: usize, bytes: usize, more: usize) -> bool {
    count < MAX_CLAIM && bytes.saturating_add(more) <= MAX_BYTES
}

/// A claim under way.
#[derive(Clone, Copy)]
struct Claim {
    id: ClaimId,
    time: ClaimTime,
    sent: Instant,
}

/// Claims jobs, and starts the granted ones or gives the others back to the stream.
pub(crate) async fn claim(state: Arc<WorkerState>, pulled: Pulled) {
    let Some(time) = state.claim_time() else { return give_back(pulled).await };
    let claim = Claim { id: ClaimId::generate(), time, sent: Instant::now() };
    let pulled = without_held(&state, pulled, claim.id).await;
    if pulled.jobs.is_empty() && pulled.returned.is_empty() {
        return;
    }
    let grants: Vec<GrantRef> = pulled.jobs.iter().map(|job| job.job_ref().granted_to(claim.id)).collect();
    let (reply, failures) = ask(&state, claim, &pulled).await;
    match reply {
        Some(reply) => start_granted(&state, pulled, claim, reply, failures).await,
        None => give_back(pulled).await,
    }
    if failures > 0 {
        // A copy of the request may be granted until then, also what another copy was not granted, and nobody would run it.
        tokio::time::sleep_until(time.over_at).await;
        release_unheld(&state, &grants).await;
        // A worker that ends does not wait.
        state.draining.run_until_cancelled(tokio::time::sleep_until(time.over_at + LOCKED)).await;
        release_unheld(&state, &grants).await;
    }
}

/// Acknowledges the jobs of attempts that the worker holds already. Either they are old copies, or the database has lost the grants: it
/// takes them back from a heartbeat, and must not grant the attempts to another claim before.
async fn without_held(state: &WorkerState, mut pulled: Pulled, claim: ClaimId) -> Pulled {
    let (held, jobs): (Vec<_>, Vec<_>) =
        pulled.jobs.into_iter().partition(|job| state.attempts.holds_attempt(job.job_ref().granted_to(claim)));
    if !held.is_empty() {
        state.heartbeat_now.notify_one();
    }
    for PulledJob { message, .. } in held {
        message.claimed().await;
    }
    pulled.jobs = jobs;
    pulled
}

/// Releases those of these grants that the worker does not run.
async fn release_unheld(state: &WorkerState, grants: &[GrantRef]) {
    release(state, grants.iter().copied().filter(|grant| !state.attempts.holds(*grant)).collect()).await;
}

/// Repeats the request until a dispatcher replies, or until nothing is granted any more; says how often it failed. The claim's id stays
/// the same, so a dispatcher that granted the claim before grants it again. Only the first request gives jobs back: each copy of it
/// would publish them once more, and during an outage there are many.
async fn ask(state: &WorkerState, claim: Claim, pulled: &Pulled) -> (Option<ClaimReply>, u32) {
    let mut request = ClaimRequest {
        claim: claim.id,
        worker: state.id.clone(),
        not_after: claim.time.not_after,
        jobs: pulled.jobs.iter().map(PulledJob::claim_job).collect(),
        returned: pulled.returned.iter().map(|(pack, _)| pack.clone()).collect(),
    };
    let mut failures = 0;
    loop {
        let error = match state.request(ControlVerb::Claim, &request, failures).await {
            Ok(reply) => return (Some(reply), failures),
            Err(error) => error,
        };
        failures += 1;
        request.returned.clear();
        tracing::warn!(claim = %request.claim, jobs = request.jobs.len(), failures, %error, "Failed to claim jobs");
        if is_permanent(&error) || Instant::now() >= claim.time.over_at {
            return (None, failures);
        }
        tokio::time::sleep(state.pause(failures)).await;
    }
}

/// Starts what was granted, and releases what comes too late. The leases guard the jobs now, whose messages are acknowledged; those that
/// were perhaps refused only because their time was over go back to the stream.
async fn start_granted(state: &Arc<WorkerState>, pulled: Pulled, claim: Claim, reply: ClaimReply, failures: u32) {
    let in_time = Instant::now() < claim.time.lasts_until;
    state.set_lease(reply.lease_ms);
    let duration = Duration::from_millis(reply.lease_ms);
    // The lease may have begun with the first request, whose reply was lost.
    let expires_at = claim.sent + duration.saturating_sub(margin(duration));
    let mut permits = HashMap::with_capacity(pulled.jobs.len());
    let (mut done, mut back) = (Vec::with_capacity(pulled.jobs.len()), Vec::new());
    for (_, message) in pulled.returned {
        // Without an answer to the first request it is not known whether they were published again. Twice is harmless.
        if failures > 0 { &mut back } else { &mut done }.push(message);
    }
    let mut messages = Vec::with_capacity(pulled.jobs.len());
    for job in pulled.jobs {
        let named = job.job_ref();
        permits.insert(named, job.permit);
        messages.push((named, job.message));
    }
    let mut too_late = Vec::new();
    for grant in reply.grants {
        let granted = grant.job_ref().granted_to(claim.id);
        let timeout = Duration::from_millis(grant.timeout_ms);
        let fetch_until = grant.apart.then(|| claim.sent + fetch::LONGEST);
        let lease = Lease { grant: granted, effect: grant.effect, expires_at, timeout, fetch_until };
        let permit = permits.remove(&grant.job_ref()).filter(|_| may_start(state, expires_at));
        if !permit.is_some_and(|permit| run::start(state, grant, lease, permit)) {
            too_late.push(granted);
        }
    }
    for (job, message) in messages {
        let is_settled = in_time || !permits.contains_key(&job);
        if is_settled { &mut done } else { &mut back }.push(message);
    }
    drop(permits);
    for message in done {
        message.claimed().await;
    }
    for message in back {
        message.hand_back().await;
    }
    release(state, too_late).await;
}

fn may_start(state: &WorkerState, expires_at: Instant) -> bool {
    !state.draining.is_cancelled() && Instant::now() < expires_at
}

/// Gives back jobs of which nothing was started, because no dispatcher answers. Returns the permits first.
async fn give_back(Pulled { jobs, returned }: Pulled) {
    let of_returned = returned.into_iter().map(|(_, message)| message);
    let messages: Vec<_> = jobs.into_iter().map(|job| job.message).chain(of_returned).collect();
    for message in messages {
        message.hand_back().await;
    }
}
