//! `redial history`: calls, newest first.

use std::process::ExitCode;

use redial_proto::{ApiError, CallId, Code};
use redial_store::{
    Store, StoreError,
    audit::{CallLine, Filter},
};

use crate::{cli::HistoryArgs, connect, output, settings::Settings};

/// Calls in one query.
const PAGE: u32 = 1000;
const HEAD: [&str; 8] = ["call", "tool", "state", "class", "attempts", "submitted", "total", "next attempt"];

pub(crate) async fn run(settings: &Settings, args: HistoryArgs) -> anyhow::Result<ExitCode> {
    if args.limit == 0 {
        return Err(ApiError::new(Code::InvalidValue, "--limit is 0; allowed: 1 and more").into());
    }
    let store = connect::store(settings).await?;
    let filter = Filter { before: args.before, task: args.task, ..args.filter.into() };
    let mut pages = Pages::new(&store, filter);
    let (mut left, mut lines, mut last) = (args.limit, Vec::new(), None);
    while left > 0 {
        let page = pages.next(left.min(PAGE)).await?;
        let Some(end) = page.last() else { break };
        last = Some(end.call);
        left -= u32::try_from(page.len())?;
        if settings.json() {
            page.iter().try_for_each(output::json)?;
        } else {
            lines.extend(page);
        }
    }
    if !lines.is_empty() {
        output::line(render(&lines));
    }
    match last {
        None => output::note("no call on record matches"),
        Some(last) if left == 0 && !pages.next(1).await?.is_empty() => {
            output::note(format!("there are more: add --before {last}"));
        }
        Some(_) => {}
    }
    Ok(ExitCode::SUCCESS)
}

/// The calls that match a filter, page by page.
pub(super) struct Pages<'a> {
    store: &'a Store,
    filter: Filter,
    ended: bool,
}

impl<'a> Pages<'a> {
    pub(super) fn new(store: &'a Store, filter: Filter) -> Self {
        Self { store, filter, ended: false }
    }

    /// The next calls, at most `most`; empty after the last page.
    pub(super) async fn next(&mut self, most: u32) -> Result<Vec<CallLine>, StoreError> {
        if self.ended {
            return Ok(Vec::new());
        }
        let page = self.store.history(&self.filter, most).await?;
        self.ended = page.len() < most as usize;
        self.filter.before = page.last().map(|line| CallId(line.call)).or(self.filter.before);
        Ok(page)
    }
}

fn render(lines: &[CallLine]) -> String {
    let row = |line: &CallLine| {
        vec![
            line.call.to_string(),
            line.tool.clone(),
            line.state.clone(),
            line.class.clone().unwrap_or_default(),
            line.attempts.to_string(),
            output::time(line.submitted_at),
            line.total_ms.map(output::span).unwrap_or_default(),
            line.next_attempt_at.map(output::time).unwrap_or_default(),
        ]
    };
    output::table(&HEAD, lines.iter().map(row).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_for_each_call() {
        let line = |call: &str, state: &str, rest: serde_json::Value| CallLine {
            call: call.parse().unwrap(),
            tool: "订机票".to_owned(),
            state: state.to_owned(),
            class: rest["class"].as_str().map(str::to_owned),
            message: rest["message"].as_str().map(str::to_owned),
            attempts: 2,
            submitted_at: "2026-11-20T08:00:00.250Z".parse().unwrap(),
            finished_at: None,
            total_ms: rest["total_ms"].as_i64(),
            next_attempt_at: rest["next"].as_str().map(|time| time.parse().unwrap()),
            conversation: None,
            key: None,
            redriven_as: None,
        };
        let lines = [
            line(
                "01936b1c-0000-7000-8000-000000000003",
                "retry_wait",
                serde_json::json!({"next": "2026-11-20T08:00:03.5Z"}),
            ),
            line(
                "01936b1c-0000-7000-8000-000000000002",
                "failed",
                serde_json::json!({"class": "business_rule", "message": "sold out", "total_ms": 83_456}),
            ),
            line("01936b1c-0000-7000-8000-000000000001", "succeeded", serde_json::json!({"total_ms": 12})),
        ];
        insta::assert_snapshot!(render(&lines));
    }
}
