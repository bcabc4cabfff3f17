//! `/console/failed`: what failed, by tool and class.

mod redrive;

use axum::Router;
use redial_api::{CallList, Figures, Statistics};

use super::{calls::LOOK_MS, statistics};
use crate::{
    console::Console,
    failure::Failure,
    filter::{Chip, Filter},
    page::{self, Shell, Visiting},
};

const PATH: &str = "/console/failed";

pub(super) fn router() -> Router<Console> {
    Router::new().route(PATH, page::of(failed)).merge(redrive::router())
}

#[derive(askama::Template)]
#[template(path = "failed.html")]
struct Page {
    shell: Shell,
    filter: Filter,
    chips: Vec<Chip>,
    /// By tool and class, of the last 24 hours.
    groups: Vec<Figures>,
    list: CallList,
    next: Option<String>,
}

async fn failed(visit: Visiting) -> Result<Page, Failure> {
    let filter = Filter::of(&visit.here);
    let Statistics { mut groups, .. } = statistics::by(&visit, "tool", "&and=class").await?;
    groups.retain(|group| group.counts.calls().bad() > 0 && group.class.is_some());
    groups.sort_by_key(|group| std::cmp::Reverse(group.counts.calls().bad()));
    groups.truncate(30);
    let request = filter.request(&[("state", "failed"), ("page_size", "50"), ("look_ms", LOOK_MS)]);
    let list: CallList = visit.api.get(&format!("/v1/calls{request}")).await?;
    let next = filter.next(PATH, &list.next_page_token);
    let shell = visit.frame("Failed calls");
    let shell = if filter.get("page_token").is_empty() { shell.live("/v1/events").again(10) } else { shell };
    Ok(Page { shell, chips: filter.chips(PATH), groups, list, next, filter })
}

impl Page {
    fn of(&self, group: &Figures) -> String {
        let tool = group.tool.as_deref().unwrap_or_default();
        let class = group.class.as_deref().unwrap_or_default();
        // Those that were refused or are unknown are in another state.
        let state = if group.counts.calls().failed > 0 {
            ""
        } else if group.counts.calls().unknown > 0 {
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
        format!("/console/failed/redrive{}", self.filter.with("state", self.state()).query())
    }

    fn state(&self) -> &str {
        Some(self.filter.get("state")).filter(|state| !state.is_empty()).unwrap_or("failed")
    }

    /// Returns the ways in which calls end badly: the state, the address of the list, whether it is this one.
    fn states(&self) -> Vec<(&'static str, String, bool)> {
        let state =
            |state| (state, format!("{PATH}{}", self.filter.with("state", state).query()), state == self.state());
        ["failed", "refused", "unknown", "cancelled"].map(state).into()
    }
}
