//! What was claimed and not granted: it is released, should a late copy of the claim be granted after all.
//!
//! The call may have become ready in between, or the copy waited in a dispatcher for the end of an outage. The worker, which has got another
//! answer, or has given up, would never run it. Heartbeats prove that as well, but an `unsafe` call is not run again for that.

use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use redial_proto::GrantRef;
use tokio::time::Instant;

/// In leases: nearly all copies of a claim are answered sooner.
const FOR: u32 = 4;

/// What the worker claimed, and will not run.
#[derive(Default)]
pub(crate) struct Disowned(Mutex<Vec<(Instant, GrantRef)>>);

impl Disowned {
    /// `lease`: how long one is.
    pub(crate) fn add(&self, refused: impl IntoIterator<Item = GrantRef>, lease: Duration) {
        let until = Instant::now() + FOR * lease;
        self.lock().extend(refused.into_iter().map(|grant| (until, grant)));
    }

    /// What may still be granted.
    pub(crate) fn current(&self, now: Instant) -> Vec<GrantRef> {
        let mut all = self.lock();
        all.retain(|(until, _)| *until > now);
        all.iter().map(|(_, grant)| *grant).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(Instant, GrantRef)>> {
        self.0.lock()
    }
}

#[cfg(test)]
mod tests {
    use redial_proto::{CallId, ClaimId};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_was_not_granted_is_remembered_for_four_leases() {
        let (disowned, lease) = (Disowned::default(), Duration::from_secs(15));
        let grant = || GrantRef { call: CallId::generate(), attempt: 1, claim: ClaimId::generate() };
        let (one, other) = (grant(), grant());
        disowned.add([one], lease);
        tokio::time::advance(lease).await;
        disowned.add([other], lease);
        assert_eq!(disowned.current(Instant::now() + 2 * lease), [one, other]);
        assert_eq!(disowned.current(Instant::now() + 3 * lease), [other]);
        assert_eq!(disowned.current(Instant::now()), [other], "nothing is kept that is over");
    }
}
