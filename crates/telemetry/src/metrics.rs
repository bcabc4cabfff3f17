//! The instruments: one method each, with plain arguments. Without an exporter a call is one check.

use std::{sync::OnceLock, time::Duration};

use opentelemetry::{
    KeyValue,
    metrics::{Counter, Gauge, Histogram, Meter},
};

use crate::names;

static ENABLED: OnceLock<Metrics> = OnceLock::new();
static DISABLED: Metrics = Metrics(None);

/// Returns the instruments of this process. Before [`crate::init`], and when metrics are not exported, nothing is
/// counted.
pub fn metrics() -> &'static Metrics {
    ENABLED.get().unwrap_or(&DISABLED)
}

/// Makes [`metrics`] count on this meter.
pub(crate) fn enable(meter: &Meter) {
    // Set once: init refuses to run twice.
    let _ = ENABLED.set(Metrics(Some(Instruments::new(meter))));
}

/// See [`metrics`].
///
/// `tool` must be the name of a registered tool, [`names::OTHER_TOOL`] or [`names::CLIENT_FUNCTION`]: every name becomes a time series.
pub struct Metrics(Option<Instruments>);

struct Instruments {
    jobs_published: Counter<u64>,
    jobs_requeued: Counter<u64>,
    jobs_returned: Counter<u64>,
    calls_submitted: Counter<u64>,
    calls_claimed: Counter<u64>,
    calls_finished: Counter<u64>,
    attempts_finished: Counter<u64>,
    attempt_duration: Histogram<f64>,
    retries: Counter<u64>,
    leases_expired: Counter<u64>,
    results_stale: Counter<u64>,
    set_aside: Counter<u64>,
    queue_age: Histogram<f64>,
    queue_waiting: Gauge<u64>,
    queue_oldest: Gauge<f64>,
    batch_size: Histogram<u64>,
    tasks_submitted: Counter<u64>,
    tasks_finished: Counter<u64>,
    task_turns: Histogram<u64>,
    task_corrections: Histogram<u64>,
}

impl Metrics {
    /// True if anything is exported: if not, what costs a query need not be measured.
    pub const fn are_exported(&self) -> bool {
        self.0.is_some()
    }

    /// Counts jobs for `consumer` whose publication the queue confirmed.
    pub fn jobs_published(&self, consumer: &str, count: u64) {
        let Some(on) = &self.0 else { return };
        on.jobs_published.add(count, &[text(names::CONSUMER, consumer)]);
    }

    /// Counts jobs of packs that workers gave back.
    pub fn jobs_returned(&self, count: u64) {
        let Some(on) = &self.0 else { return };
        on.jobs_returned.add(count, &[]);
    }

    /// Counts calls that went back to the backlog because their job was lost or could not be published.
    pub fn jobs_requeued(&self, count: u64) {
        let Some(on) = &self.0 else { return };
        on.jobs_requeued.add(count, &[]);
    }

    /// Counts submissions that ended with `status` (`accepted`, `existing`, `refused`, `rejected`).
    pub fn calls_submitted(&self, tool: &str, status: &'static str, count: u64) {
        let Some(on) = &self.0 else { return };
        on.calls_submitted.add(count, &[text(names::TOOL_NAME, tool), KeyValue::new(names::SUBMIT_STATUS, status)]);
    }

    /// Counts attempts that were granted to workers.
    pub fn calls_claimed(&self, count: u64) {
        let Some(on) = &self.0 else { return };
        on.calls_claimed.add(count, &[]);
    }

    /// Counts a call that reached the terminal `state`; `class` says why, unless it succeeded.
    pub fn call_finished(&self, tool: &str, state: &'static str, class: Option<&'static str>) {
        let Some(on) = &self.0 else { return };
        let mut attributes = tool_and_class(tool, class);
        attributes.push(KeyValue::new(names::CALL_STATE, state));
        on.calls_finished.add(1, &attributes);
    }

    /// Records an attempt that ended after `duration`; `class` says why, unless it succeeded.
    pub fn attempt_finished(&self, tool: &str, class: Option<&'static str>, duration: Duration) {
        let Some(on) = &self.0 else { return };
        let attributes = tool_and_class(tool, class);
        on.attempts_finished.add(1, &attributes);
        on.attempt_duration.record(duration.as_secs_f64(), &attributes);
    }

    /// Counts another attempt that was scheduled after a failure of `class`.
    pub fn retry_scheduled(&self, tool: &str, class: &'static str) {
        let Some(on) = &self.0 else { return };
        on.retries.add(1, &tool_and_class(tool, Some(class)));
    }

