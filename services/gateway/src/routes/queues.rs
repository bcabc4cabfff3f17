//! `/v1/queues`: what waits and runs, by tool.

use chrono::{DateTime, Utc};
use redial_proto::{Code, Tenant, UserRole};
use redial_store::audit::QueueLine;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    endpoint::Endpoint,
    extract::Query,
    gateway::Api,
    problem::{JsonResult, Problem},
};

/// Tools of an answer.
const TOOLS: usize = 1_000;

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::get("/v1/queues", list)
            .about("workers", "list_queues", "What waits and runs, by tool, that with the most waiting calls first")
            .description(
                "Of the tenant. The tenant `default`, that of the operators, may ask for those of all tenants.",
            )
            .roles(&[UserRole::Read])
            .query::<QueuesQuery>()
            .answer::<QueueList>(200, "The open calls by tool."),
    ]
}

/// Whose calls.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct QueuesQuery {
    /// Calls of all tenants; only for the tenant `default`.
    #[serde(default)]
    all: bool,
}

/// What waits and runs.
#[derive(Serialize, JsonSchema)]
struct QueueList {
    /// When this was read.
    at: DateTime<Utc>,
    /// False if there are more open calls than are counted: the numbers are lower bounds, the oldest may be older, and tools may be
    /// missing.
    is_complete: bool,
    /// Tools with open calls, at most 1,000.
    queues: Vec<QueueItem>,
}

/// The open calls of a tool.
#[derive(Serialize, JsonSchema)]
struct QueueItem {
    /// The tool; of turns `model-NAME`.
    tool: String,
    /// The pool whose workers run it.
    pool: String,
    /// Calls that wait for a worker.
    ready: u64,
    /// Those of them that have no job on the stream yet.
    backlog: u64,
    /// Calls that run.
    running: u64,
    /// Calls that wait for a retry.
    retry_wait: u64,
    /// Calls that wait for a client's answer.
    client_wait: u64,
    /// When the one that waits for a worker longest was submitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    oldest_ready_at: Option<DateTime<Utc>>,
    /// For how long it has waited, in ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    oldest_ready_ms: Option<i64>,
    /// A live worker has the tool.
    served: bool,
    /// Live workers that have it; only for operators.
    #[serde(skip_serializing_if = "Option::is_none")]
    workers: Option<u64>,
    /// Calls that these can run at once, of all their tools; only for operators.
    #[serde(skip_serializing_if = "Option::is_none")]
    slots: Option<u64>,
}

async fn list(Api { gateway, who }: Api, Query(query): Query<QueuesQuery>) -> JsonResult<QueueList> {
    let is_operators = who.tenant == Tenant::default();
    if query.all && !is_operators {
        let message =
            format!("all asks for the calls of all tenants; allowed: a token of the tenant {}", Tenant::default());
        return Err(Problem::new(Code::Forbidden, message));
    }
    let _share = gateway.long_read(&who).await?;
    let found = gateway.store.of(&who.tenant).queues(query.all).await?;
    let at = Utc::now();
    let item = |line: QueueLine| {
        let QueueLine { tool, pool, ready, backlog, running, retry_wait, client_wait, oldest_ready_at, workers, slots } =
            line;
        QueueItem {
            tool,
            pool,
            ready,
            backlog,
            running,
            retry_wait,
            client_wait,
            oldest_ready_at,
            oldest_ready_ms: oldest_ready_at.map(|oldest| (at - oldest).num_milliseconds().max(0)),
            served: workers > 0,
            workers: is_operators.then_some(workers),
            slots: is_operators.then_some(slots),
        }
    };
    let queues = found.tools.into_iter().take(TOOLS).map(item).collect();
    Ok(axum::Json(QueueList { at, is_complete: found.is_complete, queues }))
}
