//! `/console/audit`: what people did, and messages that could not be taken.

use axum::Router;
use redial_api::{ActionItem, ActionList, RejectedItem, RejectedList};

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

fn state(action: &ActionItem) -> &'static str {
    match action.result.as_deref() {
        Some("done") => "done",
        Some(_) => "refused",
        None => "unknown",
    }
}

fn words(action: &ActionItem) -> String {
    action.result.as_deref().map_or_else(|| "not known".to_owned(), show::words)
}

/// Returns what it was about, with the page that shows it.
fn shown(action: &ActionItem) -> Vec<(String, Option<String>)> {
    let shown = |target: &String| {
        let is_id = target.parse::<uuid::Uuid>().is_ok();
        let page = match action.verb.split('.').next().unwrap_or_default() {
            "redrives" if is_id => Some(format!("/console/redrives/{target}")),
            // What was erased has no page, and webhooks and tokens have none of their own.
            "webhooks" | "tokens" | "tenants" => None,
            "conversations" if action.verb.ends_with("forget") => None,
            "conversations" => Some(format!("/console/conversations/{}", show::url(target))),
            "tools" => Some(format!("/console/tools/{}", show::url(target))),
            _ if is_id => Some(format!("/console/find?q={target}")),
            _ => None,
        };
        let text = if is_id { show::short_id(target) } else { show::line(target, 60) };
        (text, page)
    };
    action.targets.iter().take(5).map(shown).collect()
}

fn more(action: &ActionItem) -> i32 {
    action.target_count - i32::try_from(action.targets.len().min(5)).unwrap_or(0)
}

#[derive(askama::Template)]
#[template(path = "audit.html")]
struct AuditPage {
    shell: Shell,
    filter: Filter,
    chips: Vec<Chip>,
    actions: Vec<ActionItem>,
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

#[derive(askama::Template)]
#[template(path = "rejected.html")]
struct RejectedPage {
    shell: Shell,
    rejected: Vec<RejectedItem>,
    next: Option<String>,
}

async fn rejected(visit: Visiting) -> Result<RejectedPage, Failure> {
    let filter = Filter::of(&visit.here);
    let list: RejectedList = visit.api.get(&format!("/v1/rejected{}", filter.request(&[]))).await?;
    let next = filter.next(REJECTED, &list.next_page_token);
    let shell = Shell { section: "audit", ..visit.frame("Rejected messages") };
    Ok(RejectedPage { shell, rejected: list.rejected, next })
}
