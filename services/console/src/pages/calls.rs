//! `/console/calls`: the calls, searched by whatever is known of them.

use axum::Router;
use redial_api::{CallItem, CallList};
use redial_proto::{CallState, ErrorClass};

use crate::{
    console::Console,
    failure::Failure,
    filter::{Chip, Filter},
    page::{self, Shell, Visiting},
    show,
};

pub(crate) const PATH: &str = "/console/calls";
/// How long one look takes at most, in ms: whoever wants to go further back says so.
pub(crate) const LOOK_MS: &str = "250";

pub(super) fn router() -> Router<Console> {
    Router::new().route(PATH, page::of(calls))
}

/// Returns what is said under the name of a call.
pub(crate) fn said(call: &CallItem) -> String {
    let retry = call.next_attempt_at.filter(|_| call.state == CallState::RetryWait);
    let retry = retry.map(|at| format!("retry due {}", at.format("%H:%M:%S UTC")));
    let parts = [retry, call.message.as_deref().map(|message| show::line(message, 200))];
    parts.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

pub(crate) fn took(call: &CallItem) -> String {
    call.total_ms.map_or_else(|| "open".to_owned(), |ms| show::span(ms.max(0)))
}

/// Says how many attempts a call had, and who ran the last.
pub(crate) fn ran(call: &CallItem) -> String {
    match (call.attempts, &call.last_worker) {
        (0, _) => "no attempt".to_owned(),
        (n, Some(worker)) => format!("{} · {}", show::things(n, "attempt"), show::line(worker, 40)),
        (n, None) => show::things(n, "attempt"),
    }
}

#[derive(askama::Template)]
#[template(path = "calls.html")]
struct Page {
    shell: Shell,
    filter: Filter,
    chips: Vec<Chip>,
    list: CallList,
    next: Option<String>,
}

async fn calls(visit: Visiting) -> Result<Page, Failure> {
    let filter = Filter::of(&visit.here);
    let request = filter.request(&[("page_size", "50"), ("look_ms", LOOK_MS)]);
    let list: CallList = visit.api.get(&format!("/v1/calls{request}")).await?;
    let next = filter.next(PATH, &list.next_page_token);
    let shell = visit.frame("Calls");
    let shell = if filter.get("page_token").is_empty() { shell.live("/v1/events").again(10) } else { shell };
    Ok(Page { shell, chips: filter.chips(PATH), list, next, filter })
}

/// The conditions that a form has a field for: name, label, example.
const FIELDS: [(&str, &str, &str); 10] = [
    ("tool", "Tool", "book_flight"),
    ("model", "Model", ""),
    ("agent", "Agent", ""),
    ("worker", "Worker", ""),
    ("conversation", "Conversation", ""),
    ("key", "Idempotency key", ""),
    ("argument", "Argument", "/city=Paris"),
    ("output", "Result", "/status=sold_out"),
    ("contains", "Text in either", ""),
    ("not_tool", "Not of tool", ""),
];

impl Page {
    fn states(&self) -> Vec<(&'static str, String, bool)> {
        CallState::ALL.iter().map(|state| self.toggle("state", state.as_str())).collect()
    }

    fn toggle(&self, name: &'static str, value: &'static str) -> (&'static str, String, bool) {
        let is_on = self.filter.is(name, value);
        (value, format!("{PATH}{}", self.filter.with(name, if is_on { "" } else { value }).query()), is_on)
    }

    fn fields(&self) -> impl Iterator<Item = &'static (&'static str, &'static str, &'static str)> + use<> {
        FIELDS.iter()
    }

    fn classes(&self) -> impl Iterator<Item = &'static str> + use<> {
        ErrorClass::ALL.iter().map(|class| class.as_str())
    }

    /// Returns what the form has no field for and goes with it: other conditions, and further values of repeated ones.
    fn kept(&self) -> Vec<(String, String)> {
        let mut fields: Vec<&str> = FIELDS.iter().map(|(field, ..)| *field).collect();
        fields.extend(["class", "not_class", "since", "until"]);
        let mut kept = Vec::new();
        for (name, value) in self.filter.pairs().iter().filter(|(name, _)| !Filter::is_own(name)) {
            match fields.iter().position(|field| field == name) {
                // The first value stands in the field.
                Some(at) => _ = fields.swap_remove(at),
                None => kept.push((name.clone(), value.clone())),
            }
        }
        kept
    }

    fn export(&self, format: &str) -> String {
        let filter = self.filter.with("page_size", "").with("look_ms", "");
        format!("/v1/calls/export{}", filter.with("format", format).query())
    }

    /// Writes a filter that a redrive understands, too.
    fn redrive(&self) -> String {
        format!("/console/failed{}", self.filter.query())
    }
}
