//! A walk through the calls, newest first, in steps.

use redial_proto::CallId;
use redial_store::{
    Store, Time,
    audit::{Filter, FoundCall, Inside},
};

pub(super) struct Walk<'a> {
    store: &'a Store,
    filter: Filter,
    inside: Inside,
    looked: usize,
    step: Vec<CallId>,
    last: Option<CallId>,
    ended: bool,
}

/// Calls in one step that only looks whether one is left.
const STEP: usize = 1000;

impl<'a> Walk<'a> {
    pub(super) const fn new(store: &'a Store, filter: Filter, inside: Inside) -> Self {
        Self { store, filter, inside, looked: 0, step: Vec::new(), last: None, ended: false }
    }

    /// Returns the calls to look at in one step of a list, to find so many that match.
    pub(super) fn step(&self, wanted: usize) -> usize {
        self.filter.step(u32::try_from(wanted).unwrap_or(u32::MAX)) as usize
    }

    /// Looks at the next calls, and returns those that match. Nothing has changed if it is dropped half-way.
    pub(super) async fn next(&mut self, calls: usize) -> anyhow::Result<Vec<FoundCall>> {
        if self.ended {
            return Ok(Vec::new());
        }
        let found = self.store.find_calls(&self.filter, u32::try_from(calls).unwrap_or(u32::MAX)).await?;
        let calls = self.store.holding(&found.calls, &self.inside).await?;
        self.looked += found.looked.len();
        self.step = found.looked;
        self.ended = found.ended;
        if let Some(last) = found.last {
            self.filter.before = Some(last);
            self.last = Some(last);
        }
        Ok(calls)
    }

    /// Says whether one more call matches; `None` if that is not known after a look at `most` calls.
    pub(super) async fn any_left(&mut self, most: usize) -> anyhow::Result<Option<bool>> {
        let (mut step, end) = (1, self.looked + most);
        while !self.ended {
            if !self.next(step).await?.is_empty() {
                return Ok(Some(true));
            }
            if self.looked >= end {
                return Ok(None);
            }
            step = STEP;
        }
        Ok(Some(false))
    }

    /// Goes back to a call of the last step: those before it are looked at again, and do not count yet.
    pub(super) fn back_to(&mut self, call: Option<&FoundCall>) {
        let Some(call) = call.map(|found| found.call) else { return };
        // Newest first.
        let kept = self.step.partition_point(|looked| *looked >= call);
        self.looked -= self.step.len() - kept;
        self.step.truncate(kept);
        self.filter.before = Some(call);
        (self.last, self.ended) = (Some(call), false);
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

    /// Returns the last call that was looked at: the walk goes on before it.
    pub(super) const fn last(&self) -> Option<CallId> {
        self.last
    }

    pub(super) async fn last_submitted_at(&self) -> anyhow::Result<Option<Time>> {
        let Some(last) = self.last else { return Ok(None) };
        let line = self.store.call_lines(&[last]).await?.pop();
        // Retention may have deleted it meanwhile.
        Ok(Some(line.map_or_else(|| made_at(last), |line| line.submitted_at)))
    }
}

/// Returns when an id was made, which is about when its call was submitted.
fn made_at(call: CallId) -> Time {
    let made = call.0.get_timestamp().and_then(|time| {
        let (seconds, nanoseconds) = time.to_unix();
        Time::from_timestamp(seconds.try_into().ok()?, nanoseconds)
    });
    made.unwrap_or(Time::UNIX_EPOCH)
}
