//! `/v1/workers`, for the operators: workers belong to no tenant.

use chrono::{DateTime, Utc};
use redial_proto::{Code, Tenant, UserRole};
use redial_store::audit::WorkerRecord;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    endpoint::Endpoint,
    extract::Query,
    gateway::Api,
    problem::{JsonResult, Problem},
};

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::get("/v1/workers", list)
            .about("workers", "list_workers", "Workers, the one that was seen last first, at most 1,000")
            .description("Only for the tenant `default`, that of the operators.")
            .roles(&[UserRole::Read])
            .query::<WorkersQuery>()
            .answer::<WorkerList>(200, "Workers."),
    ]
}

/// Which workers.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct WorkersQuery {
    /// Also those that were not seen lately.
    #[serde(default)]
    all: bool,
}

/// Workers.
#[derive(Serialize, JsonSchema)]
struct WorkerList {
    /// The one that was seen last first.
    workers: Vec<WorkerItem>,
}

/// A worker.
#[derive(Serialize, JsonSchema)]
struct WorkerItem {
    /// Its id.
    worker: String,
    /// Where it runs, as it says.
    host: Option<String>,
    /// Version of its program.
    version: String,
    /// The tools that it serves.
    tools: Vec<String>,
    /// Its tools that wait until an operator accepts them.
    waiting: Vec<String>,
    /// By its own clock.
    started_at: DateTime<Utc>,
    /// Calls that it can run at once.
    slots: i32,
    /// Calls that it runs.
    running: i32,
    /// It takes no more jobs.
    draining: bool,
    /// Its last heartbeat.
    last_seen_at: DateTime<Utc>,
    /// It was seen lately.
    alive: bool,
}

async fn list(Api { gateway, who }: Api, Query(query): Query<WorkersQuery>) -> JsonResult<WorkerList> {
    let workers = gateway.store.of(&who.tenant).workers(query.all).await?;
    let workers = workers.ok_or_else(|| {
        let message = format!("workers belong to no tenant; allowed: a token of the tenant {}", Tenant::default());
        Problem::new(Code::Forbidden, message)
    })?;
    Ok(axum::Json(WorkerList { workers: workers.into_iter().map(item).collect() }))
}

fn item(record: WorkerRecord) -> WorkerItem {
    let WorkerRecord {
        id: worker,
        host,
        version,
        tools,
        waiting,
        started_at,
        slots,
        running,
        draining,
        last_seen_at,
        alive,
    } = record;
    WorkerItem { worker, host, version, tools, waiting, started_at, slots, running, draining, last_seen_at, alive }
}
