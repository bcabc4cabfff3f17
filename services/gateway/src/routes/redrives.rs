//! `/v1/redrives`: runs all calls again that match a filter.

use axum::{
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
};
use chrono::{DateTime, Utc};
use redial_api::RedriveList;
use redial_proto::{
    CancelRedrive, Code, CreateRedrive, RedriveFilter, RedriveId, RedriveState, RedriveView, UserRole, subjects::Verb,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{
    endpoint::{Endpoint, IDEMPOTENCY_KEY},
    extract::{Id, Json, Query},
    gateway::Api,
    idempotency::{id_of, key},
    page::Page,
    problem::{JsonResult, Problem},
};

const TAG: &str = "redrives";
const READ: &[UserRole] = &[UserRole::Read];
const OPERATE: &[UserRole] = &[UserRole::Operate];

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::post("/v1/redrives", create)
            .about(TAG, "create_redrive", "Run all ended calls again that match a filter, or count them")
            .description(
                "They run again one after the other, at `rate` per second; `GET /v1/redrives/{id}` says how far that is. A call \
                 is redriven once. `unknown` calls match only if `state` says so.",
            )
            .roles(OPERATE)
            .header(IDEMPOTENCY_KEY)
            .body::<CreateRedriveBody>()
            .answer::<RedriveView>(202, "On record: `Location` is the redrive."),
        Endpoint::get("/v1/redrives", list)
            .about(TAG, "list_redrives", "List redrives, newest first")
            .roles(READ)
            .query::<RedrivesQuery>()
            .answer::<RedriveList>(200, "Redrives."),
        Endpoint::get("/v1/redrives/{id}", get)
            .about(TAG, "get_redrive", "How far a redrive is")
            .roles(READ)
            .answer::<RedriveView>(200, "The redrive."),
        Endpoint::post("/v1/redrives/{id}/cancel", cancel)
            .about(TAG, "cancel_redrive", "Stop a redrive")
            .description("Calls that run again already are not stopped. What has ended stays as it is.")
            .roles(OPERATE)
            .answer::<RedriveView>(200, "The redrive, which has ended."),
    ]
}

/// Which calls run again.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CreateRedriveBody {
    /// A UUID that you make for it: the same request again is the same redrive. Default: one that stands for the header
    /// `Idempotency-Key`, else a new one.
    #[serde(default)]
    redrive: Option<RedriveId>,
    /// Which calls; one field is needed.
    filter: RedriveFilter,
    /// Count only, and change nothing.
    #[serde(default)]
    dry_run: bool,
    /// Calls that run again per second, at most: 1 to 10,000. Default 100.
    #[serde(default)]
    #[schemars(range(min = 1, max = 10000))]
    rate: Option<u32>,
    /// The number of a count that somebody confirmed: fail, and run none again, if more calls match, and no more than this if calls fail
    /// meanwhile. Default: any number.
    #[serde(default)]
    #[schemars(range(min = 1))]
    at_most: Option<u64>,
}

async fn create(
    Api { gateway, who }: Api,
    headers: HeaderMap,
    Json(body): Json<CreateRedriveBody>,
) -> Result<Response, Problem> {
    let CreateRedriveBody { redrive, filter, dry_run, rate, at_most } = body;
    let of_key = key(&headers, None)?.map(|key| RedriveId(id_of(&who, "redrive", &key)));
    if of_key.is_some() && redrive.is_some() {
        return Err(Problem::invalid("redrive and the header Idempotency-Key are both set; allowed: one of them"));
    }
    let redrive = redrive.or(of_key).unwrap_or_else(RedriveId::generate);
    let request = CreateRedrive { redrive, filter, dry_run, rate, at_most };
    let view: RedriveView = gateway.ask_twice(&who, Verb::RedriveCreate, &request).await?;
    let location = [(header::LOCATION, format!("/v1/redrives/{redrive}"))];
    Ok((StatusCode::ACCEPTED, location, axum::Json(view)).into_response())
}

/// Which redrives.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RedrivesQuery {
    /// In this state.
    state: Option<RedriveState>,
    /// Entries of a page: 1 to 1,000. Default 50.
    page_size: Option<u32>,
    /// `next_page_token` of the answer before.
    page_token: Option<String>,
}

async fn list(Api { gateway, who }: Api, Query(query): Query<RedrivesQuery>) -> JsonResult<RedriveList> {
    let page = Page::<(DateTime<Utc>, Uuid)>::of(&gateway, &who, "redrives", &query).await?;
    let before = page.after.map(|(at, id)| (at, RedriveId(id)));
    let redrives = gateway.store.of(&who.tenant).redrives(query.state, before, page.size).await?;
    let is_full = redrives.len() == page.size as usize;
    let next = redrives.last().filter(|_| is_full).map(|last| (last.created_at, last.redrive.0));
    Ok(axum::Json(RedriveList { next_page_token: page.next(next.as_ref()), redrives }))
}

async fn get(Api { gateway, who }: Api, Id(redrive): Id<RedriveId>) -> JsonResult<RedriveView> {
    let found = gateway.store.of(&who.tenant).redrive(redrive).await?;
    let missing = || Problem::new(Code::RedriveNotFound, format!("no redrive {redrive} is on record"));
    found.map(axum::Json).ok_or_else(missing)
}

async fn cancel(Api { gateway, who }: Api, Id(redrive): Id<RedriveId>) -> JsonResult<RedriveView> {
    Ok(axum::Json(gateway.ask_twice(&who, Verb::RedriveCancel, &CancelRedrive { redrive }).await?))
}
