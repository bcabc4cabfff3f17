//! `redial redrive`: ended calls run again, each as a new call. Running it twice redrives nothing twice.

mod dry_run;
mod send;

use std::process::ExitCode;

use redial_proto::{ApiError, CallId, CallState, Code};
use redial_store::{
    Store,
    audit::{CallLine, Filter},
};

use crate::{
    cli::{FilterArgs, RedriveArgs},
    commands::{history::Pages, queue, store},
    exit, output,
    settings::Settings,
};

/// Calls read from the database at once.
const PAGE: u32 = 1000;

pub(crate) async fn run(settings: &Settings, args: RedriveArgs) -> anyhow::Result<ExitCode> {
    let which = which(args.calls, args.filter)?;
    if args.dry_run {
        return dry_run::run(settings, which).await;
    }
    let print = match (&which, settings.json()) {
        (_, true) => send::Print::Json,
        (Which::Named(_), false) => send::Print::Lines,
        (Which::Filtered(_), false) => send::Print::Errors,
    };
    let calls = match which {
        Which::Named(calls) => calls,
        Which::Filtered(filters) => {
            let mut calls = Vec::new();
            matching(&store(settings).await?, filters, |line| calls.push(CallId(line.call))).await?;
            // In the order in which they were submitted.
            calls.sort_unstable();
            calls
        }
    };
    if calls.is_empty() {
        output::note("no call on record matches");
        return Ok(ExitCode::SUCCESS);
    }
    let tally = send::redrive(&queue(settings).await?, &calls, print).await?;
    if settings.json() {
        output::note(tally.to_string());
    } else {
        output::line(tally.to_string());
    }
    Ok(if tally.rejected == 0 { ExitCode::SUCCESS } else { ExitCode::from(exit::FAILED) })
}

/// Which calls to run again.
#[derive(Debug)]
enum Which {
    /// By their ids, each once.
    Named(Vec<CallId>),
    /// What any of these lets through.
    Filtered(Vec<Filter>),
}

/// Exactly one of the two. A filter never takes `unknown` calls unasked: their tool may have done its work, so running
/// them again wants a person's word.
fn which(mut calls: Vec<CallId>, args: FilterArgs) -> Result<Which, ApiError> {
    let wrong = |message: &str| Err(ApiError::new(Code::InvalidValue, message));
    let filter = Filter::from(args);
    let filtered = is_set(&filter);
    if filtered && !calls.is_empty() {
        return wrong("both calls and a filter are given; allowed: one of them");
    }
    if !filtered && calls.is_empty() {
        return wrong(
            "nothing says which calls to run again; allowed: ids of calls, or a filter: --tool, --state, --class, \
             --since, --conversation, --key",
        );
    }
    if !filtered {
        let mut seen = std::collections::HashSet::new();
        calls.retain(|call| seen.insert(*call));
        return Ok(Which::Named(calls));
    }
    let states = match filter.state {
        None => vec![CallState::Failed, CallState::Cancelled],
        Some(state) if can_run_again(state) => vec![state],
        Some(other) => return wrong(&format!("--state is {other}; allowed: failed, cancelled, unknown")),
    };
    let of_state = |state| Filter { state: Some(state), ..filter.clone() };
    Ok(Which::Filtered(states.into_iter().map(of_state).collect()))
}

/// The dispatcher has the last word on this; here it is asked before it costs anything.
const fn can_run_again(state: CallState) -> bool {
    matches!(state, CallState::Failed | CallState::Cancelled | CallState::Unknown)
}

fn is_set(filter: &Filter) -> bool {
    let Filter { tool, state, class, since, conversation, key, tenant: _, task: _, before: _ } = filter;
    tool.is_some() || state.is_some() || class.is_some() || since.is_some() || conversation.is_some() || key.is_some()
}

/// Reads all that match before any of them runs again: what a redrive adds to the history is not among them.
async fn matching(store: &Store, filters: Vec<Filter>, mut each: impl FnMut(CallLine)) -> anyhow::Result<()> {
    for filter in filters {
        let mut pages = Pages::new(store, filter);
        loop {
            let page = pages.next(PAGE).await?;
            if page.is_empty() {
                break;
            }
            page.into_iter().for_each(&mut each);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(n: u128) -> CallId {
        CallId(uuid::Uuid::from_u128(n))
    }

    fn of_state(state: Option<CallState>) -> FilterArgs {
        FilterArgs { state, tool: Some("echo".to_owned()), ..FilterArgs::default() }
    }

    #[test]
    fn calls_or_a_filter_and_not_both() {
        for (calls, filter) in [(vec![], FilterArgs::default()), (vec![id(1)], of_state(None))] {
            let error = which(calls, filter).unwrap_err();
            assert_eq!(error.code, Code::InvalidValue);
            assert!(error.message.contains("allowed: "), "{error}");
        }
    }

    #[test]
    fn a_call_named_twice_is_redriven_once() {
        let named = which(vec![id(2), id(1), id(2)], FilterArgs::default()).unwrap();
        assert!(matches!(named, Which::Named(calls) if calls == [id(2), id(1)]));
    }

    #[test]
    fn a_filter_takes_unknown_calls_only_when_told() {
        let states = |state| match which(vec![], of_state(state)).unwrap() {
            Which::Filtered(filters) => filters.into_iter().map(|filter| filter.state.unwrap()).collect(),
            Which::Named(_) => vec![],
        };
        assert_eq!(states(None), [CallState::Failed, CallState::Cancelled]);
        assert_eq!(states(Some(CallState::Unknown)), [CallState::Unknown]);
        for state in CallState::ALL {
            let takes = which(vec![], of_state(Some(state))).is_ok();
            assert_eq!(takes, can_run_again(state), "{state}");
        }
    }
}
