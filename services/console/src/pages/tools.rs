//! `/console/tools`: what can be called, and where descriptions should be mended.

use axum::{Router, extract::Path, response::Response, routing::get};
use chrono::{DateTime, TimeDelta, Utc};
use redial_api::{
    CallCounts, Figures, ModelStatistics, PointerItem, PointerList, QueueItem, QueueList, Statistics, ToolPage,
    WhoAsks, WorkerList,
};
use redial_proto::ToolView;

use super::statistics;
use crate::{
    chart::{self, Column},
    console::Console,
    failure::Failure,
    filter::Filter,
    page::{self, Shell, Visit, Visiting},
    show::{self, Html},
};

const PATH: &str = "/console/tools";
/// Classes that have a colour of their own in a chart; the rest is one.
const COLOURS: [&str; 5] = ["c1", "c2", "c3", "c0", "c5"];

pub(super) fn router() -> Router<Console> {
    Router::new().route(PATH, page::of(list)).route("/console/tools/{tool}", get(one))
}

#[derive(askama::Template)]
#[template(path = "tools.html")]
struct ListPage {
    shell: Shell,
    tools: Vec<ToolView>,
    figures: Statistics,
    next: Option<String>,
}

async fn list(visit: Visiting) -> Result<ListPage, Failure> {
    let filter = Filter::of(&visit.here);
    let list: ToolPage = visit.api.get(&format!("/v1/tools{}", filter.request(&[("page_size", "100")]))).await?;
    let figures = statistics::by(&visit, "tool", "").await?;
    let next = filter.next(PATH, &list.next_page_token);
    Ok(ListPage { shell: visit.frame("Tools").again(10), tools: list.tools, figures, next })
}

impl ListPage {
    fn group(&self, tool: &ToolView) -> Option<&Figures> {
        self.figures.groups.iter().find(|group| group.tool.as_deref() == Some(&tool.spec.name))
    }
}

fn percent(place: &PointerItem) -> String {
    format!("{:.0} %", place.share * 100.0)
}

fn name(place: &PointerItem) -> String {
    if place.pointer.is_empty() { "the whole".to_owned() } else { show::line(&place.pointer, 120) }
}

fn bar(place: &PointerItem) -> Html {
    let width = (place.share * 100.0).clamp(0.5, 100.0);
    Html(format!(
        "<svg class=\"meter\" aria-hidden=\"true\"><rect class=\"c2\" width=\"{width:.1}%\" height=\"100%\"/></svg>"
    ))
}

#[derive(askama::Template)]
#[template(path = "tool.html")]
struct OnePage {
    shell: Shell,
    tool: ToolView,
    days: u32,
    pointers: PointerList,
    classes: Statistics,
    hours: Statistics,
    models: ModelStatistics,
    queue: Option<QueueItem>,
    workers: Option<Vec<String>>,
}

async fn one(visit: Visit, Path(tool): Path<String>) -> Response {
    visit.answer(one_page(&visit, &tool).await)
}

async fn one_page(visit: &Visit, name: &str) -> Result<OnePage, Failure> {
    let (tool, days) = (show::url(name), 7);
    let since = (Utc::now() - TimeDelta::days(days)).format("%Y-%m-%dT%H:00:00Z");
    let view: ToolView = visit.api.get(&format!("/v1/tools/{tool}")).await?;
    let pointers = visit.api.get(&format!("/v1/tools/{tool}/pointers?since={since}")).await?;
    let models = visit.api.get(&format!("/v1/statistics/models?by=model&tool={tool}&since={since}")).await?;
    let classes = statistics::by(visit, "class", &format!("&tool={tool}&since={since}")).await?;
    let hours = statistics::by(visit, "hour", &format!("&and=class&tool={tool}")).await?;
    let queues: QueueList = visit.api.get("/v1/queues").await?;
    let is_operators = visit.shell.who.as_ref().is_some_and(WhoAsks::is_operators);
    let workers = if is_operators {
        let list: WorkerList = visit.api.get("/v1/workers").await?;
        let has = list.workers.into_iter().filter(|worker| worker.tools.iter().any(|tool| tool == name));
        Some(has.map(|worker| worker.worker).collect())
    } else {
        None
    };
    Ok(OnePage {
        queue: queues.queues.into_iter().find(|queue| queue.tool == name),
        shell: visit.frame(view.spec.name.clone()).again(10),
        tool: view,
        days: 7,
        pointers,
        classes,
        hours,
        models,
        workers,
    })
}

impl OnePage {
    fn schema(&self) -> Html {
        crate::json::tree("schema", &self.tool.spec.parameters)
    }

    fn retry(&self) -> Html {
        let retry = serde_json::to_value(self.tool.spec.retry).unwrap_or_default();
        crate::json::tree("retry", &retry)
    }

    fn bad_classes(&self) -> Vec<&Figures> {
        self.classes.groups.iter().filter(|group| group.counts.calls().bad() > 0).collect()
    }

    fn ended(&self) -> u64 {
        statistics::sum(&self.classes, |counts| counts.calls)
    }

    fn bad(&self) -> u64 {
        statistics::sum(&self.classes, CallCounts::bad)
    }

    /// Says what to mend first.
    fn advice(&self) -> Option<String> {
        let first = self.pointers.errors.first().filter(|first| first.calls >= 2)?;
        Some(format!(
            "{} of what is corrected is {}: say in the schema what it takes (rule {}), with an example.",
            percent(first),
            name(first),
            first.rule
        ))
    }

    /// Draws failures by hour and class.
    fn chart(&self) -> Html {
        let names: Vec<&str> = self.bad_classes().iter().take(4).filter_map(|group| group.class.as_deref()).collect();
        let mut hours: std::collections::BTreeMap<DateTime<Utc>, Vec<u64>> = std::collections::BTreeMap::new();
        let mut at = self.hours.since;
        while at <= self.hours.until && hours.len() < 60 {
            hours.insert(at, vec![0; names.len() + 1]);
            at += TimeDelta::hours(1);
        }
        for group in self.hours.groups.iter().filter(|group| group.counts.calls().bad() > 0) {
            let (Some(hour), Some(class)) = (group.hour, group.class.as_deref()) else { continue };
            let slot = names.iter().position(|name| *name == class).unwrap_or(names.len());
            if let Some(part) = hours.get_mut(&hour).and_then(|parts| parts.get_mut(slot)) {
                *part += group.counts.calls().bad();
            }
        }
        let words: Vec<String> = names.iter().map(|name| show::words(name)).chain(["other".to_owned()]).collect();
        let colours = COLOURS.into_iter().take(names.len()).chain(["c5"]);
        let series: Vec<(&str, &str)> = words.iter().map(String::as_str).zip(colours).collect();
        let column = |(at, parts): (DateTime<Utc>, Vec<u64>)| Column { label: at.format("%H:%M").to_string(), parts };
        let columns: Vec<Column> = hours.into_iter().map(column).collect();
        chart::columns("Calls of this tool that failed, by hour and class", &series, &columns)
    }
}
