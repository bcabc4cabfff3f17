//! A dispatcher process: what it has in hand, and the decisions that it makes with the engine.

use redial_engine::{Event, Next, publish, step};
use redial_proto::{CallState, ErrorClass};

use super::{
    LEASE, RECONNECT, World,
    database::{Change, Expected, Fate},
    rows::{CallNo, Grant, Job, Ms, Packet, Process, Report, Row, since, time},
};
use crate::Bug;

/// A process; when it dies another one takes its place.
#[derive(Clone, Debug)]
pub(super) struct Dispatcher {
    pub(super) process: Process,
    /// Since when Postgres and NATS were reached without a break.
    pub(super) well_since: Ms,
    /// The last outage that it knows of.
    pub(super) outage: u32,
    /// The job stream that it knows.
    pub(super) stream: Option<u32>,
    /// It could not look at the streams the last time.
    pub(super) troubled: bool,
    /// When it last could.
    pub(super) well_at: Ms,
    pub(super) works: Vec<Work>,
}

/// Something that takes more than one statement.
#[derive(Clone, Copy, Debug)]
pub(super) struct Work {
    pub(super) what: Task,
    /// What it knows of the call, once it has looked.
    pub(super) seen: Option<Row>,
    /// A release: the claim is given up.
    pub(super) given_up: bool,
}

/// What is to be done.
#[derive(Clone, Copy, Debug)]
pub(super) enum Task {
    Ingest { seq: u32, report: Report },
    Release { worker: Process, grant: Grant },
    Cancel { call: CallNo, for_client: bool },
}

impl Task {
    pub(super) const fn call(&self) -> CallNo {
        match self {
            Self::Ingest { report, .. } => report.job.call,
            Self::Release { grant, .. } => grant.job.call,
            Self::Cancel { call, .. } => *call,
        }
    }
}

impl Dispatcher {
    pub(super) const fn new(process: Process, now: Ms) -> Self {
        Self { process, well_since: now, outage: 0, stream: None, troubled: false, well_at: 0, works: Vec::new() }
    }

    pub(super) fn begin(&mut self, what: Task) {
        self.works.push(Work { what, seen: None, given_up: false });
    }
}

impl World {
    /// Runs one transaction. `None` if the dispatcher does not get to know that it was committed; then it may be dead.
    pub(super) fn transaction<T>(&mut self, d: usize, fate: Fate, work: impl FnOnce(&mut Self) -> T) -> Option<T> {
        let fate = if self.postgres_up { fate } else { Fate::Vanish };
        if fate != Fate::Commit {
            self.tell(|| format!("    the transaction of dispatcher {d}: {fate:?}"));
        }
        let items = self.tables.inbox.len();
        let done = fate.is_committed().then(|| work(self));
        if fate == Fate::DieAfter && self.has(Bug::InboxOutsideTransaction) && self.tables.inbox.len() > items {
            self.tables.inbox.truncate(items);
        }
        if matches!(fate, Fate::DieBefore | Fate::DieAfter) {
            self.kill_dispatcher(d);
        }
        done.filter(|_| fate == Fate::Commit)
    }

    pub(super) fn kill_dispatcher(&mut self, d: usize) {
        self.tell(|| format!("dispatcher {d} dies, another one starts"));
        let process = self.new_process();
        let (now, outage) = (self.now, self.outages);
        // The work that it had in hand goes with it; the list's memory is used again.
        let mut works = std::mem::take(&mut self.dispatchers[d].works);
        works.clear();
        self.dispatchers[d] = Dispatcher { outage, works, ..Dispatcher::new(process, now) };
    }

    /// Until when no lease is taken for expired.
    pub(super) fn grace_until(&mut self, d: usize) -> Ms {
        let (outage, now) = (self.outages, self.now);
        let dispatcher = &mut self.dispatchers[d];
        if dispatcher.outage != outage {
            dispatcher.outage = outage;
            dispatcher.well_since = now;
        }
        let grace = RECONNECT + LEASE - (now - dispatcher.well_since);
        if self.has(Bug::NoGraceAfterOutage) { 0 } else { now + grace.max(0) }
    }

