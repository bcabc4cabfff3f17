//! A running dispatcher, as its parts see it when they start.

use std::sync::Arc;

use redial_loops::Loops;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::context::Context;

/// What every part needs to run until the shutdown.
#[derive(Clone)]
pub(crate) struct Running {
    pub(crate) context: Arc<Context>,
    pub(crate) shutdown: CancellationToken,
    /// Everything that must finish before the process may end. If one panics, the dispatcher stops.
    pub(crate) loops: Loops,
    /// The loops that take requests from NATS.
    pub(crate) feeds: TaskTracker,
}

impl Running {
    /// Starts a loop. It must end soon after the shutdown.
    pub(crate) fn spawn<F>(&self, name: &'static str, run: impl FnOnce(Arc<Context>, CancellationToken) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.loops.spawn(name, run(self.context.clone(), self.shutdown.clone()));
    }
}
