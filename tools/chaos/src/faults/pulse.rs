//! Others work on while something is misused: small calls, one after another, and the longest pause between two that
//! succeeded.

use std::{sync::Arc, time::Duration};

use chrono::{DateTime, Utc};
use tokio::task::AbortHandle;

use super::{Injector, PROBE, Recovery, Target, reached};
use crate::{client, load};

/// Between two calls.
const BEAT: Duration = Duration::from_millis(100);

/// Calls that are submitted until this is dropped or measured.
pub(super) struct Pulse {
    from: DateTime<Utc>,
    beating: AbortHandle,
}

impl Drop for Pulse {
    fn drop(&mut self) {
        self.beating.abort();
    }
}

impl Injector {
    /// Begins to submit calls.
    pub(super) fn pulse(&self) -> Pulse {
        let (control, probes) = (self.fixture.control.clone(), Arc::clone(&self.probes));
        let beating = tokio::spawn(async move {
            loop {
                let probe = load::probe(probes.fetch_add(1, std::sync::atomic::Ordering::Relaxed));
                let _tried_again = client::submit_once(&control, &probe, PROBE).await;
                tokio::time::sleep(BEAT).await;
            }
        });
        Pulse { from: Utc::now(), beating: beating.abort_handle() }
    }

    /// Returns the longest pause since the pulse began.
    pub(super) async fn longest_pause(&self, pulse: Pulse) -> (Target, Recovery) {
        let until = Utc::now();
        let mut pause = None;
        reached(async || {
            pause = self.fixture.observer.longest_pause(load::PROBED, pulse.from, until).await;
            pause.is_some()
        })
        .await;
        (Target::OthersGoOn, pause.map(|pause| pause.time).into())
    }
}
