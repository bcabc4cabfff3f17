//! The places in the arguments of a tool that are corrected most.

use chrono::{DateTime, Utc};
use redial_api::{PointerItem, PointerList};
use redial_store::stats::{PlaceLine, What};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::{
    bounds::since,
    extract::{Name, Query},
    gateway::Api,
    problem::JsonResult,
};

/// Places of each kind in an answer.
const PLACES: usize = 100;

/// Which time.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PointersQuery {
    /// Calls that ended in the hour of this time or later. Default: 24 hours ago.
    since: Option<DateTime<Utc>>,
    /// Calls that ended before the end of the hour of this time. Default: until now.
    until: Option<DateTime<Utc>>,
}

pub(super) async fn pointers(
    Api { gateway, who }: Api,
    Name(tool): Name,
    Query(query): Query<PointersQuery>,
) -> JsonResult<PointerList> {
    let since = since(query.since, query.until)?;
    let _share = gateway.long_read(&who).await?;
    let found = gateway.store.of(&who.tenant).places(&tool, since, query.until).await?;
    let (errors, repairs): (Vec<_>, Vec<_>) = found.places.into_iter().partition(|place| place.what == What::Error);
    let (since, until, is_complete) = (found.since, found.until, found.is_complete);
    Ok(axum::Json(PointerList { since, until, is_complete, errors: items(errors), repairs: items(repairs) }))
}

fn items(places: Vec<PlaceLine>) -> Vec<PointerItem> {
    let all: u64 = places.iter().map(|place| place.calls).sum();
    let item = |PlaceLine { pointer, rule, calls, .. }| PointerItem { pointer, rule, calls, share: share(calls, all) };
    places.into_iter().take(PLACES).map(item).collect()
}

#[expect(clippy::cast_precision_loss, reason = "a share")]
fn share(part: u64, all: u64) -> f64 {
    part as f64 / all.max(1) as f64
}
