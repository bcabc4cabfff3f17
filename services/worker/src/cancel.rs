//! Cancel: stops the tools of cancelled calls.

use redial_proto::{ErrorClass, Failure, JobRef};

use crate::state::WorkerState;

/// Stops those of these attempts that have not ended, and reports them as cancelled.
pub(crate) fn cancel(state: &WorkerState, jobs: &[JobRef]) {
    for stopped in jobs.iter().filter_map(|job| state.attempts.stop(*job)) {
        let JobRef { call, attempt } = stopped.grant.job_ref();
        tracing::info!(%call, attempt, "Stopped the attempt of a cancelled call");
        let failure = if stopped.ran.is_some() {
            Failure::new(ErrorClass::Cancelled, "the call was cancelled while the tool ran; the tool was stopped")
        } else {
            Failure::new(ErrorClass::Cancelled, "the call was cancelled before the tool started").without_effect()
        };
        state.reports.send(stopped.grant, stopped.ran.unwrap_or_default(), Err(failure), None);
    }
}
