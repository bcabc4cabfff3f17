//! Counts the calls that would run again, and changes nothing.

use std::{collections::BTreeMap, process::ExitCode};

use redial_api::CallItem;
use redial_engine::call::may_redrive;
use redial_proto::{ApiError, CallId, CallState, Code, ErrorClass};
use redial_store::{Store, audit::CallAudit};

use super::select::{Selection, matching};
use crate::{
    connect, exit, output,
    settings::Settings,
    table::{self, Cell, Column, Paper, Table},
    timeline::totals,
};

const COLUMNS: [Column; 4] =
    [Column::shortened("tool", 20), Column::whole("state"), Column::whole("class"), Column::whole("calls")];

pub(super) async fn run(settings: &Settings, selection: Selection) -> anyhow::Result<ExitCode> {
    let store = connect::store(settings).await?;
    let mut counts = Counts::default();
    let mut rejected = false;
    match selection {
        Selection::Named(calls) => {
            for call in calls {
                rejected |= named(&store, call, &mut counts).await?;
            }
        }
        Selection::Filtered(filters) => {
            let mut redriven = 0;
            matching(&store, filters, |line| match line.redriven_as {
                Some(_) => redriven += 1,
                None => counts.add(&line),
            })
            .await?;
            if redriven > 0 {
                output::note(format!("already redriven, and not counted: {}", totals::count(redriven, "call")));
            }
        }
    }
    if settings.json() {
        counts.groups().try_for_each(|group| output::json(&group))?;
    } else {
        output::line(counts.render(Paper::of_stdout(false)))?;
    }
    Ok(if rejected { ExitCode::from(exit::FAILED) } else { ExitCode::SUCCESS })
}

/// Counts one call, or prints why it would not run again; true if it would be rejected.
async fn named(store: &Store, call: CallId, counts: &mut Counts) -> anyhow::Result<bool> {
    let record = store.record(call).await?;
    match redrivable(call, record.as_ref()) {
        Ok(line) => counts.add(line),
        Err(Obstacle::Redriven(by)) => output::note(format!("call {call} was already redriven as {by}")),
        Err(Obstacle::Rejected(error)) => {
            output::note(format!("call {call}: {error}"));
            return Ok(true);
        }
    }
    Ok(false)
}

/// Why a call would not run again.
enum Obstacle {
    /// As this call.
    Redriven(CallId),
    Rejected(ApiError),
}

fn redrivable(call: CallId, record: Option<&CallAudit>) -> Result<&CallItem, Obstacle> {
    let rejected = |code, message: String| Obstacle::Rejected(ApiError::new(code, message));
    let record = record.ok_or_else(|| rejected(Code::CallNotFound, format!("no call {call} is on record")))?;
    let state = record.line.state;
    if may_redrive(state).is_err() {
        let message = format!("the call is {state}; allowed: failed, cancelled, unknown");
        return Err(rejected(Code::WrongState, message));
    }
    match record.line.redriven_as {
        Some(by) => Err(Obstacle::Redriven(by)),
        None => Ok(&record.line),
    }
}

/// The number of calls of each tool, state and class.
#[derive(Default)]
struct Counts(BTreeMap<(String, &'static str, Option<&'static str>), u64>);

#[derive(serde::Serialize)]
struct Group<'a> {
    tool: &'a str,
    state: &'static str,
    class: Option<&'static str>,
    calls: u64,
}

impl Counts {
    fn add(&mut self, line: &CallItem) {
        let group = (line.tool.clone(), CallState::as_str(line.state), line.class.map(ErrorClass::as_str));
        *self.0.entry(group).or_default() += 1;
    }

    fn total(&self) -> u64 {
        self.0.values().sum()
    }

    fn groups(&self) -> impl Iterator<Item = Group<'_>> {
        self.0.iter().map(|((tool, state, class), calls)| Group { tool, state, class: *class, calls: *calls })
    }

    fn render(&self, paper: Paper) -> String {
        let summary = match self.total() {
            0 => return "no call would run again".to_owned(),
            1 => "1 call would run again".to_owned(),
            n => format!("{n} calls would run again"),
        };
        let row = |group: Group<'_>| {
            let class = group.class.unwrap_or_default();
            vec![Cell::from(group.tool), table::state(group.state), class.into(), group.calls.to_string().into()]
        };
        let rows: Vec<_> = self.groups().map(row).collect();
        format!("{}\n{summary}", Table::new(paper, &COLUMNS).part(&rows))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeline::sample;

    #[test]
    fn counts_by_tool_state_and_class() {
        let mut counts = Counts::default();
        assert_eq!(counts.render(Paper::test(None)), "no call would run again");
        for (tool, state, class) in [
            ("echo", CallState::Failed, ErrorClass::Timeout),
            ("echo", CallState::Cancelled, ErrorClass::Cancelled),
            ("echo", CallState::Failed, ErrorClass::Timeout),
            ("book_flight", CallState::Failed, ErrorClass::Auth),
        ] {
            counts.add(&CallItem { tool: tool.to_owned(), state, class: Some(class), ..sample::line() });
        }
        insta::assert_snapshot!(counts.render(Paper::test(None)));
    }
}
