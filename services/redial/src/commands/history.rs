//! `redial history`: calls, newest first, or the slowest of them.

mod csv;
mod print;
mod walk;

use std::process::ExitCode;

use redial_api::CallItem;
use redial_proto::{ApiError, CallId, Code, turn};
use redial_store::{
    Store, StoreError, Time,
    audit::{Filter, Found, FoundCall, Inside},
};
use tokio_util::sync::CancellationToken;

use self::{
    print::{Form, Printer},
    walk::Walk,
};
use crate::{cli::HistoryArgs, connect, ids, output, settings::Settings, timeline::totals};

/// Calls in one step.
const PAGE: usize = 1000;
/// Calls in one step that only compares how long they took, and those that are looked at to know whether there are more.
const PAGE_OF_TIMES: usize = 10_000;
/// Calls that a search, or a look for the slowest, looks at before it asks whether to go on.
const LOOK: usize = 100_000;
/// Calls that are listed unless a limit is set.
const LIMIT: usize = 50;
/// Exit code after Ctrl-C.
const INTERRUPTED: u8 = 130;

pub(crate) async fn run(settings: &Settings, args: HistoryArgs) -> anyhow::Result<ExitCode> {
    let form = match (args.csv, settings.json()) {
        (true, true) => return Err(wrong("--csv and --json are both set; allowed: one of them")),
        (true, false) => Form::Csv,
        (false, true) => Form::Json,
        (false, false) => Form::Text { wide: args.wide },
    };
    let store = connect::store(settings).await?;
    // Without a limit the slowest calls would be all calls, in memory.
    let unless_set = if args.all && !args.slowest { usize::MAX } else { LIMIT };
    let limit = args.limit.map_or(unless_set, |limit| limit as usize);
    let (slowest, most) = (args.slowest, if args.all { usize::MAX } else { LOOK });
    let more = More { all: args.all, limited: args.limit.is_some() };
    let inside = Inside { arguments: args.argument.clone(), output: args.output.clone(), text: args.contains.clone() };
    // A search ends by Ctrl-C with what it found; a list simply ends.
    let searches = slowest || !inside.is_empty();
    let interrupted = if searches { connect::shutdown()? } else { CancellationToken::new() };
    let walk = Walk::new(&store, filter(settings, &store, args).await?, inside);
    let printer = Printer::new(&store, form).await?;
    let mut question = Question { walk, printer, limit, most, interrupted };
    let stop = if slowest { question.slowest().await? } else { question.newest(searches).await? };
    let Question { mut walk, printer, .. } = question;
    if searches {
        let at = walk.last_submitted_at().await?;
        let looked = walk.looked();
        let matches = (!slowest).then_some(printer.printed());
        output::note(how_far(&HowFar { stop, looked, matches, last: walk.last().zip(at), more }));
    } else if printer.printed() == 0 {
        output::note("no call on record matches");
    } else if stop == Stop::Limit
        && let Some(last) = walk.last()
    {
        let are = match walk.any_left(PAGE_OF_TIMES).await? {
            Some(true) => "are",
            None => "may be",
            Some(false) => return Ok(ExitCode::SUCCESS),
        };
        output::note(format!("there {are} more: {}", more.after(last, stop)));
    }
    Ok(if stop == Stop::Interrupted { ExitCode::from(INTERRUPTED) } else { ExitCode::SUCCESS })
}

fn wrong(message: &str) -> anyhow::Error {
    ApiError::new(Code::InvalidValue, message).into()
}

async fn filter(settings: &Settings, store: &Store, args: HistoryArgs) -> anyhow::Result<Filter> {
    let before = ids::call(store, args.before.as_ref()).await?;
    let task = ids::task(store, args.task.as_ref()).await?;
    let filter = Filter { tenant: settings.only_tenant()?, ..Filter::from(args.filter) };
    let tool = filter.tool.or_else(|| args.model.as_deref().map(turn::tool_name));
    Ok(Filter { tool, before, task, worker: args.worker, ..filter })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stop {
    Limit,
    Looked,
    Ended,
    Interrupted,
}

struct Question<'a> {
    walk: Walk<'a>,
    printer: Printer<'a>,
    limit: usize,
    /// Calls that a search looks at at most.
    most: usize,
    interrupted: CancellationToken,
}

