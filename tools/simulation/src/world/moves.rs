//! The moves of a plan.

use super::{dispatcher::Task, ids::CallNo, messages::Job, state::World, tables::What, transaction::Fate};
use crate::{
    Mutation,
    plan::{Kind, Move},
};

/// Spans of time, in ms: mostly moments, now and then longer than a lease.
const SPANS: [i64; 8] = [1_000, 20, 200, 3_000, 6_000, 20, 17_000, 40_000];

impl World {
    pub(super) fn make(&mut self, one: Move) {
        self.now += 1;
        let pick = one.pick;
        let d = (pick >> 16) as usize % self.dispatchers.len();
        let w = (pick >> 16) as usize % self.workers.len();
        match one.kind {
            Kind::Go => drop(self.go(pick)),
            Kind::Tick => self.tick(pick),
            Kind::Submit => self.submit(pick),
            Kind::CancelCall => self.cancel_call(d, pick),
            Kind::CancelTask => self.cancel_task(d, pick),
            Kind::Sweep => self.sweep(d, pick, Fate::of(pick)),
            Kind::Watch => self.watch(d),
            Kind::KillDispatcher => self.kill_dispatcher(d),
            Kind::LosePacket | Kind::CopyPacket => self.meddle(one.kind, pick),
            Kind::LoseJob | Kind::OldJob | Kind::OldReport | Kind::Wipe => self.meddle_with_streams(one.kind, pick),
            Kind::Nats => self.toggle_nats(),
            Kind::Postgres => self.toggle_postgres(),
            _ => self.trouble_worker(one.kind, w, pick),
        }
        if self.has(Mutation::CommitNotDurable) && one.kind == Kind::Tick {
            self.durable.clone_from(&self.tables);
        }
    }

    fn tick(&mut self, pick: u32) {
        let span = SPANS[(pick & 7) as usize];
        self.tell(|| format!("{span} ms pass"));
        self.advance_to(self.now + span);
    }

    // ---- Clients ----

    /// A client submits, or submits again what was not acknowledged: the same key never makes two calls of it.
    fn submit(&mut self, pick: u32) {
        let (calls, tasks) = (u32::from(self.setup.calls), u32::from(self.setup.tasks));
        let n = (pick & 0xff) % (calls + tasks);
        let d = (pick >> 16) as usize % self.dispatchers.len();
        if n < calls {
            self.submit_call(d, n as CallNo, Fate::of(pick));
        } else {
            self.submit_task(d, (n - calls) as u8, Fate::of(pick));
        }
    }

    pub(super) fn submit_call(&mut self, d: usize, call: CallNo, fate: Fate) {
        if self.ledger.calls >> call & 1 == 1 || !self.nats_up {
            return;
        }
        let row = self.row(call);
        self.tell(|| format!("a client submits call {call} ({}, at most {} attempts)", row.effect, row.max_attempts));
        let written = self.transaction(d, fate, |world| world.insert(call));
        if let Some(new) = written {
            if new {
                self.publish(Job { call, attempt: 1 }, 1);
            }
            self.ledger.calls |= 1 << call;
        } else if self.has(Mutation::ReplyBeforeCommit) {
            self.ledger.calls |= 1 << call;
        }
    }

    pub(super) fn submit_task(&mut self, d: usize, task: u8, fate: Fate) {
        if self.ledger.tasks >> task & 1 == 1 || !self.nats_up {
            return;
        }
        self.tell(|| format!("a client submits task {task}"));
        let written = self.transaction(d, fate, |world| {
            let now = world.now;
            let row = &mut world.tables.tasks[usize::from(task)];
            if !row.exists {
                (row.exists, row.progress, row.wake_at) = (true, None, Some(now + 1_000));
                world.tables.tell(task, What::Start);
            }
        });
        if written.is_some() || self.has(Mutation::ReplyBeforeCommit) {
            self.ledger.tasks |= 1 << task;
        }
    }

    fn cancel_call(&mut self, d: usize, pick: u32) {
        let call = (pick & 0xff) as usize % self.tables.calls.len();
        if self.tables.calls[call].is_open() && self.nats_up {
            self.tell(|| format!("a client cancels call {call}"));
            self.dispatchers[d].begin(Task::Cancel { call: call as CallNo, for_client: true });
        }
    }