    /// What an event does to a call; `None` if nothing.
    pub(super) fn change(&self, call: CallNo, row: &Row, event: &Event<'_>, random: f64) -> Option<Change> {
        let step = step(&self.engine_call(row, event), event, time(self.now), random);
        let mut change = kept(call, row);
        match step.next {
            Next::Unchanged | Next::Unclaimed | Next::Running => return None,
            Next::StillRunning { until } => change.wake_at = Some(since(until)),
            Next::StopWorker => change.cancel = true,
            Next::Ready => {
                change.state = CallState::Ready;
                change.publish = true;
                change.wake_at = Some(self.first_check(row));
                if matches!(event, Event::Released) {
                    change.attempt = row.attempt.saturating_sub(1);
                }
            }
            Next::RetryWait { until } => {
                change.state = CallState::RetryWait;
                change.wake_at = Some(since(until));
            }
            Next::Ended { state, why } => {
                change.state = state;
                change.class = why.map(|why| why.class);
            }
        }
        change.ended = step.ended_attempt.map(|failure| failure.map_or(Ok(()), |failure| Err(failure.class)));
        Some(change)
    }

    fn engine_call(&self, row: &Row, event: &Event<'_>) -> redial_engine::Call {
        let most = if self.has(Bug::RetriesWithoutCap) { u32::MAX } else { row.max_attempts };
        let mut call = row.call(most);
        let lost = matches!(event, Event::Woken { .. })
            || matches!(event, Event::Failed(failure) if failure.class == ErrorClass::Lost);
        if self.has(Bug::UnsafeRetriedOnLost) && lost {
            call.effect = redial_proto::Effect::Idempotent;
        }
        call
    }

    /// What becomes of a call whose job nobody claimed.
    pub(super) fn unclaimed(&self, call: CallNo, row: &Row) -> Change {
        let published = row.publish_no.saturating_sub(row.attempt);
        let queued = self.jobs.iter().any(|message| message.again_at <= self.now);
        let decided = publish::unclaimed(published, time(row.published_at), queued, time(self.now));
        let (publish, check_at) = match decided {
            publish::Unclaimed::Publish { check_at } => (true, check_at),
            publish::Unclaimed::Wait { check_at } => (false, check_at),
        };
        Change { publish, wake_at: Some(since(check_at).min(row.deadline_at)), ..kept(call, row) }
    }

    fn first_check(&self, row: &Row) -> Ms {
        let wait = Ms::try_from(publish::FIRST_CHECK_MS).unwrap_or(Ms::MAX);
        (self.now + wait).min(row.deadline_at)
    }

    /// Does what a committed change asks for.
    pub(super) fn act(&mut self, change: &Change) {
        let row = self.row(change.call);
        self.tell(|| {
            let (attempt, publish) = (row.attempt, if change.publish { ", its job is published" } else { "" });
            let why = change.class.map_or(String::new(), |class| format!(" ({class})"));
            format!("    call {} is {}{why}, attempt {attempt}{publish}", change.call, change.state)
        });
        if change.publish {
            self.publish(Job { call: change.call, attempt: row.attempt + 1 }, row.publish_no);
        }
        if change.cancel {
            let job = Job { call: change.call, attempt: row.attempt };
            self.send(Packet::Stop { worker: row.worker, job });
        }
    }
}

/// The change that changes nothing, guarded by all that a decision may depend on.
pub(super) fn kept(call: CallNo, row: &Row) -> Change {
    let running = row.state == CallState::Running;
    Change {
        call,
        expected: Expected {
            state: row.state,
            attempt: row.attempt,
            worker: running.then_some(row.worker),
            claim: running.then_some(row.claim),
            cancel_requested: Some(row.cancel_requested),
        },
        state: row.state,
        attempt: row.attempt,
        wake_at: None,
        published_at: None,
        publish: false,
        cancel: false,
        class: None,
        ended: None,
    }
}
