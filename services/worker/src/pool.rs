//! A pool's permits, and the jobs that hold them.

use std::{collections::HashMap, sync::Arc};

use redial_proto::{Job, JobRef};
use redial_queue::Delivery;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The calls of one pool that this worker may run at once.
pub(crate) struct Pool {
    pub(crate) name: String,
    pub(crate) permits: Arc<Semaphore>,
    /// Additional limits, by tool: each model has one.
    pub(crate) tool_permits: HashMap<String, Arc<Semaphore>>,
}

/// The permission to run one call at a time; returned to its pool when dropped.
pub(crate) struct Permit {
    _pool: OwnedSemaphorePermit,
    _tool: Option<OwnedSemaphorePermit>,
}

/// Which limit leaves no permit for a call.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum LimitReached {
    Pool,
    Tool,
}

/// A job that was pulled, with the permit that it will run under.
pub(crate) struct PulledJob {
    pub(crate) job: Job,
    pub(crate) delivery: Delivery,
    pub(crate) permit: Permit,
}

impl Pool {
    /// A permit for a call of this tool, without waiting for one.
    pub(crate) fn try_acquire(&self, tool: &str) -> Result<Permit, LimitReached> {
        let acquire = |permits: &Arc<Semaphore>| Arc::clone(permits).try_acquire_owned().ok();
        let tool_permit =
            self.tool_permits.get(tool).map(|permits| acquire(permits).ok_or(LimitReached::Tool)).transpose()?;
        Ok(Permit { _pool: acquire(&self.permits).ok_or(LimitReached::Pool)?, _tool: tool_permit })
    }
}

impl PulledJob {
    pub(crate) fn job_ref(&self) -> JobRef {
        JobRef { call: self.job.call, attempt: self.job.attempt }
    }
}
