//! `/console/failed`: what failed, by tool and class; and running a whole filter again, with a count before.

use axum::{
    Router,
    extract::Form,
    response::Response,
    routing::{get, post},
};
use chrono::{TimeDelta, Utc};
use redial_proto::{RedriveFilter, RedriveId, RedriveView};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{
    calls::{CallList, LOOK_MS},
    statistics::{self, Group, Statistics},
};
use crate::{
    console::Console,
    failure::Failure,
    filter::{Chip, Filter},
    page::{self, Shell, Visit},
    show,
};

pub(crate) const PATH: &str = "/console/failed";
/// Conditions of a list that a redrive understands, too; those that may stand several times are lists there.
const CONDITIONS: [&str; 9] = ["tool", "state", "class", "since", "until", "conversation", "key", "worker", "agent"];
const LISTS: [&str; 4] = ["not_tool", "not_class", "argument", "output"];
/// How often, and how far apart, a dry run is asked how far it is before the page says that it goes on.
const LOOKS: u32 = 30;
const PAUSE: std::time::Duration = std::time::Duration::from_millis(100);

pub(super) fn router() -> Router<Console> {
    Router::new()
        .route(PATH, get(failed))
        .route("/console/failed/redrive", get(confirm).post(order))
        .route("/console/failed/count", post(count))
}

#[derive(askama::Template)]
#[template(path = "failed.html")]
struct Page {
    shell: Shell,
    filter: Filter,
    chips: Vec<Chip>,
    /// By tool and class, of the last 24 hours.
    groups: Vec<Group>,
    list: CallList,
    next: Option<String>,
}

async fn failed(visit: Visit) -> Response {
    visit.answer(page(&visit).await)
}

async fn page(visit: &Visit) -> Result<Page, Failure> {
    let filter = Filter::of(&visit.here);
    let Statistics { mut groups, .. } = statistics::by(visit, "tool", "&and=class").await?;
    groups.retain(|group| group.bad() > 0 && group.class.is_some());
    groups.sort_by_key(|group| std::cmp::Reverse(group.bad()));
    groups.truncate(30);
    let request = filter.request(&[("state", "failed"), ("page_size", "50"), ("look_ms", LOOK_MS)]);
    let list: CallList = visit.api.get(&format!("/v1/calls{request}")).await?;
    let next = Some(&list.next_page_token).filter(|token| !token.is_empty());
    let next = next.map(|token| format!("{PATH}{}", filter.at(token).query()));
    let shell = visit.frame("Failed calls");
    let shell = if filter.get("page_token").is_empty() { shell.live("/v1/events").again(10) } else { shell };
    Ok(Page { shell, chips: filter.chips(PATH), groups, list, next, filter })
}

impl Page {
    /// The group's own filter.
    fn of(&self, group: &Group) -> String {
        let tool = group.tool.as_deref().unwrap_or_default();
        let class = group.class.as_deref().unwrap_or_default();
        // Those that were refused or are unknown are in another state.
        let state = if group.failed > 0 {
            ""
        } else if group.unknown > 0 {
            "unknown"
        } else {
            "refused"
        };
        if tool == statistics::UNKNOWN_TOOL {
            return statistics::calls_of(tool, class, state);
        }
        format!("{PATH}{}", page::query([("tool", tool), ("class", class), ("state", state)]))
    }

    fn redrive(&self) -> String {
        // At fixed times: the order must mean the calls that were counted.
        format!("/console/failed/redrive{}", self.filter.with("state", self.state()).at_fixed_times().query())
    }

    /// How the calls of the list ended.
    fn state(&self) -> &str {
        Some(self.filter.get("state")).filter(|state| !state.is_empty()).unwrap_or("failed")
    }

    /// The ways in which calls end badly: the state, the address of the list, whether it is this one.
    fn states(&self) -> Vec<(&'static str, String, bool)> {
        let state =
            |state| (state, format!("{PATH}{}", self.filter.with("state", state).query()), state == self.state());
        ["failed", "refused", "unknown", "cancelled"].map(state).into()
    }
}

