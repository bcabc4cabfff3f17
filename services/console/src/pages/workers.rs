//! `/console/workers`: who runs calls, and what waits.

use axum::Router;
use chrono::{DateTime, Utc};
use serde::Deserialize;

use crate::{
    console::Console,
    failure::Failure,
    page::{self, Shell, Visiting, Who},
    show,
};

pub(super) fn router() -> Router<Console> {
    Router::new().route("/console/workers", page::of(workers))
}

/// `GET /v1/workers`.
#[derive(Deserialize)]
pub(crate) struct WorkerList {
    pub(crate) workers: Vec<Worker>,
}

/// A worker.
#[derive(Deserialize)]
pub(crate) struct Worker {
    pub(crate) worker: String,
    pub(crate) host: Option<String>,
    pub(crate) version: String,
    pub(crate) tools: Vec<String>,
    #[serde(default)]
    pub(crate) waiting: Vec<String>,
    pub(crate) started_at: DateTime<Utc>,
    pub(crate) slots: i64,
    pub(crate) running: i64,
    pub(crate) draining: bool,
    pub(crate) last_seen_at: DateTime<Utc>,
    pub(crate) alive: bool,
}

/// The model, if it is the registered name of one.
pub(crate) fn model_of(tool: &str) -> Option<&str> {
    redial_proto::turn::model_name(tool)
}

impl Worker {
    pub(crate) const fn state(&self) -> &'static str {
        match (self.alive, self.draining) {
            (false, _) => "gone",
            (true, true) => "draining",
            (true, false) => "alive",
        }
    }
}

/// `GET /v1/queues`.
#[derive(Deserialize)]
pub(crate) struct QueueList {
    pub(crate) is_complete: bool,
    pub(crate) queues: Vec<QueueLine>,
}

/// The open calls of a tool.
#[derive(Deserialize)]
pub(crate) struct QueueLine {
    pub(crate) tool: String,
    pub(crate) pool: String,
    pub(crate) ready: u64,
    pub(crate) running: u64,
    pub(crate) retry_wait: u64,
    pub(crate) client_wait: u64,
    pub(crate) oldest_ready_ms: Option<i64>,
    pub(crate) served: bool,
    pub(crate) workers: Option<u64>,
    pub(crate) slots: Option<u64>,
}

impl QueueLine {
    pub(crate) fn oldest(&self) -> String {
        self.oldest_ready_ms.map_or_else(|| "\u{2013}".to_owned(), show::span)
    }
}

#[derive(askama::Template)]
#[template(path = "workers.html")]
struct Page {
    shell: Shell,
    /// Only operators see them.
    workers: Option<Vec<Worker>>,
    queues: QueueList,
}

async fn workers(visit: Visiting) -> Result<Page, Failure> {
    let is_operators = visit.shell.who.as_ref().is_some_and(Who::is_operators);
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
        let oldest = self.queues.queues.iter().filter_map(|queue| queue.oldest_ready_ms).max();
        oldest.map_or_else(|| "\u{2013}".to_owned(), show::span)
    }

    fn alive(&self) -> usize {
        self.workers.iter().flatten().filter(|worker| worker.alive).count()
    }

    /// A mark before numbers that are lower bounds.
    const fn least(&self) -> &'static str {
        if self.queues.is_complete { "" } else { "\u{2265} " }
    }
}
