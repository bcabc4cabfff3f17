//! `/console/audit`: what people did, and messages that could not be taken.

use axum::Router;
use chrono::{DateTime, Utc};
use serde::Deserialize;

use crate::{
    console::Console,
    failure::Failure,
    filter::{Chip, Filter},
    page::{self, Shell, Visiting},
    show,
};

const PATH: &str = "/console/audit";
const REJECTED: &str = "/console/rejected";

pub(super) fn router() -> Router<Console> {
    Router::new().route(PATH, page::of(audit)).route(REJECTED, page::of(rejected))
}

/// `GET /v1/actions`.
#[derive(Deserialize)]
struct ActionList {
    actions: Vec<Action>,
    #[serde(default)]
    next_page_token: String,
}

/// What somebody did.
#[derive(Deserialize)]
struct Action {
    id: i64,
    at: DateTime<Utc>,
    user: String,
    role: String,
    door: String,
    token: Option<String>,
    verb: String,
    targets: Vec<String>,
    target_count: i64,
    result: Option<String>,
    changed: Option<i64>,
}

impl Action {
    fn state(&self) -> &'static str {
        match self.result.as_deref() {
            Some("done") => "done",
            Some(_) => "refused",
            None => "unknown",
        }
    }

    fn words(&self) -> String {
        self.result.as_deref().map_or_else(|| "not known".to_owned(), show::words)
    }

    /// What it was about, with the page that shows it.
    fn shown(&self) -> Vec<(String, Option<String>)> {
        let shown = |target: &String| {
            let is_id = target.parse::<uuid::Uuid>().is_ok();
            let page = match self.verb.split('.').next().unwrap_or_default() {
                "redrives" if is_id => Some(format!("/console/redrives/{target}")),
                // What was erased has no page, and webhooks and tokens have none of their own.
                "webhooks" | "tokens" | "tenants" => None,
                "conversations" if self.verb.ends_with("forget") => None,
                "conversations" => Some(format!("/console/conversations/{}", show::url(target))),
                "tools" => Some(format!("/console/tools/{}", show::url(target))),
                _ if is_id => Some(format!("/console/find?q={target}")),
                _ => None,
            };
            let text = if is_id { show::short_id(target).to_owned() } else { show::line(target, 60) };
            (text, page)
        };
        self.targets.iter().take(5).map(shown).collect()
    }

    fn more(&self) -> i64 {
        self.target_count - i64::try_from(self.targets.len().min(5)).unwrap_or(0)
    }
}

#[derive(askama::Template)]
#[template(path = "audit.html")]
struct AuditPage {
    shell: Shell,
    filter: Filter,
    chips: Vec<Chip>,
    actions: Vec<Action>,
    next: Option<String>,
}

async fn audit(visit: Visiting) -> Result<AuditPage, Failure> {
    let filter = Filter::of(&visit.here);
    let list: ActionList = visit.api.get(&format!("/v1/actions{}", filter.request(&[]))).await?;
    let next = filter.next(PATH, &list.next_page_token);
    Ok(AuditPage {
        shell: visit.frame("Audit").again(10),
        chips: filter.chips(PATH),
        actions: list.actions,
        next,
        filter,
    })
}

/// `GET /v1/rejected`.
#[derive(Deserialize)]
struct RejectedList {
    rejected: Vec<Rejected>,
    #[serde(default)]
    next_page_token: String,
}

/// A message that could not be taken.
#[derive(Deserialize)]
struct Rejected {
    id: i64,
    received_at: DateTime<Utc>,
    code: String,
    message: String,
    error_count: u32,
    payload: String,
    payload_bytes: usize,
}

#[derive(askama::Template)]
#[template(path = "rejected.html")]
struct RejectedPage {
    shell: Shell,
    rejected: Vec<Rejected>,
    next: Option<String>,
}

async fn rejected(visit: Visiting) -> Result<RejectedPage, Failure> {
    let filter = Filter::of(&visit.here);
    let list: RejectedList = visit.api.get(&format!("/v1/rejected{}", filter.request(&[]))).await?;
    let next = filter.next(REJECTED, &list.next_page_token);
    let shell = Shell { section: "audit", ..visit.frame("Rejected messages") };
    Ok(RejectedPage { shell, rejected: list.rejected, next })
}