impl Question<'_> {
    /// Prints the calls that match, newest first, step by step.
    async fn newest(&mut self, searches: bool) -> anyhow::Result<Stop> {
        loop {
            let left = self.limit - self.printer.printed();
            if left == 0 {
                return Ok(Stop::Limit);
            }
            let step = if searches { PAGE.min(self.most - self.walk.looked()) } else { self.walk.step(left).min(PAGE) };
            let Some(mut found) = self.step(step).await? else { return Ok(Stop::Interrupted) };
            if found.len() > left {
                found.truncate(left);
                self.walk.back_to(found.last());
            }
            self.printer.print(&found).await?;
            if self.walk.ended() {
                return Ok(Stop::Ended);
            }
            if searches && self.walk.looked() >= self.most {
                return Ok(Stop::Looked);
            }
        }
    }

    /// Prints those of the calls that took longest.
    async fn slowest(&mut self) -> anyhow::Result<Stop> {
        let mut slowest: Vec<FoundCall> = Vec::new();
        let page = if self.walk.looks_inside() { PAGE } else { PAGE_OF_TIMES };
        let stop = loop {
            let Some(found) = self.step(page.min(self.most - self.walk.looked())).await? else {
                break Stop::Interrupted;
            };
            slowest.extend(found.iter().filter(|found| found.total_ms.is_some()));
            slowest.sort_by_key(|found| std::cmp::Reverse((found.total_ms, found.call)));
            slowest.truncate(self.limit);
            if self.walk.ended() {
                break Stop::Ended;
            }
            if self.walk.looked() >= self.most {
                break Stop::Looked;
            }
        };
        for part in slowest.chunks(PAGE) {
            self.printer.print(part).await?;
        }
        Ok(stop)
    }

    /// Returns the calls that match among the next ones; `None` after Ctrl-C.
    async fn step(&mut self, calls: usize) -> anyhow::Result<Option<Vec<FoundCall>>> {
        tokio::select! {
            biased;
            () = self.interrupted.cancelled() => Ok(None),
            found = self.walk.next(calls) => found.map(Some),
        }
    }
}

#[derive(Clone, Copy)]
struct More {
    all: bool,
    limited: bool,
}

impl More {
    /// Returns the flags with which the next run goes on after this call; not those that would change nothing.
    fn after(self, last: CallId, stop: Stop) -> String {
        let or = match stop {
            Stop::Limit if self.limited => ", or raise --limit",
            _ if self.all => "",
            _ => ", or --all",
        };
        format!("--before {last}{or}")
    }
}

struct HowFar {
    stop: Stop,
    looked: usize,
    /// Calls that it printed; `None` for the slowest, which are those of all that it looked at.
    matches: Option<usize>,
    /// The last call that it looked at, and when that was submitted.
    last: Option<(CallId, Time)>,
    more: More,
}

/// Says what a search looked at, and how it goes on: lines of 80 columns at most.
fn how_far(far: &HowFar) -> String {
    let Some((last, at)) = far.last else {
        return match far.stop {
            Stop::Interrupted => "interrupted before a call was looked at".to_owned(),
            _ => "no call on record has this tool, state, time and so on: none was searched".to_owned(),
        };
    };
    let all = if far.stop == Stop::Ended { "all " } else { "" };
    let looked = totals::count(far.looked as u64, "call");
    let (verb, matches) = match far.matches {
        Some(matches) => ("looked at", format!("; matches: {}", totals::thousands(matches as u64))),
        None => ("these are the slowest of", String::new()),
    };
    let looked = format!("{verb} {all}{looked}, back to {}{matches}", at.format("%Y-%m-%d %H:%M:%SZ"));
    match far.stop {
        Stop::Ended => looked,
        Stop::Interrupted => format!("{looked}\ninterrupted; to go on: {}", far.more.after(last, far.stop)),
        Stop::Limit | Stop::Looked => format!("{looked}\nto go on: {}", far.more.after(last, far.stop)),
    }
}

/// Reads lines page by page: what a filter selects for another command.
pub(super) struct Pages<'a> {
    store: &'a Store,
    position: Position,
}

struct Position {
    filter: Filter,
    ended: bool,
}

impl Position {
    /// Goes on behind what was found. Whether that was the end is known from the question itself: calls that were pruned
    /// before their lines were read make a page shorter, too.
    fn advance(&mut self, found: &Found) {
        self.ended = found.ended;
        self.filter.before = found.last.or(self.filter.before);
    }
}

impl<'a> Pages<'a> {
    pub(super) const fn new(store: &'a Store, filter: Filter) -> Self {
        Self { store, position: Position { filter, ended: false } }
    }

    /// Reads the next calls, at most `most`; empty after the last page.
    pub(super) async fn next(&mut self, most: u32) -> Result<Vec<CallItem>, StoreError> {
        while !self.position.ended {
            let found = self.store.find_calls(&self.position.filter, most).await?;
            self.position.advance(&found);
            let calls: Vec<CallId> = found.calls.iter().map(|found| found.call).collect();
            let page = self.store.call_lines(&calls).await?;
            if !page.is_empty() {
                return Ok(page);
            }
        }
        Ok(Vec::new())
    }
}

#[cfg(test)]
mod tests;
