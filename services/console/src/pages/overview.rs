//! `/console`: what needs attention, and where things stand.

use axum::{
    Router,
    extract::Form,
    http::header,
    response::{IntoResponse, Redirect, Response},
    routing::post,
};
use redial_api::{CallCounts, CallList, Figures, Statistics, TaskList};
use redial_proto::TaskView;
use serde::Deserialize;

use super::{sign_in::own_page, statistics};
use crate::{
    console::Console,
    failure::Failure,
    page::{self, Shell, THEME, Visiting},
    show,
};

/// Rows of a list on this page.
const ROWS: usize = 8;

pub(super) fn router() -> Router<Console> {
    Router::new().route("/console", page::of(overview)).route("/console/theme", post(theme))
}

#[derive(askama::Template)]
#[template(path = "overview.html")]
struct Page {
    shell: Shell,
    hours: Statistics,
    /// By tool and class.
    ends: Statistics,
    unknown: CallList,
    latest: Vec<TaskView>,
    running: TaskList,
    failed: TaskList,
}

async fn overview(visit: Visiting) -> Result<Page, Failure> {
    let day = (chrono::Utc::now() - chrono::TimeDelta::hours(24)).format("%Y-%m-%dT%H:00:00Z").to_string();
    let failed = format!("/v1/tasks?state=failed&since={day}&page_size=8");
    let (unknown, hours, ends, running, failed, latest): (_, _, _, _, _, TaskList) = tokio::try_join!(
        visit.api.get("/v1/calls?state=unknown&page_size=100&look_ms=250"),
        statistics::by(&visit, "hour", ""),
        statistics::by(&visit, "tool", "&and=class"),
        visit.api.get("/v1/tasks?state=running&page_size=100"),
        visit.api.get(&failed),
        visit.api.get("/v1/tasks?page_size=8"),
    )?;
    let shell = visit.frame("Overview").live("/v1/events").again(10);
    Ok(Page { shell, hours, ends, unknown, latest: latest.tasks, running, failed })
}

impl Page {
    /// Counts unknown outcomes that nobody has decided: `3`, or `100+`.
    fn open_unknown(&self) -> String {
        let open = self.unknown.calls.iter().filter(|call| call.redriven_as.is_none()).count();
        more(open, &self.unknown.next_page_token)
    }

    fn has_unknown(&self) -> bool {
        self.open_unknown() != "0"
    }

    fn running(&self) -> String {
        more(self.running.tasks.len(), &self.running.next_page_token)
    }

    /// Returns the tools with failures, those with the most first.
    fn worst(&self) -> Vec<Figures> {
        self.bad_by(|group| &mut group.tool)
    }

    /// Returns error classes, those with the most calls first.
    fn bad_classes(&self) -> Vec<Figures> {
        self.bad_by(|group| &mut group.class)
    }

    /// Returns the groups with failures, added up by a name.
    fn bad_by(&self, name: fn(&mut Figures) -> &mut Option<String>) -> Vec<Figures> {
        let mut sums = statistics::by_name(&self.ends, name);
        sums.retain(|group| group.counts.calls().bad() > 0);
        sums.sort_by_key(|group| std::cmp::Reverse(group.counts.calls().bad()));
        sums.truncate(ROWS);
        sums
    }

    fn bad(&self) -> u64 {
        statistics::sum(&self.hours, CallCounts::bad)
    }

    fn ended(&self) -> u64 {
        statistics::sum(&self.hours, |counts| counts.calls)
    }

    fn corrections(&self) -> u64 {
        statistics::sum(&self.hours, |counts| counts.corrections)
    }

    fn retries(&self) -> u64 {
        statistics::sum(&self.hours, |counts| counts.retries)
    }

    fn is_empty(&self) -> bool {
        self.latest.is_empty() && self.hours.groups.is_empty()
    }

    fn share_failed(&self) -> String {
        show::percent(self.bad(), self.ended())
    }
}

fn more(count: usize, next: &str) -> String {
    let more = if next.is_empty() { "" } else { "+" };
    format!("{}{more}", show::count(count))
}

/// Dark or light, and where to go on.
#[derive(Deserialize)]
struct Theme {
    theme: String,
    #[serde(default)]
    next: String,
}

async fn theme(Form(chosen): Form<Theme>) -> Response {
    let next = own_page(&chosen.next);
    let theme = if chosen.theme == "dark" { "dark" } else { "light" };
    let cookie = format!("{THEME}={theme}; Path=/console; Max-Age=31536000; SameSite=Strict; HttpOnly");
    ([(header::SET_COOKIE, cookie)], Redirect::to(next)).into_response()
}
