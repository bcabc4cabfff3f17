//! Cancel: stops the tools of cancelled calls.

use redial_proto::{ErrorClass, Failure, JobRef};

use crate::state::WorkerState;

/// Stops those attempts that still run, and reports them as cancelled.
pub(crate) fn cancel(state: &WorkerState, jobs: &[JobRef]) {
    for stopped in jobs.iter().filter_map(|job| state.attempts.stop(*job)) {
        let JobRef { call, attempt } = stopped.grant.job_ref();
        tracing::info!(%call, attempt, "Stopped the tool of a cancelled call");
        let failure =
            Failure::new(ErrorClass::Cancelled, "the call was cancelled while the tool ran; the tool was stopped");
        state.reports.send(stopped.grant, stopped.ran, Err(failure), None);
    }
}
