//! The end of a history: the faults are over, and everything must end by itself.

use super::{clock::Ms, ids::ALL_TOOLS, state::World, tables::CallRow, transaction::CommitOutcome, worker::Worker};
use crate::Invariant;

/// Everything must end within this, in ms: some waits take five minutes, and several calls run one after another.
const DRAIN_LIMIT: Ms = 6_000_000;
/// A worker that is cut off is reconnected after this, in ms: long enough that others must take over its attempts.
const HEAL_WORKERS_AFTER: Ms = 60_000;
/// The most events at one moment; above what even the backlog of the longest outage needs.
const MAX_STEPS: u32 = 200_000;

impl World {
    pub(super) fn drain(&mut self) {
        self.heal();
        let end = self.now + DRAIN_LIMIT;
        loop {
            self.settle();
            if self.is_over() || self.violation.is_some() {
                return;
            }
            if self.now >= end {
                return self.report_unfinished();
            }
            if self.now >= end - DRAIN_LIMIT + HEAL_WORKERS_AFTER {
                self.workers.iter_mut().for_each(|worker| worker.cut = false);
            }
            let due = self.next_due().clamp(self.now + 1, self.now + 10_000);
            self.advance_to(due);
            for d in 0..self.dispatchers.len() {
                self.check_streams(d, CommitOutcome::Committed);
                self.sweep(d, 0, CommitOutcome::Committed);
                self.feed(d, 0, CommitOutcome::Committed);
            }
            self.check_ready();
        }
    }

    /// Repairs everything, and submits again what was not acknowledged.
    fn heal(&mut self) {
        self.log(|| "the faults are over".to_owned());
        self.draining = true;
        if !self.nats_up || !self.postgres_up {
            self.outages += 1;
        }
        (self.nats_up, self.postgres_up) = (true, true);
        for w in 0..self.workers.len() {
            if self.workers[w].paused {
                self.resume(w);
            }
        }
        self.serve_all_tools();
        for call in 0..self.setup.calls {
            self.submit_call(0, call, CommitOutcome::Committed);
        }
        for task in 0..self.setup.tasks {
            self.submit_task(0, task, CommitOutcome::Committed);
        }
    }

    /// If no worker has some tool, one more starts that has all.
    fn serve_all_tools(&mut self) {
        let had = self.workers.iter().filter(|worker| !worker.stopping).fold(0, |had, worker| had | worker.tools);
        if had != ALL_TOOLS {
            let process = self.new_process();
            self.workers.push(Worker::new(process, ALL_TOOLS));
        }
        self.record_heartbeats();
    }

    /// Runs events until none is possible without time passing.
    fn settle(&mut self) {
        for _ in 0..MAX_STEPS {
            if self.violation.is_some() || !self.next_event(0) {
                return;
            }
        }
        self.report_violation(Invariant::EveryCallEnds, || "the events of one moment never end".to_owned());
    }

    fn is_over(&self) -> bool {
        self.tables.calls.iter().all(|row| !row.is_open())
            && self.tables.tasks.iter().all(|row| !row.exists || row.state.is_terminal())
    }

    fn next_due(&self) -> Ms {
        let calls = self.tables.calls.iter().filter(|row| row.is_open()).map(|row| row.wake_at);
        let tasks = self.tables.tasks.iter().filter_map(|row| row.wake_at);
        let messages = self.jobs.iter().map(|message| message.redeliver_at);
        calls.chain(tasks).chain(messages).filter(|at| *at > self.now).min().unwrap_or(self.now + 1_000)
    }

    fn report_unfinished(&mut self) {
        let open = self.tables.calls.iter().position(CallRow::is_open);
        let tasks = || self.tables.tasks.iter().position(|row| row.exists && !row.state.is_terminal());
        if let Some(call) = open {
            let row = self.tables.calls[call];
            let invariant = if row.backlog.is_some() { Invariant::WaitsWithReason } else { Invariant::EveryCallEnds };
            self.report_violation(invariant, || format!("call {call} is still {}", row.state));
        } else if let Some(task) = tasks() {
            let state = self.tables.tasks[task].state;
            self.report_violation(Invariant::EveryTaskEnds, || format!("task {task} is still {state}"));
        }
    }
}
