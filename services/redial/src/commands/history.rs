//! `redial history`: calls, newest first, or the slowest of them.

mod csv;
mod print;
mod walk;

use std::process::ExitCode;

use redial_proto::{ApiError, CallId, Code, turn};
use redial_store::{
    Store, StoreError,
    audit::{CallLine, Filter, FoundCall},
};
use tokio_util::sync::CancellationToken;

use self::{
    print::{Form, Printer},
    walk::{Inside, Walk},
};
use crate::{cli::HistoryArgs, connect, ids, output, settings::Settings, timeline::totals};

/// Calls in one step.
const PAGE: usize = 1000;
/// Calls in one step that only compares how long they took.
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
    if args.limit == Some(0) {
        return Err(wrong("--limit is 0; allowed: 1 and more"));
    }
    let store = connect::store(settings).await?;
    // Without a limit the slowest calls would be all calls, in memory.
    let unless_set = if args.all && !args.slowest { usize::MAX } else { LIMIT };
    let limit = args.limit.map_or(unless_set, |limit| limit as usize);
    let (slowest, most) = (args.slowest, if args.all { usize::MAX } else { LOOK });
    let inside = Inside { arguments: args.argument.clone(), output: args.output.clone(), text: args.contains.clone() };
    // A search ends by Ctrl-C with what it found; a list simply ends.
    let searches = slowest || !inside.is_empty();
    let interrupted = if searches { connect::shutdown()? } else { CancellationToken::new() };
    let walk = Walk::new(&store, filter(&store, args).await?, inside);
    let printer = Printer::new(&store, form).await?;
    let mut question = Question { walk, printer, limit, most, interrupted };
    let stop = if slowest { question.slowest().await? } else { question.newest(searches).await? };
    let Question { mut walk, printer, .. } = question;
    if searches {
        output::note(how_far(&walk, printer.printed(), stop, slowest));
    } else if printer.printed() == 0 {
        output::note("no call on record matches");
    } else if stop == Stop::Limit
        && let Some((last, _)) = walk.last()
        && !walk.next(1).await?.is_empty()
    {
        output::note(format!("there are more: add --before {last}, or --all"));
    }
    Ok(if stop == Stop::Interrupted { ExitCode::from(INTERRUPTED) } else { ExitCode::SUCCESS })
}

fn wrong(message: &str) -> anyhow::Error {
    ApiError::new(Code::InvalidValue, message).into()
}

async fn filter(store: &Store, args: HistoryArgs) -> anyhow::Result<Filter> {
    let before = ids::call(store, args.before.as_ref()).await?;
    let task = ids::task(store, args.task.as_ref()).await?;
    let filter = Filter::from(args.filter);
    let tool = filter.tool.or_else(|| args.model.as_deref().map(turn::tool_name));
    Ok(Filter { tool, before, task, worker: args.worker, ..filter })
}

/// Why nothing more is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stop {
    /// So many calls were wanted.
    Limit,
    /// So many calls were looked at.
    Looked,
    /// All calls were looked at.
    Ended,
    /// Ctrl-C.
    Interrupted,
}

struct Question<'a> {
    walk: Walk<'a>,
    printer: Printer<'a>,
    /// Calls that are printed at most.
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
            let step = if searches { PAGE.min(self.most - self.walk.looked()) } else { left.min(PAGE) };
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

    /// The calls that match among the next ones; `None` after Ctrl-C.
    async fn step(&mut self, calls: usize) -> anyhow::Result<Option<Vec<FoundCall>>> {
        tokio::select! {
            biased;
            () = self.interrupted.cancelled() => Ok(None),
            found = self.walk.next(calls) => found.map(Some),
        }
    }
}

/// What a search looked at, and how it goes on.
fn how_far(walk: &Walk<'_>, printed: usize, stop: Stop, slowest: bool) -> String {
    let count = |count: usize, what| totals::count(count as u64, what);
    let interrupted = if stop == Stop::Interrupted { "interrupted: " } else { "" };
    let Some((last, at)) = walk.last() else {
        return match stop {
            Stop::Interrupted => "interrupted before a call was looked at".to_owned(),
            _ => "no call on record has this tool, state, time and so on: none was searched".to_owned(),
        };
    };
    let looked = count(walk.looked(), "call");
    let verb = if slowest { "these are the slowest of" } else { "looked at" };
    let all = if stop == Stop::Ended { "all " } else { "" };
    let matched = if slowest { String::new() } else { format!("; matches: {printed}") };
    let looked = format!("{interrupted}{verb} {all}{looked}, back to {}{matched}", output::time(at));
    match stop {
        Stop::Ended => looked,
        _ => format!("{looked}. To go on: add --before {last}, or --all"),
    }
}

/// Reads whole pages of lines: what a filter selects for another command.
pub(super) struct Pages<'a> {
    store: &'a Store,
    filter: Filter,
    ended: bool,
}

impl<'a> Pages<'a> {
    pub(super) const fn new(store: &'a Store, filter: Filter) -> Self {
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
