//! Publishes jobs again that workers gave back, because they had no free slots for all jobs of a pack.
//!
//! Jobs are hints, and claims decide; but a worker must not fill the queues of others. So only those are published that
//! [`Store::returned_jobs`](redial_store::Store::returned_jobs) says, and each at once only as a part of what a granted claim divides.

use std::collections::{HashMap, HashSet};

use futures_util::future::join_all;
use redial_proto::{ClaimId, JobRef, Pack, PackedJob, ReturnedPack, WorkerCaller, limits};
use redial_store::{Granted, ReturnedJob};
use redial_telemetry::metrics;

use crate::{context::Context, registry::Served};

/// Jobs that one statement looks at.
const JOBS: usize = 1_000;

/// Says whether a worker may have pulled these jobs at all.
pub(super) fn may_return(context: &Context, served: &Served, caller: &WorkerCaller, back: &ReturnedPack) -> bool {
    let ReturnedPack { consumer, pack } = back;
    let may_serve = served.pool_of(&pack.tool, &caller.identity).is_some_and(|pool| caller.may_serve(pool));
    may_serve && (1..=limits::MAX_PACK).contains(&pack.jobs.len()) && context.feeder.has(consumer, &pack.tool)
}

/// Counts the granted jobs of each claim.
pub(super) fn grants_of(granted: &[Granted]) -> HashMap<ClaimId, usize> {
    let mut grants = HashMap::new();
    for grant in granted {
        *grants.entry(grant.claim).or_default() += 1;
    }
    grants
}

/// Publishes what claims gave back, of which so many jobs were granted. What cannot be published is found by the sweep.
pub(super) async fn publish(
    context: &Context,
    returned: Vec<(ClaimId, ReturnedPack)>,
    mut grants: HashMap<ClaimId, usize>,
) {
    let mut jobs = Vec::new();
    for (claim, ReturnedPack { consumer, pack }) in &returned {
        // A pack that is divided has a granted job, unless that was an old copy.
        let left = grants.entry(*claim).or_default();
        let at_once = *left > 0;
        *left = left.saturating_sub(1);
        jobs.extend(pack.jobs.iter().map(|job| ReturnedJob { job: job_ref(job), tool: &pack.tool, consumer, at_once }));
    }
    let mut ready = HashSet::new();
    for some in jobs.chunks(JOBS) {
        match context.store.returned_jobs(some).await {
            Ok(found) => ready.extend(found),
            Err(error) => tracing::warn!(%error, "Failed to look at jobs that workers gave back; the sweep finds them"),
        }
    }
    let packs: Vec<_> = returned.into_iter().flat_map(|(_, back)| divided(context, back, &mut ready)).collect();
    let published = join_all(packs.iter().map(|back| context.queue.publish_returned(back))).await;
    if let Some(error) = published.into_iter().find_map(Result::err) {
        tracing::warn!(%error, "Failed to publish jobs again that a worker gave back; the sweep finds them");
    }
}

/// Divides what is ready of a pack, each job once, into messages that the workers of its consumer take.
fn divided(context: &Context, back: ReturnedPack, ready: &mut HashSet<JobRef>) -> Vec<ReturnedPack> {
    let ReturnedPack { consumer, pack: Pack { tool, mut jobs } } = back;
    jobs.retain(|job| ready.remove(&job_ref(job)));
    if jobs.is_empty() {
        return Vec::new();
    }
    metrics().jobs_returned(jobs.len() as u64);
    let most = context.feeder.pack_size(&consumer, jobs.len());
    let pack = |jobs: &[PackedJob]| Pack { tool: tool.clone(), jobs: jobs.to_vec() };
    jobs.chunks(most).map(|jobs| ReturnedPack { consumer: consumer.clone(), pack: pack(jobs) }).collect()
}

const fn job_ref(job: &PackedJob) -> JobRef {
    JobRef { call: job.call, attempt: job.attempt }
}