    fn cancel_task(&mut self, d: usize, pick: u32) {
        let tasks = self.tables.tasks.len();
        if tasks == 0 || !self.nats_up {
            return;
        }
        let task = (pick & 0xff) as usize % tasks;
        let row = &self.tables.tasks[task];
        if row.exists && !row.state.is_terminal() {
            self.tell(|| format!("a client cancels task {task}"));
            self.transaction(d, Fate::of(pick), |world| world.tables.tell(task as u8, What::Cancel));
        }
    }

    // ---- Faults of servers and the network ----

    fn meddle(&mut self, kind: Kind, pick: u32) {
        if self.packets.is_empty() {
            return;
        }
        let at = (pick & 0xffff) as usize % self.packets.len();
        let packet = self.packets[at];
        self.tell(|| {
            format!("{packet} {}", if kind == Kind::LosePacket { "is lost" } else { "comes, and will come again" })
        });
        if kind == Kind::LosePacket {
            self.packets.remove(at);
        } else if self.can_arrive(&packet) && self.nats_up {
            self.deliver(packet, pick);
        }
    }

    fn meddle_with_streams(&mut self, kind: Kind, pick: u32) {
        let nth = |many: usize| (pick & 0xffff) as usize % many;
        match kind {
            Kind::LoseJob if !self.jobs.is_empty() => {
                let lost = self.jobs.remove(nth(self.jobs.len()));
                self.tell(|| format!("the job for attempt {} of call {} is lost", lost.job.attempt, lost.job.call));
            }
            Kind::OldJob if !self.old_jobs.is_empty() => {
                let job = self.old_jobs[nth(self.old_jobs.len())];
                self.tell(|| format!("the job for attempt {} of call {} is there again", job.attempt, job.call));
                self.store_job(job);
            }
            Kind::OldReport if !self.old_reports.is_empty() => {
                let report = self.old_reports[nth(self.old_reports.len())];
                let job = report.job;
                self.tell(|| format!("the report on attempt {} of call {} is there again", job.attempt, job.call));
                self.store_report(report);
            }
            Kind::Wipe => {
                self.tell(|| "the store of NATS is wiped".to_owned());
                self.jobs.clear();
                self.results.clear();
                self.seen.clear();
                self.stream += 1;
            }
            _ => {}
        }
    }

    fn toggle_nats(&mut self) {
        self.nats_up = !self.nats_up;
        self.outages += 1;
        self.packets.clear();
        // What it knew of message ids is gone, unless that is the mutation.
        self.seen.clear();
        let up = self.nats_up;
        self.tell(|| format!("NATS is {}", if up { "back" } else { "down" }));
    }

    fn toggle_postgres(&mut self) {
        self.postgres_up = !self.postgres_up;
        self.outages += 1;
        let up = self.postgres_up;
        self.tell(|| format!("Postgres is {}", if up { "back" } else { "down" }));
        if self.has(Mutation::CommitNotDurable) && !up && self.durable.calls.len() == self.tables.calls.len() {
            self.tables.clone_from(&self.durable);
        }
    }

    // ---- Faults of workers ----

    fn trouble_worker(&mut self, kind: Kind, w: usize, pick: u32) {
        let process = usize::from(self.workers[w].process);
        match kind {
            Kind::KillWorker => {
                self.tell(|| format!("worker {w} is killed, another one starts"));
                self.ledger.disturbed[process] = true;
                self.replace_worker(w);
            }
            Kind::PauseWorker if self.workers[w].paused => self.resume(w),
            Kind::PauseWorker => {
                self.tell(|| format!("worker {w} stands still"));
                self.ledger.disturbed[process] = true;
                self.workers[w].paused = true;
            }
            _ if self.workers[w].paused => {}
            Kind::CutWorker => {
                let cut = !self.workers[w].cut;
                self.tell(|| format!("worker {w} is {}", if cut { "cut off" } else { "no longer cut off" }));
                self.ledger.disturbed[process] = true;
                self.workers[w].cut = cut;
            }
            Kind::DrainWorker => {
                self.tell(|| format!("worker {w} is asked to end"));
                self.leave(w, pick & 1 == 1);
                self.gone(w);
            }
            Kind::GiveUp => self.give_claim_up(w),
            Kind::Resend => {
                if let Some(n) = self.workers[w].held.iter().position(|held| held.reported) {
                    self.tell(|| format!("worker {w} sends a report again"));
                    self.put(w, n);
                }
            }
            _ => {}
        }
    }

    /// A process that stood still goes on: first of all it looks at its leases.
    pub(super) fn resume(&mut self, w: usize) {
        self.tell(|| format!("worker {w} goes on"));
        self.workers[w].paused = false;
        self.expire(w);
    }
}
