//! Release: gives attempts back that had no effect, without burning them.

use std::time::Duration;

use redial_proto::{JobRef, ReleaseReply, ReleaseRequest, limits::MAX_CLAIM, subjects};
use tokio::time::Instant;

use crate::{pause, shared::Shared};

const ANSWER: Duration = Duration::from_secs(3);
const PAUSE_CAP: Duration = Duration::from_secs(2);
/// After this long their leases have run out and the dispatchers know by themselves.
const GIVE_UP: Duration = Duration::from_secs(30);
/// While draining the process wants to end.
const GIVE_UP_DRAINING: Duration = Duration::from_secs(10);

/// Gives attempts back; tries again until a dispatcher answers.
pub(crate) async fn release(shared: &Shared, jobs: Vec<JobRef>) {
    for batch in jobs.chunks(MAX_CLAIM) {
        let request = ReleaseRequest { worker: shared.id.clone(), jobs: batch.to_vec() };
        let (started, mut failures) = (Instant::now(), 0);
        loop {
            match shared.queue.request::<_, ReleaseReply>(subjects::RELEASE, &request, ANSWER).await {
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
            tokio::time::sleep(pause::after(failures, PAUSE_CAP)).await;
        }
    }
}
