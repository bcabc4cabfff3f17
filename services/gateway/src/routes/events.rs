//! `/v1/events`: what happens in a tenant.

use axum::{http::HeaderMap, response::Response};
use redial_api::Missed;
use redial_proto::UserRole;
use redial_store::{Time, audit::EndedPosition};
use schemars::JsonSchema;
use serde::Deserialize;
use uuid::Uuid;

use crate::{
    endpoint::{Endpoint, LAST_EVENT_ID},
    events::{After, MEDIA, ServerSentEvent, follow_feed, time_id},
    extract::Query,
    gateway::Api,
    problem::{JsonResult, Problem},
};

const TAG: &str = "events";
const READ: &[UserRole] = &[UserRole::Read];
/// Items of an answer.
const MOST: u32 = 1_000;

/// Which ends.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct MissedQuery {
    /// From this time on, as 2026-11-24T17:00:00Z.
    since: Time,
    /// Of those that ended at that time only those with greater ids, to page on.
    #[serde(default)]
    after: Option<Uuid>,
    /// Items of the answer, 1 to 1000. Default: 100.
    #[serde(default)]
    page_size: Option<u32>,
}

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::get("/v1/events", events)
            .about(TAG, "follow_all", "The tenant's feed: what ends, as it ends")
            .description(
                "Server-sent events: `listening` first; `call` and `task` for each that ended, with a time as their id; `step` \
                 for each step of a task, without one. After a reconnect with an id everything that ended since comes, some of \
                 it again.",
            )
            .roles(READ)
            .query::<After>()
            .header(LAST_EVENT_ID)
            .answer_as::<ServerSentEvent>(200, "The events. The stream does not end by itself.", MEDIA),
        Endpoint::get("/v1/events/missed", missed)
            .about(TAG, "list_missed_events", "The calls and tasks that ended since a time")
            .roles(READ)
            .query::<MissedQuery>()
            .answer::<Missed>(200, "What ended."),
    ]
}

async fn events(
    Api { gateway, who }: Api,
    Query(after): Query<After>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    follow_feed(gateway, who, &after, &headers).await
}

async fn missed(Api { gateway, who }: Api, Query(query): Query<MissedQuery>) -> JsonResult<Missed> {
    let size = query.page_size.unwrap_or(100);
    if !(1..=MOST).contains(&size) {
        return Err(Problem::invalid(format!("page_size is {size}; allowed: 1 to {MOST}")));
    }
    Problem::check_times(&[("since", Some(query.since))])?;
    let _share = gateway.long_read(&who).await?;
    let after = EndedPosition { at: query.since, id: query.after.unwrap_or_default() };
    let ended = gateway.store.of(&who.tenant).ended_since(after, size).await?;
    let last = ended.last().map(EndedPosition::of).filter(|_| ended.len() == size as usize);
    let next = last
        .map(|EndedPosition { at, id }| format!("/v1/events/missed?since={}&after={id}&page_size={size}", time_id(at)));
    Ok(axum::Json(Missed { items: ended, next }))
}
