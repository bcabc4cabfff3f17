//! `/console/redrives`: the orders to run a whole filter again, and how far each is.

use axum::{
    Router,
    extract::Path,
    response::Response,
    routing::{get, post},
};
use redial_api::RedriveList;
use redial_proto::{RedriveFilter, RedriveView};
use serde_json::{Value, json};

use crate::{
    console::Console,
    failure::Failure,
    filter::Filter,
    page::{self, Shell, Visit, Visiting},
    show,
};

const PATH: &str = "/console/redrives";

pub(super) fn router() -> Router<Console> {
    Router::new()
        .route(PATH, page::of(list))
        .route("/console/redrives/{id}", get(one))
        .route("/console/redrives/{id}/stop", post(stop))
}

#[derive(askama::Template)]
#[template(path = "redrives.html")]
struct ListPage {
    shell: Shell,
    redrives: Vec<RedriveView>,
    next: Option<String>,
}

async fn list(visit: Visiting) -> Result<ListPage, Failure> {
    let filter = Filter::of(&visit.here);
    let list: RedriveList = visit.api.get(&format!("/v1/redrives{}", filter.request(&[]))).await?;
    let next = filter.next(PATH, &list.next_page_token);
    Ok(ListPage { shell: visit.frame("Redrives").again(3), redrives: list.redrives, next })
}

#[derive(askama::Template)]
#[template(path = "redrive.html")]
struct OnePage {
    shell: Shell,
    redrive: RedriveView,
}

async fn one(visit: Visit, Path(id): Path<String>) -> Response {
    visit.answer(one_page(&visit, &show::url(&id)).await)
}

async fn one_page(visit: &Visit, id: &str) -> Result<OnePage, Failure> {
    let redrive: RedriveView = visit.api.get(&format!("/v1/redrives/{id}")).await?;
    let shell = visit.frame("Redrive");
    let shell = if redrive.state.is_terminal() { shell } else { shell.again(1) };
    Ok(OnePage { shell, redrive })
}

async fn stop(visit: Visit, Path(id): Path<String>) -> Response {
    let id = show::url(&id);
    let done = visit.api.post::<Value>(&format!("/v1/redrives/{id}/cancel"), &json!({})).await;
    visit.done(done.map(|_| format!("/console/redrives/{id}?done=stopped")))
}

/// Counts calls that were taken care of: they run again, did already, or were refused.
pub(crate) const fn handled(redrive: &RedriveView) -> u64 {
    redrive.redriven + redrive.existing + redrive.refused
}

pub(crate) fn conditions(filter: &RedriveFilter) -> Vec<(String, String)> {
    let Ok(Value::Object(fields)) = serde_json::to_value(filter) else { return Vec::new() };
    let mut conditions = Vec::new();
    for (name, value) in fields {
        match value {
            Value::Array(values) => conditions.extend(values.iter().map(|value| (name.clone(), plain(value)))),
            value => conditions.push((name, plain(&value))),
        }
    }
    conditions
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

impl OnePage {
    fn is_open(&self) -> bool {
        !self.redrive.state.is_terminal()
    }

    fn may_stop(&self) -> bool {
        self.is_open() && self.shell.may("operate")
    }

    fn calls(&self) -> String {
        let conditions = conditions(&self.redrive.filter);
        let pairs = conditions.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        format!("/console/calls{}", crate::page::query(pairs))
    }

    /// Says when it will be done, at its rate.
    fn left(&self) -> String {
        let left = self.redrive.matched.saturating_sub(handled(&self.redrive));
        show::span(i64::try_from(left.saturating_mul(1000) / u64::from(self.redrive.rate.max(1))).unwrap_or(i64::MAX))
    }
}