    /// Counts leases that expired: a worker died or lost its connection.
    pub fn leases_expired(&self, count: u64) {
        let Some(on) = &self.0 else { return };
        on.leases_expired.add(count, &[]);
    }

    /// Counts results of attempts that no longer held their call.
    pub fn results_stale(&self, count: u64) {
        let Some(on) = &self.0 else { return };
        on.results_stale.add(count, &[]);
    }

    /// Counts messages and rows that this version cannot read: see [`crate::set_aside`].
    pub(crate) fn set_aside(&self, what: &'static str, count: u64) {
        let Some(on) = &self.0 else { return };
        on.set_aside.add(count, &[KeyValue::new(names::SET_ASIDE, what)]);
    }

    /// Records how long a claimed call had been ready.
    pub fn queue_age(&self, age: Duration) {
        let Some(on) = &self.0 else { return };
        on.queue_age.record(age.as_secs_f64(), &[]);
    }

    /// Records how many calls of `pool` are ready and not claimed, and how long ago the oldest was submitted.
    pub fn queue_waits(&self, pool: &str, calls: u64, oldest: Duration) {
        let Some(on) = &self.0 else { return };
        let attributes = [text(names::POOL, pool)];
        on.queue_waiting.record(calls, &attributes);
        on.queue_oldest.record(oldest.as_secs_f64(), &attributes);
    }

    /// Records a batch of `size` items; `kind` is one of few words: `submit`, `claim`, `report` and so on.
    pub fn batch_size(&self, kind: &'static str, size: usize) {
        let Some(on) = &self.0 else { return };
        on.batch_size.record(size as u64, &[KeyValue::new(names::BATCH_KIND, kind)]);
    }

    /// Counts a task's submission that ended with `status` (`accepted`, `existing`, `rejected`).
    pub fn task_submitted(&self, status: &'static str) {
        let Some(on) = &self.0 else { return };
        on.tasks_submitted.add(1, &[KeyValue::new(names::SUBMIT_STATUS, status)]);
    }

    /// Records a task that ended for the reason `code`, after so many model turns and corrections.
    pub fn task_finished(&self, code: &'static str, turns: u32, corrections: u32) {
        let Some(on) = &self.0 else { return };
        let attributes = [KeyValue::new(names::TASK_CODE, code)];
        on.tasks_finished.add(1, &attributes);
        on.task_turns.record(u64::from(turns), &attributes);
        on.task_corrections.record(u64::from(corrections), &attributes);
    }
}

fn text(key: &'static str, value: &str) -> KeyValue {
    KeyValue::new(key, value.to_owned())
}

fn tool_and_class(tool: &str, class: Option<&'static str>) -> Vec<KeyValue> {
    let mut attributes = vec![text(names::TOOL_NAME, tool)];
    attributes.extend(class.map(|class| KeyValue::new(names::ERROR_TYPE, class)));
    attributes
}

/// Upper bounds of the buckets for times: 1 ms to an hour, in seconds.
const SECONDS: [f64; 15] =
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.25, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0];
/// Upper bounds of the buckets for batch sizes, turns and corrections.
const SIZES: [f64; 10] = [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0];

pub struct Instrument {
    pub name: &'static str,
    /// `counter`, `histogram` or `gauge`.
    pub kind: &'static str,
    /// Its unit, in the notation of UCUM.
    pub unit: &'static str,
    pub attributes: &'static [&'static str],
    pub about: &'static str,
}

const fn row(
    kind: &'static str,
    name: &'static str,
    unit: &'static str,
    attributes: &'static [&'static str],
    about: &'static str,
) -> Instrument {
    Instrument { name, kind, unit, attributes, about }
}

const BY_TOOL: &[&str] = &[names::TOOL_NAME, names::ERROR_TYPE];