#[derive(askama::Template)]
#[template(path = "redrive_confirm.html")]
struct Confirm {
    shell: Shell,
    filter: Filter,
    chips: Vec<Chip>,
    /// The id of the redrive that the form orders: ordered twice, it is the same one.
    id: RedriveId,
    /// What the count found; `None` while it goes on.
    counted: Option<RedriveView>,
    /// The id of the count.
    count: RedriveId,
    rate: u64,
    wrong: Option<String>,
}

/// The count that a visitor comes back to.
async fn confirm(visit: Visit) -> Response {
    let page = count_of(&visit).await;
    visit.answer(page)
}

async fn count_of(visit: &Visit) -> Result<Confirm, Failure> {
    visit.needs("operate")?;
    let filter = Filter::of(&visit.here);
    let known = filter.get("count").parse::<RedriveId>().ok();
    let id = filter.get("redrive").parse::<RedriveId>().unwrap_or_else(|_| RedriveId::generate());
    let filter = filter.with("count", "").with("redrive", "");
    let rate = filter.get("rate").parse::<u64>().unwrap_or(100).clamp(1, 10_000);
    let filter = filter.with("rate", "");
    let chips = filter.chips(PATH);
    let unsupported = unsupported(&filter);
    let base = |counted, count, wrong| Confirm {
        shell: visit.frame("Run again"),
        filter: filter.clone(),
        chips,
        id,
        counted,
        count,
        rate,
        wrong,
    };
    if let Some(wrong) = unsupported {
        return Ok(base(None, id, Some(wrong)));
    }
    // A page that is only looked at changes nothing: the count is ordered by the form on it.
    let Some(count) = known else { return Ok(base(None, RedriveId::generate(), None)) };
    let counted = wait_for(visit, count).await?;
    // A count of other calls must not stand above this order.
    let asked = serde_json::from_value::<RedriveFilter>(as_json(&filter)).ok();
    if let Some(wrong) = counted.as_ref().and_then(|counted| not_a_count(counted, asked.as_ref())) {
        return Ok(base(None, RedriveId::generate(), Some(wrong)));
    }
    Ok(base(counted, count, None))
}

/// Why an order cannot stand on this count.
fn not_a_count(counted: &RedriveView, filter: Option<&RedriveFilter>) -> Option<String> {
    if !counted.dry_run || Some(&counted.filter) != filter {
        return Some("The count in this address is of another filter. Count again.".to_owned());
    }
    let is_old = Utc::now() - counted.created_at > TimeDelta::hours(1);
    is_old.then(|| format!("The count is of {}. Count again.", show::exact(&counted.created_at)))
}

/// A redrive once it has ended; `None` if it goes on.
async fn wait_for(visit: &Visit, id: RedriveId) -> Result<Option<RedriveView>, Failure> {
    for _ in 0..LOOKS {
        let view: RedriveView = visit.api.peek(&format!("/v1/redrives/{id}")).await?;
        if view.state.is_terminal() {
            return Ok(Some(view));
        }
        tokio::time::sleep(PAUSE).await;
    }
    Ok(None)
}

/// A filter with conditions that a redrive does not have must not run more calls again than the list shows.
fn unsupported(filter: &Filter) -> Option<String> {
    let known =
        |name: &str| CONDITIONS.contains(&name) || LISTS.contains(&name) || name == "contains" || Filter::is_own(name);
    let names = || filter.pairs().iter().map(|(name, _)| name.as_str());
    let others: Vec<String> = names().filter(|name| !known(name)).map(|name| show::line(name, 40)).collect();
    if !others.is_empty() {
        let others = others.join(", ");
        return Some(format!(
            "A redrive has no condition {others}: it would run calls again that this list leaves out. Remove it, or run calls again one by one."
        ));
    }
    let twice = names().find(|name| {
        let is_list = LISTS.contains(name) || Filter::is_own(name);
        !is_list && names().filter(|other| other == name).count() > 1
    });
    if let Some(twice) = twice {
        return Some(format!("The condition {twice} is set twice, and a redrive has it once. Remove one."));
    }
    // Those ran nothing, so nothing of them runs again as it was.
    filter.is("state", "refused").then(|| {
        "Refused calls never ran, and would be refused again. Open one, and run it again with other arguments."
            .to_owned()
    })
}

