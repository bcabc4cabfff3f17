//! `/console/unknown`: calls of which nobody knows whether they did their work, and the redrive that a person may order.

use axum::{Router, response::Response, routing::get};

use super::calls::{CallLine, CallList, LOOK_MS};
use crate::{
    console::Console,
    failure::Failure,
    filter::Filter,
    page::{Shell, Visit},
};

const PATH: &str = "/console/unknown";

pub(super) fn router() -> Router<Console> {
    Router::new().route(PATH, get(unknown))
}

#[derive(askama::Template)]
#[template(path = "unknown.html")]
struct Page {
    shell: Shell,
    open: Vec<CallLine>,
    decided: Vec<CallLine>,
    /// Every call was looked at, and no condition leaves one out.
    is_complete: bool,
    next: Option<String>,
}

async fn unknown(visit: Visit) -> Response {
    visit.answer(page(&visit).await)
}

async fn page(visit: &Visit) -> Result<Page, Failure> {
    let filter = Filter::of(&visit.here);
    let request = filter.request(&[("state", "unknown"), ("page_size", "100"), ("look_ms", LOOK_MS)]);
    let list: CallList = visit.api.get(&format!("/v1/calls{request}")).await?;
    let next = Some(&list.next_page_token).filter(|token| !token.is_empty());
    let next = next.map(|token| format!("{PATH}{}", filter.at(token).query()));
    let is_complete = list.searched.complete && filter.is_empty();
    let (decided, open) = list.calls.into_iter().partition(|call| call.redriven_as.is_some());
    let shell = visit.frame("Unknown outcomes").live("/v1/events").again(10);
    Ok(Page { shell, open, decided, is_complete, next })
}
