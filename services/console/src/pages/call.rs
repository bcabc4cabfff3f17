//! `/console/calls/{id}`: one call with everything on record about it, and running it again.

mod again;
mod record;

use axum::{
    Router,
    extract::Path,
    response::Response,
    routing::{get, post},
};
use chrono::Utc;
use redial_api::{CallDetails, CallRecord};
use redial_proto::CallView;
use serde_json::{Value, json};

use self::record::{may_run_again, verdict};
use crate::{
    console::Console,
    failure::Failure,
    page::{Shell, Visit},
    show::{self, Html},
    story::{lanes, verdict::Verdict},
};

pub(super) fn router() -> Router<Console> {
    Router::new()
        .route("/console/calls/{id}", get(call))
        .route("/console/calls/{id}/again", get(again::form).post(again::run))
        .route("/console/calls/{id}/cancel", post(cancel))
}

#[derive(askama::Template)]
#[template(path = "call.html")]
struct Page {
    shell: Shell,
    call: CallView,
    more: CallDetails,
    can_run_again: bool,
    verdict: Verdict,
    ruler: Html,
    bars: Html,
}

async fn call(visit: Visit, Path(id): Path<String>) -> Response {
    visit.answer(page(&visit, &show::url(&id)).await)
}

async fn page(visit: &Visit, id: &str) -> Result<Page, Failure> {
    let record: CallRecord = visit.api.get(&format!("/v1/calls/{id}")).await?;
    let can_run_again = may_run_again(&record) && record.details.redriven_as.is_none();
    let (CallRecord { view: call, details: more }, now) = (record, Utc::now());
    let (ruler, bars) = lanes::of_call(&call, now);
    let mut shell = visit.frame(format!("{} {}", call.tool, show::short_id(&call.call)));
    if call.finished_at.is_none() {
        shell = shell.live(format!("/v1/calls/{id}/events")).again(2);
    }
    Ok(Page { shell, verdict: verdict(&call, now), ruler, bars, call, more, can_run_again })
}

async fn cancel(visit: Visit, Path(id): Path<String>) -> Response {
    let id = show::url(&id);
    let done = visit.api.post::<Value>(&format!("/v1/calls/{id}/cancel"), &json!({})).await;
    visit.done(done.map(|_| format!("/console/calls/{id}?done=cancelled")))
}

impl Page {
    fn may_cancel(&self) -> bool {
        self.call.finished_at.is_none() && self.shell.may("submit")
    }

    fn may_run_again(&self) -> bool {
        self.can_run_again && self.shell.may("operate")
    }
}
