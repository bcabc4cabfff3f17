//! Cancel: stops the tools of cancelled calls.

use redial_proto::{ErrorClass, Failure, GrantRef};

use crate::state::WorkerState;

/// Stops those of these grants that have not ended, and reports them as cancelled.
pub(crate) fn cancel(state: &WorkerState, grants: &[GrantRef]) {
    for stopped in grants.iter().filter_map(|grant| state.attempts.stop(*grant)) {
        let GrantRef { call, attempt, .. } = stopped.grant;
        tracing::info!(%call, attempt, "Stopped the attempt of a cancelled call");
        let failure = if stopped.ran.is_some() {
            Failure::new(ErrorClass::Cancelled, "the call was cancelled while the tool ran; the tool was stopped")
        } else {
            Failure::new(ErrorClass::Cancelled, "the call was cancelled before the tool started").without_effect()
        };
        state.reports.send(stopped.grant, stopped.ran.unwrap_or_default(), Err(failure), None);
    }
}
