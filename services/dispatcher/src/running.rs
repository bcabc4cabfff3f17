//! A running dispatcher, as its parts see it when they start.

use std::sync::Arc;

use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::context::Context;

/// What every part needs to run until the shutdown.
#[derive(Clone)]
pub(crate) struct Running {
    pub(crate) context: Arc<Context>,
    pub(crate) shutdown: CancellationToken,
    /// Everything that must finish before the process may end.
    pub(crate) tracker: TaskTracker,
}

impl Running {
    /// Starts a loop. It must end soon after the shutdown.
    pub(crate) fn spawn<F>(&self, run: impl FnOnce(Arc<Context>, CancellationToken) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.tracker.spawn(run(self.context.clone(), self.shutdown.clone()));
    }
}
