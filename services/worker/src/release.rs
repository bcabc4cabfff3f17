//! Release: gives attempts back that had no effect, without burning them.

use std::time::Duration;

use redial_proto::{Effect, ErrorClass, Failure, GrantRef, ReleaseReply, ReleaseRequest, limits::MAX_CLAIM, subjects};
use tokio::time::Instant;

use crate::{held::Stopped, pause, shared::Shared};

/// How long the processes of a stopped tool may take to be gone.
const STOP: Duration = Duration::from_secs(2);
/// After an outage the dispatchers wait a lease for this; an outage that lasts longer than this burns the attempt.
const GIVE_UP: Duration = Duration::from_secs(3600);
/// While draining the process wants to end.
const GIVE_UP_DRAINING: Duration = Duration::from_secs(10);

/// Hands back attempts whose tools were stopped half-way. What may run twice is released and does not count. How far an
/// `unsafe` tool came nobody knows: that is reported as `lost`.
pub(crate) async fn hand_back(shared: &Shared, stopped: Vec<Stopped>, why: &str) {
    let (unsafe_, again): (Vec<Stopped>, Vec<Stopped>) =
        stopped.into_iter().partition(|stopped| stopped.effect == Effect::Unsafe);
    for stopped in unsafe_ {
        shared.reports.send(stopped.grant.job_ref(), stopped.ran, Err(Failure::new(ErrorClass::Lost, why)));
    }
    let grants: Vec<_> = again.iter().map(|stopped| stopped.grant).collect();
    // A call that is given back may start elsewhere at once: the processes of its tool must be gone by then.
    if tokio::time::timeout(STOP, redial_tools::settled()).await.is_err() {
        tracing::error!("the processes of a stopped tool do not end");
    }
    // Before the release: a released attempt may be granted to this very worker again, under the same number.
    shared.forget(&grants.iter().map(GrantRef::job_ref).collect::<Vec<_>>());
    release(shared, grants).await;
}

/// Gives attempts back; tries again until a dispatcher answers.
pub(crate) async fn release(shared: &Shared, grants: Vec<GrantRef>) {
    for batch in grants.chunks(MAX_CLAIM) {
        let request = ReleaseRequest { worker: shared.id.clone(), jobs: batch.to_vec() };
        let (started, mut failures) = (Instant::now(), 0);
        loop {
            match shared.ask::<_, ReleaseReply>(subjects::RELEASE, &request, failures).await {
                Ok(reply) => {
                    tracing::info!(asked = batch.len(), released = reply.released, "attempts were given back");
                    break;
                }
                Err(error) => {
                    failures += 1;
                    tracing::warn!(jobs = batch.len(), failures, "attempts could not be given back: {error}");
                }
            }
            let limit = if shared.draining.is_cancelled() { GIVE_UP_DRAINING } else { GIVE_UP };
            if started.elapsed() >= limit {
                return;
            }
            tokio::time::sleep(pause::after(failures, shared.pause_cap())).await;
        }
    }
}