/// The filter as the API takes it.
fn as_json(filter: &Filter) -> Value {
    let mut fields = Map::new();
    for (name, value) in filter.pairs() {
        if CONDITIONS.contains(&name.as_str()) || name == "contains" {
            fields.insert(name.clone(), value.as_str().into());
        } else if LISTS.contains(&name.as_str()) {
            let list = fields.entry(name.clone()).or_insert_with(|| Value::Array(Vec::new()));
            if let Value::Array(list) = list {
                list.push(value.as_str().into());
            }
        }
    }
    fields.into()
}

/// What a form sends: the filter as a query, and what is ordered.
#[derive(Deserialize)]
struct Order {
    filter: String,
    redrive: String,
    /// The count that was confirmed.
    #[serde(default)]
    count: String,
    #[serde(default)]
    rate: String,
    /// `yes`: the visitor ticked the number of calls.
    #[serde(default)]
    confirmed: String,
}

async fn count(visit: Visit, Form(order): Form<Order>) -> Response {
    let filter = Filter::of(&format!("?{}", order.filter));
    if let Some(wrong) = unsupported(&filter) {
        return visit.done(Err(Failure::invalid(wrong)));
    }
    let body = json!({ "redrive": order.redrive, "filter": as_json(&filter), "dry_run": true });
    let done: Result<RedriveView, _> = visit.api.post("/v1/redrives", &body).await;
    // The id of the order stands in the address: a page that is loaded again orders the same redrive.
    let to = filter.with("count", &order.redrive).with("redrive", &RedriveId::generate().to_string()).query();
    visit.done(done.map(|_| format!("/console/failed/redrive{to}")))
}

async fn order(visit: Visit, Form(order): Form<Order>) -> Response {
    let done = ordered(&visit, &order).await;
    visit.done(done.map(|view| format!("/console/redrives/{}?done=redrive", view.redrive)))
}

async fn ordered(visit: &Visit, order: &Order) -> Result<RedriveView, Failure> {
    let filter = Filter::of(&format!("?{}", order.filter));
    if let Some(wrong) = unsupported(&filter) {
        return Err(Failure::invalid(wrong));
    }
    if order.confirmed != "yes" {
        return Err(Failure::invalid("The number of calls was not confirmed."));
    }
    let rate: Option<u64> = if order.rate.is_empty() { None } else { order.rate.parse().ok() };
    if rate.is_none() && !order.rate.is_empty() {
        return Err(Failure::invalid(format!("The rate is {:?}; allowed: 1 to 10000.", show::clip(&order.rate, 40))));
    }
    // No more calls run again than the count found that was confirmed.
    let counted: RedriveView = visit.api.peek(&format!("/v1/redrives/{}", show::url(&order.count))).await?;
    let asked: Option<RedriveFilter> = serde_json::from_value(as_json(&filter)).ok();
    let body = json!({
        "redrive": order.redrive, "filter": as_json(&filter), "rate": rate, "at_most": counted.matched.max(1),
    });
    if let Some(wrong) = not_a_count(&counted, asked.as_ref()) {
        return Err(Failure::invalid(wrong));
    }
    match visit.api.post("/v1/redrives", &body).await {
        // It was ordered before, perhaps at another rate: the page was gone back to.
        Err(Failure::Problem(problem)) if problem.code == "idempotency_conflict" => {
            let before: RedriveView = visit.api.get(&format!("/v1/redrives/{}", show::url(&order.redrive))).await?;
            let is_it = !before.dry_run && Some(&before.filter) == asked.as_ref();
            if is_it { Ok(before) } else { Err(Failure::Problem(problem)) }
        }
        done => done,
    }
}

impl Confirm {
    /// Calls that would run again.
    fn calls(&self) -> u64 {
        self.counted.as_ref().map_or(0, |counted| counted.matched.saturating_sub(counted.existing))
    }

    fn takes(&self) -> String {
        show::span(i64::try_from(self.calls().saturating_mul(1000) / self.rate.max(1)).unwrap_or(i64::MAX))
    }

    /// The filter without its question mark.
    fn query(&self) -> String {
        self.filter.query().trim_start_matches('?').to_owned()
    }

    fn is_counting(&self) -> bool {
        self.wrong.is_none() && self.counted.is_none() && self.shell.here.contains("count=")
    }

    fn is_of_unknown(&self) -> bool {
        self.filter.is("state", "unknown")
    }
}
