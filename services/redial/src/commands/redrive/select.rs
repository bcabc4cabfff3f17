//! Which calls to redrive.

use redial_api::CallItem;
use redial_engine::call::may_redrive;
use redial_proto::{ApiError, CallId, CallState, Code, Tenant};
use redial_store::{Store, audit::Filter};

use crate::{cli::FilterArgs, commands::history::Pages};

const PAGE: u32 = 1000;

/// The calls that a user selected.
#[derive(Debug)]
pub(super) enum Selection {
    /// By their ids, each once.
    Named(Vec<CallId>),
    /// Any of these must match.
    Filtered(Vec<Filter>),
}

impl Selection {
    /// Requires either ids or a filter. A filter matches `unknown` calls only if it names that state: their tool may have done
    /// its work, so an operator must decide to run them again.
    pub(super) fn new(mut calls: Vec<CallId>, args: FilterArgs, tenant: &Tenant) -> Result<Self, ApiError> {
        let wrong = |message: &str| Err(ApiError::new(Code::InvalidValue, message));
        let filter = Filter { tenant: Some(tenant.to_string()), ..Filter::from(args) };
        let filtered = is_set(&filter);
        if filtered && !calls.is_empty() {
            return wrong("both calls and a filter are given; allowed: one of them");
        }
        if !filtered && calls.is_empty() {
            return wrong(
                "no calls are selected; allowed: ids of calls, or a filter: --tool, --state (failed, cancelled, unknown), \
                 --class, --since, --until, --conversation, --key. `redial history --state failed` lists what could run again",
            );
        }
        if !filtered {
            let mut seen = std::collections::HashSet::new();
            calls.retain(|call| seen.insert(*call));
            return Ok(Self::Named(calls));
        }
        let states = match filter.state {
            None => vec![CallState::Failed, CallState::Cancelled],
            Some(state) if may_redrive(state).is_ok() => vec![state],
            Some(other) => return wrong(&format!("--state is {other}; allowed: failed, cancelled, unknown")),
        };
        let of_state = |state| Filter { state: Some(state), ..filter.clone() };
        Ok(Self::Filtered(states.into_iter().map(of_state).collect()))
    }
}

fn is_set(filter: &Filter) -> bool {
    let Filter { tool, state, class, since, until, worker, conversation, key, tenant: _, task: _, before: _ } = filter;
    let texts = [tool, worker, conversation, key];
    let times = since.is_some() || until.is_some();
    texts.into_iter().any(Option::is_some) || times || state.is_some() || class.is_some()
}

pub(super) async fn matching(
    store: &Store,
    filters: Vec<Filter>,
    mut each: impl FnMut(CallItem),
) -> anyhow::Result<()> {
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
            let error = Selection::new(calls, filter, &Tenant::default()).unwrap_err();
            assert_eq!(error.code, Code::InvalidValue);
            assert!(error.message.contains("allowed: "), "{error}");
        }
    }

    #[test]
    fn a_call_named_twice_is_redriven_once() {
        let named = Selection::new(vec![id(2), id(1), id(2)], FilterArgs::default(), &Tenant::default()).unwrap();
        assert!(matches!(named, Selection::Named(calls) if calls == [id(2), id(1)]));
    }

    #[test]
    fn a_filter_matches_unknown_calls_only_by_their_state() {
        let states = |state| match Selection::new(vec![], of_state(state), &Tenant::default()).unwrap() {
            Selection::Filtered(filters) => filters.into_iter().map(|filter| filter.state.unwrap()).collect(),
            Selection::Named(_) => vec![],
        };
        assert_eq!(states(None), [CallState::Failed, CallState::Cancelled]);
        assert_eq!(states(Some(CallState::Unknown)), [CallState::Unknown]);
        for state in CallState::ALL {
            let accepted = Selection::new(vec![], of_state(Some(state)), &Tenant::default()).is_ok();
            let wanted = matches!(state, CallState::Failed | CallState::Cancelled | CallState::Unknown);
            assert_eq!(accepted, wanted, "{state}");
        }
    }
}
