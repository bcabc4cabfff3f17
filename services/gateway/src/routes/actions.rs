//! `/v1/actions`: what users of the tenant did.

use chrono::{DateTime, Utc};
use redial_api::{ActionItem, ActionList};
use redial_proto::UserRole;
use redial_store::ActionFilter;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    endpoint::Endpoint,
    extract::Query,
    gateway::Api,
    page::{Page, by_bytes},
    problem::{JsonResult, Problem},
};

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::get("/v1/actions", list)
            .about("actions", "list_actions", "What users of the tenant did, newest first")
            .description("Requests that change something besides submissions, each with who asked and how it ended.")
            .roles(&[UserRole::Read])
            .query::<ActionsQuery>()
            .answer::<ActionList>(200, "Actions."),
    ]
}

/// Which actions. Every parameter narrows.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ActionsQuery {
    /// Of this user.
    user: Option<String>,
    /// Of this verb, such as `calls.redrive`.
    verb: Option<String>,
    /// Asked for then or later.
    since: Option<DateTime<Utc>>,
    /// Entries of a page: 1 to 1,000. Default 50. A page has fewer if they are long.
    page_size: Option<u32>,
    /// `next_page_token` of the answer before.
    page_token: Option<String>,
}

async fn list(Api { gateway, who }: Api, Query(query): Query<ActionsQuery>) -> JsonResult<ActionList> {
    Problem::check_times(&[("since", query.since)])?;
    let page = Page::<i64>::of(&gateway, &who, "actions", &query).await?;
    let (store, ActionsQuery { user, verb, since, .. }) = (gateway.store.of(&who.tenant), query);
    let filter = ActionFilter { user, verb, since, ..ActionFilter::default() };
    let read = |before, limit| {
        let filter = ActionFilter { before, ..filter.clone() };
        async move { Ok(store.actions(&filter, limit).await?) }
    };
    let (actions, next) = by_bytes(&page, |action: &ActionItem| action.id, read).await?;
    Ok(axum::Json(ActionList { actions, next_page_token: page.next(next.as_ref()) }))
}
