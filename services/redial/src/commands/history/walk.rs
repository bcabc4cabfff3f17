//! A walk through the calls, newest first, in steps.

use redial_proto::CallId;
use redial_store::{
    Store, Time,
    audit::{Filter, FoundCall, Payload, Texts},
};

use crate::json_search::{self, Condition};

/// What must be in the arguments and results of calls.
#[derive(Default)]
pub(super) struct Inside {
    pub(super) arguments: Vec<Condition>,
    pub(super) output: Vec<Condition>,
    /// In either.
    pub(super) text: Option<String>,
}

impl Inside {
    pub(super) fn is_empty(&self) -> bool {
        self.arguments.is_empty() && self.output.is_empty() && self.text.is_none()
    }

    fn texts(&self) -> Texts {
        let needles = |conditions: &[Condition]| conditions.iter().filter_map(Condition::needle).collect();
        Texts {
            arguments: needles(&self.arguments),
            output: needles(&self.output),
            anywhere: self.text.iter().cloned().collect(),
        }
    }

    fn hold(&self, payload: &Payload) -> bool {
        let Payload { arguments, output, .. } = payload;
        let in_output = |condition: &Condition| output.as_ref().is_some_and(|output| condition.holds(output));
        let anywhere = |text: &String| {
            json_search::contains(arguments, text)
                || output.as_ref().is_some_and(|output| json_search::contains(output, text))
        };
        self.arguments.iter().all(|condition| condition.holds(arguments))
            && self.output.iter().all(in_output)
            && self.text.iter().all(anywhere)
    }
}

pub(super) struct Walk<'a> {
    store: &'a Store,
    filter: Filter,
    inside: Inside,
    looked: usize,
    /// The last call that was looked at, and when it was submitted.
    last: Option<(CallId, Time)>,
    ended: bool,
}

impl<'a> Walk<'a> {
    pub(super) const fn new(store: &'a Store, filter: Filter, inside: Inside) -> Self {
        Self { store, filter, inside, looked: 0, last: None, ended: false }
    }

    /// Looks at the next calls, and returns those that match. Nothing has changed if it is dropped half-way.
    pub(super) async fn next(&mut self, calls: usize) -> anyhow::Result<Vec<FoundCall>> {
        if self.ended {
            return Ok(Vec::new());
        }
        let found = self.store.find_calls(&self.filter, u32::try_from(calls).unwrap_or(u32::MAX)).await?;
        let calls = if self.looks_inside() { self.search(&found.calls).await? } else { found.calls.clone() };
        self.looked += found.looked;
        self.ended = found.ended;
        if let Some(last) = found.last {
            let submitted_at = found.calls.last().filter(|found| found.call == last).map(|found| found.submitted_at);
            self.filter.before = Some(last);
            self.last = Some((last, submitted_at.unwrap_or_else(|| made_at(last))));
        }
        Ok(calls)
    }

    /// Those whose arguments and results have what is wanted.
    async fn search(&self, calls: &[FoundCall]) -> anyhow::Result<Vec<FoundCall>> {
        let ids: Vec<CallId> = calls.iter().map(|found| found.call).collect();
        let mut matching = Vec::new();
        for group in self.store.may_contain(&ids, &self.inside.texts()).await? {
            let payloads = self.store.payloads(&group).await?;
            matching.extend(payloads.iter().filter(|payload| self.inside.hold(payload)).map(|payload| payload.call));
        }
        // Both are newest first.
        let mut matching = matching.into_iter().peekable();
        Ok(calls.iter().filter(|found| matching.next_if_eq(&found.call).is_some()).copied().collect())
    }

    /// Goes back to a call: those before it are looked at again.
    pub(super) fn back_to(&mut self, call: Option<&FoundCall>) {
        let Some(call) = call else { return };
        self.filter.before = Some(call.call);
        (self.last, self.ended) = (Some((call.call, call.submitted_at)), false);
    }

    pub(super) fn looks_inside(&self) -> bool {
        !self.inside.is_empty()
    }

    pub(super) const fn looked(&self) -> usize {
        self.looked
    }

    pub(super) const fn ended(&self) -> bool {
        self.ended
    }

    /// The last call that was looked at: the walk goes on before it.
    pub(super) const fn last(&self) -> Option<(CallId, Time)> {
        self.last
    }
}

/// When an id was made, which is about when its call was submitted.
fn made_at(call: CallId) -> Time {
    let made = call.0.get_timestamp().and_then(|time| {
        let (seconds, nanoseconds) = time.to_unix();
        Time::from_timestamp(seconds.try_into().ok()?, nanoseconds)
    });
    made.unwrap_or(Time::UNIX_EPOCH)
}
