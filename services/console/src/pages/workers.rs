//! `/console/workers`: who runs calls, and what waits.

use axum::Router;
use redial_api::{QueueList, WhoAsks, WorkerItem, WorkerList};

use crate::{
    console::Console,
    failure::Failure,
    page::{self, Shell, Visiting},
    show,
};

pub(super) fn router() -> Router<Console> {
    Router::new().route("/console/workers", page::of(workers))
}

pub(crate) const fn state(worker: &WorkerItem) -> &'static str {
    match (worker.alive, worker.draining) {
        (false, _) => "gone",
        (true, true) => "draining",
        (true, false) => "alive",
    }
}

/// Says for how long a call has waited.
pub(crate) fn waited(ms: &Option<i64>) -> String {
    ms.map_or_else(|| "\u{2013}".to_owned(), show::span)
}

#[derive(askama::Template)]
#[template(path = "workers.html")]
struct Page {
    shell: Shell,
    /// Only operators see them.
    workers: Option<Vec<WorkerItem>>,
    queues: QueueList,
}

async fn workers(visit: Visiting) -> Result<Page, Failure> {
    let is_operators = visit.shell.who.as_ref().is_some_and(WhoAsks::is_operators);
    let workers =
        if is_operators { Some(visit.api.get::<WorkerList>("/v1/workers?all=true").await?.workers) } else { None };
    let queues = visit.api.get(if is_operators { "/v1/queues?all=true" } else { "/v1/queues" }).await?;
    Ok(Page { shell: visit.frame("Workers and queues").again(2), workers, queues })
}

impl Page {
    fn waiting(&self) -> u64 {
        self.queues.queues.iter().map(|queue| queue.ready).sum()
    }

    fn running(&self) -> u64 {
        self.queues.queues.iter().map(|queue| queue.running).sum()
    }

    fn retries(&self) -> u64 {
        self.queues.queues.iter().map(|queue| queue.retry_wait).sum()
    }

    fn oldest(&self) -> String {
        waited(&self.queues.queues.iter().filter_map(|queue| queue.oldest_ready_ms).max())
    }

    fn alive(&self) -> usize {
        self.workers.iter().flatten().filter(|worker| worker.alive).count()
    }

    /// Returns a mark before numbers that are lower bounds.
    const fn least(&self) -> &'static str {
        if self.queues.is_complete { "" } else { "\u{2265} " }
    }
}
