//! Running all calls again that match a filter: first they are counted, then somebody confirms the number.

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

use crate::{
    console::Console,
    failure::Failure,
    filter::{Chip, Filter},
    page::{Shell, Visit},
    show,
};

const PATH: &str = "/console/failed";
/// Conditions of a list that a redrive understands, too; those that may stand several times are lists there.
const CONDITIONS: [&str; 9] = ["tool", "state", "class", "since", "until", "conversation", "key", "worker", "agent"];
const LISTS: [&str; 4] = ["not_tool", "not_class", "argument", "output"];
/// How often, and how far apart, a dry run is asked how far it is before the page says that it goes on.
const LOOKS: u32 = 30;
const PAUSE: std::time::Duration = std::time::Duration::from_millis(100);

pub(super) fn router() -> Router<Console> {
    Router::new().route("/console/failed/redrive", get(confirm).post(order)).route("/console/failed/count", post(count))
}

#[derive(askama::Template)]
#[template(path = "redrive_confirm.html")]
struct Confirm {
    shell: Shell,
    filter: Filter,
    chips: Vec<Chip>,
    /// Calls per second.
    rate: u64,
    /// The id of the redrive that the form orders: ordered twice, it is the same one.
    order: RedriveId,
    count: Count,
}

/// How far the count is that an order stands on.
enum Count {
    /// The form on the page orders one under this id: a page that is only looked at changes nothing.
    Wanted(RedriveId),
    GoesOn(RedriveId),
    Done(Box<RedriveView>),
    /// Nothing can be ordered, because.
    Wrong(String),
}

/// Shows the count that a visitor comes back to.
async fn confirm(visit: Visit) -> Response {
    let page = page(&visit).await;
    visit.answer(page)
}

async fn page(visit: &Visit) -> Result<Confirm, Failure> {
    visit.needs("operate")?;
    let here = Filter::of(&visit.here);
    let filter = here.with("count", "").with("redrive", "").with("rate", "");
    let count = count_of(visit, &filter, here.get("count")).await?;
    Ok(Confirm {
        shell: visit.frame("Run again"),
        chips: filter.chips(PATH),
        rate: here.get("rate").parse::<u64>().unwrap_or(100).clamp(1, 10_000),
        order: here.get("redrive").parse().unwrap_or_else(|_| RedriveId::generate()),
        filter,
        count,
    })
}

async fn count_of(visit: &Visit, filter: &Filter, known: &str) -> Result<Count, Failure> {
    if let Some(wrong) = unsupported(filter) {
        return Ok(Count::Wrong(wrong));
    }
    let Ok(id) = known.parse::<RedriveId>() else { return Ok(Count::Wanted(RedriveId::generate())) };
    let Some(counted) = wait_for(visit, id).await? else { return Ok(Count::GoesOn(id)) };
    Ok(match not_a_count(&counted, as_filter(filter).as_ref()) {
        Some(wrong) => Count::Wrong(wrong),
        None => Count::Done(Box::new(counted)),
    })
}

/// Says why an order cannot stand on this count.
fn not_a_count(counted: &RedriveView, filter: Option<&RedriveFilter>) -> Option<String> {
    if !counted.dry_run || Some(&counted.filter) != filter {
        return Some("The count in this address is of another filter. Count again.".to_owned());
    }
    if let Some(error) = &counted.error {
        return Some(format!("The count failed: {}", show::line(error, 300)));
    }
    if !counted.state.is_terminal() {
        return Some("The count goes on. Wait for its end.".to_owned());
    }
    let is_old = Utc::now() - counted.created_at > TimeDelta::hours(1);
    is_old.then(|| format!("The count is of {}. Count again.", show::exact(&counted.created_at)))
}

/// Waits for the end of a redrive; `None` if it goes on.
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

/// Says why a redrive cannot have this filter: with fewer conditions it would run more calls again than the list.
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

fn as_filter(filter: &Filter) -> Option<RedriveFilter> {
    serde_json::from_value(as_json(filter)).ok()
}

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
    let asked = as_filter(&filter);
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
    fn takes(&self, calls: &u64) -> String {
        show::span(i64::try_from(calls.saturating_mul(1000) / self.rate.max(1)).unwrap_or(i64::MAX))
    }

    /// Writes the filter without its question mark.
    fn query(&self) -> String {
        self.filter.query().trim_start_matches('?').to_owned()
    }

    fn is_of_unknown(&self) -> bool {
        self.filter.is("state", "unknown")
    }
}
