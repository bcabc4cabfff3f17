//! The places in the arguments of a tool that are corrected most.

use chrono::{DateTime, Utc};
use redial_store::stats::{PlaceLine, What};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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

/// The places in the arguments of a tool, of the tenant's calls that ended in that time.
#[derive(Serialize, JsonSchema)]
pub(super) struct PointerList {
    /// The start of the first hour.
    since: DateTime<Utc>,
    /// The figures are complete for calls that ended before this.
    until: DateTime<Utc>,
    /// False if there are later calls that would take too long to count now.
    is_complete: bool,
    /// Broken rules, those of the most calls first, at most 100: where a description should be mended.
    errors: Vec<PointerItem>,
    /// Repairs in code, alike.
    repairs: Vec<PointerItem>,
}

/// One place.
#[derive(Serialize, JsonSchema)]
struct PointerItem {
    /// JSON pointer; `*` stands for any index, and an empty one for the whole.
    pointer: String,
    /// The broken rule, or the kind of the repair.
    rule: String,
    /// Calls.
    calls: u64,
    /// The share of all broken rules, or repairs, of the tool: 0 to 1.
    share: f64,
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
