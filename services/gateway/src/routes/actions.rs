//! `/v1/actions`: what users of the tenant did.

use chrono::{DateTime, Utc};
use redial_proto::UserRole;
use redial_store::{ActionFilter, ActionRecord};
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

/// A part of the actions.
#[derive(Serialize, JsonSchema)]
struct ActionList {
    /// Newest first.
    actions: Vec<ActionItem>,
    /// For the next page; empty at the end.
    next_page_token: String,
}

/// What a user asked for.
#[derive(Serialize, JsonSchema)]
struct ActionItem {
    /// Its number.
    id: i64,
    /// When it was asked for.
    at: DateTime<Utc>,
    /// Who asked.
    user: String,
    /// In which role.
    role: String,
    /// The way in, as the request said.
    door: String,
    /// The id of the token that asked; `null` if none did.
    token: Option<String>,
    /// What was asked for.
    verb: String,
    /// What it was about, the first hundred.
    targets: Vec<String>,
    /// How many there were in all.
    target_count: i32,
    /// `done`, or the code of the error; `null` if that is not known.
    result: Option<String>,
    /// How many were changed; `null` if that is not known.
    changed: Option<i32>,
}

async fn list(Api { gateway, who }: Api, Query(query): Query<ActionsQuery>) -> JsonResult<ActionList> {
    Problem::check_times(&[("since", query.since)])?;
    let page = Page::<i64>::of(&gateway, &who, "actions", &query).await?;
    let (store, ActionsQuery { user, verb, since, .. }) = (gateway.store.of(&who.tenant), query);
    let filter = ActionFilter { user, verb, since, ..ActionFilter::default() };
    let read = |before, limit| {
        let filter = ActionFilter { before, ..filter.clone() };
        async move { Ok(store.actions(&filter, limit).await?.into_iter().map(item).collect()) }
    };
    let (actions, next) = by_bytes(&page, |action: &ActionItem| action.id, read).await?;
    Ok(axum::Json(ActionList { actions, next_page_token: page.next(next.as_ref()) }))
}

fn item(record: ActionRecord) -> ActionItem {
    let ActionRecord { id, at, user, role, door, token, verb, targets, target_count, result, changed, .. } = record;
    ActionItem { id, at, user, role, door, token, verb, targets, target_count, result, changed }
}
