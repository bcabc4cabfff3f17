//! `/v1/workers`, for the operators: workers belong to no tenant.

use redial_api::WorkerList;
use redial_proto::{Code, Tenant, UserRole};
use schemars::JsonSchema;
use serde::Deserialize;

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

async fn list(Api { gateway, who }: Api, Query(query): Query<WorkersQuery>) -> JsonResult<WorkerList> {
    let workers = gateway.store.of(&who.tenant).workers(query.all).await?;
    let workers = workers.ok_or_else(|| {
        let message = format!("workers belong to no tenant; allowed: a token of the tenant {}", Tenant::default());
        Problem::new(Code::Forbidden, message)
    })?;
    Ok(axum::Json(WorkerList { workers }))
}
