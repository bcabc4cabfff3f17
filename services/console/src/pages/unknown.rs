//! `/console/unknown`: calls of which nobody knows whether they did their work, and the redrive that a person may order.

use axum::Router;
use redial_api::{CallItem, CallList};

use super::calls::LOOK_MS;
use crate::{
    console::Console,
    failure::Failure,
    filter::Filter,
    page::{self, Shell, Visiting},
};

const PATH: &str = "/console/unknown";

pub(super) fn router() -> Router<Console> {
    Router::new().route(PATH, page::of(unknown))
}

#[derive(askama::Template)]
#[template(path = "unknown.html")]
struct Page {
    shell: Shell,
    open: Vec<CallItem>,
    decided: Vec<CallItem>,
    /// Every call was looked at, and no condition leaves one out.
    is_complete: bool,
    next: Option<String>,
}

async fn unknown(visit: Visiting) -> Result<Page, Failure> {
    let filter = Filter::of(&visit.here);
    let request = filter.request(&[("state", "unknown"), ("page_size", "100"), ("look_ms", LOOK_MS)]);
    let list: CallList = visit.api.get(&format!("/v1/calls{request}")).await?;
    let next = filter.next(PATH, &list.next_page_token);
    let is_complete = list.searched.complete && filter.is_empty();
    let (decided, open) = list.calls.into_iter().partition(|call| call.redriven_as.is_some());
    let shell = visit.frame("Unknown outcomes").live("/v1/events").again(10);
    Ok(Page { shell, open, decided, is_complete, next })
}
