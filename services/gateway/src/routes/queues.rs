//! `/v1/queues`: what waits and runs, by tool.

use redial_api::QueueList;
use redial_proto::{Code, Tenant, UserRole};
use schemars::JsonSchema;
use serde::Deserialize;

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

async fn list(Api { gateway, who }: Api, Query(query): Query<QueuesQuery>) -> JsonResult<QueueList> {
    if query.all && who.tenant != Tenant::default() {
        let message =
            format!("all asks for the calls of all tenants; allowed: a token of the tenant {}", Tenant::default());
        return Err(Problem::new(Code::Forbidden, message));
    }
    let _share = gateway.long_read(&who).await?;
    let mut found = gateway.store.of(&who.tenant).queues(query.all).await?;
    found.queues.truncate(TOOLS);
    Ok(axum::Json(found))
}