/// Every instrument; `docs/OPERATIONS.md` has the same table.
pub const INSTRUMENTS: [Instrument; 20] = [
    row("counter", "redial.calls.submitted", "{call}", &[names::TOOL_NAME, names::SUBMIT_STATUS], "submissions"),
    row("counter", "redial.jobs.published", "{job}", &[names::CONSUMER], "jobs that the queue confirmed"),
    row("counter", "redial.jobs.returned", "{job}", &[], "jobs of packs that workers had no free slots for"),
    row("counter", "redial.jobs.requeued", "{call}", &[], "calls whose job was lost or could not be published"),
    row("counter", "redial.calls.claimed", "{call}", &[], "attempts granted to workers"),
    row("histogram", "redial.queue.age", "s", &[], "time from ready to claimed: the first sign of too few slots"),
    row(
        "gauge",
        "redial.queue.waiting",
        "{call}",
        &[names::POOL],
        "calls that are ready and not claimed, at most 50,000",
    ),
    row("gauge", "redial.queue.oldest", "s", &[names::POOL], "time since the submission of the oldest of them"),
    row(
        "counter",
        "redial.attempts.finished",
        "{attempt}",
        BY_TOOL,
        "attempts that ended; without error.type: succeeded",
    ),
    row("histogram", "redial.attempt.duration", "s", BY_TOOL, "time that attempts took"),
    row("counter", "redial.retries", "{attempt}", BY_TOOL, "retries scheduled"),
    row(
        "counter",
        "redial.calls.finished",
        "{call}",
        &[names::TOOL_NAME, names::CALL_STATE, names::ERROR_TYPE],
        "calls that ended",
    ),
    row("counter", "redial.leases.expired", "{lease}", &[], "attempts whose worker died or lost NATS"),
    row("counter", "redial.results.stale", "{result}", &[], "results that came after their lease"),
    row("counter", "redial.set_aside", "{item}", &[names::SET_ASIDE], "what is left to a process of a newer version"),
    row("histogram", "redial.batch.size", "{item}", &[names::BATCH_KIND], "items of one transaction or request"),
    row("counter", "redial.tasks.submitted", "{task}", &[names::SUBMIT_STATUS], "submitted tasks"),
    row("counter", "redial.tasks.finished", "{task}", &[names::TASK_CODE], "tasks that ended"),
    row("histogram", "redial.task.turns", "{turn}", &[names::TASK_CODE], "model turns of tasks that ended"),
    row("histogram", "redial.task.corrections", "{correction}", &[names::TASK_CODE], "corrections of tasks that ended"),
];

impl Instruments {
    fn new(meter: &Meter) -> Self {
        // A test compares the names here with the table.
        let row = |name| INSTRUMENTS.iter().find(|one| one.name == name).map_or(("", ""), |one| (one.unit, one.about));
        let counter = |name| meter.u64_counter(name).with_unit(row(name).0).with_description(row(name).1).build();
        let seconds = |name| {
            let histogram = meter.f64_histogram(name).with_unit(row(name).0).with_description(row(name).1);
            histogram.with_boundaries(SECONDS.to_vec()).build()
        };
        let numbers = |name| {
            let histogram = meter.u64_histogram(name).with_unit(row(name).0).with_description(row(name).1);
            histogram.with_boundaries(SIZES.to_vec()).build()
        };
        let (waiting, oldest) = ("redial.queue.waiting", "redial.queue.oldest");
        Self {
            jobs_published: counter("redial.jobs.published"),
            jobs_requeued: counter("redial.jobs.requeued"),
            jobs_returned: counter("redial.jobs.returned"),
            calls_submitted: counter("redial.calls.submitted"),
            calls_claimed: counter("redial.calls.claimed"),
            calls_finished: counter("redial.calls.finished"),
            attempts_finished: counter("redial.attempts.finished"),
            attempt_duration: seconds("redial.attempt.duration"),
            retries: counter("redial.retries"),
            leases_expired: counter("redial.leases.expired"),
            results_stale: counter("redial.results.stale"),
            set_aside: counter("redial.set_aside"),
            queue_age: seconds("redial.queue.age"),
            queue_waiting: meter.u64_gauge(waiting).with_unit(row(waiting).0).with_description(row(waiting).1).build(),
            queue_oldest: meter.f64_gauge(oldest).with_unit(row(oldest).0).with_description(row(oldest).1).build(),
            batch_size: numbers("redial.batch.size"),
            tasks_submitted: counter("redial.tasks.submitted"),
            tasks_finished: counter("redial.tasks.finished"),
            task_turns: numbers("redial.task.turns"),
            task_corrections: numbers("redial.task.corrections"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn the_table_has_every_instrument() {
        let code = include_str!("metrics.rs").split("mod tests").next().unwrap();
        let mut named: BTreeMap<&str, u32> = BTreeMap::new();
        for name in code.split("\"redial.").skip(1).map(|rest| rest.split('"').next().unwrap()) {
            *named.entry(name).or_default() += 1;
        }
        assert_eq!(named.len(), INSTRUMENTS.len());
        assert!(named.values().all(|times| *times == 2), "once in the table, once where it is made: {named:?}");
    }
}
