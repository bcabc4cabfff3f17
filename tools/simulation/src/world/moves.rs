//! Plays the moves of a plan.

use redial_records::InboxItem;

use super::{
    dispatcher::{Cancel, OperationKind},
    ids::{CallNo, TENANT, TOOLS, consumer_name},
    messages::Job,
    state::World,
    transaction::CommitOutcome,
};
use crate::{
    Mutation,
    plan::{Move, MoveKind},
};

/// Time that a move lets pass, in ms: mostly short, sometimes longer than a lease, or than a consumer is kept.
const SPANS: [i64; 8] = [1_000, 20, 200, 3_000, 6_000, 130_000, 17_000, 40_000];

impl World {
    pub(super) fn play(&mut self, one: Move) {
        self.now += 1;
        let pick = one.pick;
        let d = (pick >> 16) as usize % self.dispatchers.len();
        let w = (pick >> 16) as usize % self.workers.len();
        match one.kind {
            MoveKind::Event => drop(self.next_event(pick)),
            MoveKind::Tick => self.tick(pick),
            MoveKind::Submit => self.submit(pick),
            MoveKind::CancelCall => self.cancel_call(d, pick),
            MoveKind::CancelTask => self.cancel_task(d, pick),
            MoveKind::Sweep => self.sweep(d, pick, CommitOutcome::of(pick)),
            MoveKind::Feed => self.feed(d, pick, CommitOutcome::of(pick)),
            MoveKind::CheckStreams => self.check_streams(d, CommitOutcome::of(pick)),
            MoveKind::KillDispatcher => self.kill_dispatcher(d),
            MoveKind::LoseControlMessage | MoveKind::DuplicateControlMessage => {
                self.disturb_control_messages(one.kind, pick);
            }
            MoveKind::LoseJob | MoveKind::RepeatJob | MoveKind::RepeatReport | MoveKind::Wipe => {
                self.disturb_streams(one.kind, pick);
            }
            MoveKind::ToggleNats => self.toggle_nats(),
            MoveKind::TogglePostgres => self.toggle_postgres(),
            _ => self.disturb_worker(one.kind, w, pick),
        }
        self.check_ready();
        if self.has(Mutation::CommitNotDurable) && one.kind == MoveKind::Tick {
            self.durable.clone_from(&self.tables);
        }
    }

    fn tick(&mut self, pick: u32) {
        let span = SPANS[(pick & 7) as usize];
        self.log(|| format!("{span} ms pass"));
        self.advance_to(self.now + span);
    }

    // ---- Clients ----

    /// A client submits a call or a task, or submits it again if it was not acknowledged. The key makes it one call.
    fn submit(&mut self, pick: u32) {
        let (calls, tasks) = (u32::from(self.setup.calls), u32::from(self.setup.tasks));
        let n = (pick & 0xff) % (calls + tasks);
        let d = (pick >> 16) as usize % self.dispatchers.len();
        if n < calls {
            self.submit_call(d, n as CallNo, CommitOutcome::of(pick));
        } else {
            self.submit_task(d, (n - calls) as u8, CommitOutcome::of(pick));
        }
    }

    pub(super) fn submit_call(&mut self, d: usize, call: CallNo, commit: CommitOutcome) {
        if self.ledger.calls >> call & 1 == 1 || !self.nats_up {
            return;
        }
        let row = self.row(call);
        self.log(|| format!("a client submits call {call} ({}, at most {} attempts)", row.effect, row.max_attempts));
        let consumer = self.admit(d, row.tool);
        let written = self.transaction(d, commit, |world| world.insert(call, consumer));
        if let Some(consumer) = consumer.filter(|_| written != Some(true)) {
            let tool = TOOLS[usize::from(row.tool)];
            self.dispatchers[d].feeder.windows.arrived(&consumer_name(consumer), tool);
        }
        if let Some(new) = written {
            match consumer.filter(|_| new) {
                Some(consumer) => self.publish(d, Job { call, attempt: 1 }, 1, consumer),
                None => self.dispatchers[d].feeder.windows.waits(TOOLS[usize::from(row.tool)], TENANT),
            }
            self.ledger.calls |= 1 << call;
        } else if self.has(Mutation::ReplyBeforeCommit) {
            self.ledger.calls |= 1 << call;
        }
    }

    pub(super) fn submit_task(&mut self, d: usize, task: u8, commit: CommitOutcome) {
        if self.ledger.tasks >> task & 1 == 1 || !self.nats_up {
            return;
        }
        self.log(|| format!("a client submits task {task}"));
        let written = self.transaction(d, commit, |world| {
            let now = world.now;
            let row = &mut world.tables.tasks[usize::from(task)];
            if !row.exists {
                (row.exists, row.progress, row.submitted_at, row.wake_at) = (true, None, now, Some(now + 1_000));
                world.tables.add_to_inbox(task, InboxItem::Start);
            }
        });
        if written.is_some() || self.has(Mutation::ReplyBeforeCommit) {
            self.ledger.tasks |= 1 << task;
        }
    }

    fn cancel_call(&mut self, d: usize, pick: u32) {
        let call = (pick & 0xff) as usize % self.tables.calls.len();
        if self.tables.calls[call].is_open() && self.nats_up {
            self.log(|| format!("a client cancels call {call}"));
            self.dispatchers[d].begin(OperationKind::Cancel(Cancel { call: call as CallNo, for_client: true }));
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
            self.log(|| format!("a client cancels task {task}"));
            self.transaction(d, CommitOutcome::of(pick), |world| {
                world.tables.add_to_inbox(task as u8, InboxItem::Cancel);
            });
        }
    }

    // ---- Faults of servers and the network ----

    fn disturb_control_messages(&mut self, kind: MoveKind, pick: u32) {
        if self.control_messages.is_empty() {
            return;
        }
        let at = (pick & 0xffff) as usize % self.control_messages.len();
        let message = self.control_messages[at];
        self.log(|| {
            format!("{message} {}", if kind == MoveKind::LoseControlMessage { "is lost" } else { "is duplicated" })
        });
        if kind == MoveKind::LoseControlMessage {
            self.control_messages.remove(at);
        } else if self.can_deliver(&message) && self.nats_up {
            self.deliver(message, pick);
        }
    }

    fn disturb_streams(&mut self, kind: MoveKind, pick: u32) {
        let nth = |many: usize| (pick & 0xffff) as usize % many;
        match kind {
            MoveKind::LoseJob if !self.jobs.is_empty() => {
                let lost = self.jobs.remove(nth(self.jobs.len()));
                self.log(|| format!("the job for attempt {} of call {} is lost", lost.job.attempt, lost.job.call));
            }
            MoveKind::RepeatJob if !self.old_jobs.is_empty() => {
                let (job, consumer) = self.old_jobs[nth(self.old_jobs.len())];
                self.log(|| format!("the job for attempt {} of call {} appears again", job.attempt, job.call));
                self.store_job(job, consumer, true);
            }
            MoveKind::RepeatReport if !self.old_reports.is_empty() => {
                let report = self.old_reports[nth(self.old_reports.len())];
                let job = report.job;
                self.log(|| format!("the report on attempt {} of call {} appears again", job.attempt, job.call));
                self.store_report(report);
            }
            MoveKind::Wipe => {
                self.log(|| "the store of NATS is wiped".to_owned());
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
        self.control_messages.clear();
        // A restarted server has no list of message ids.
        self.seen.clear();
        let up = self.nats_up;
        self.log(|| format!("NATS is {}", if up { "up" } else { "down" }));
    }

    fn toggle_postgres(&mut self) {
        self.postgres_up = !self.postgres_up;
        self.outages += 1;
        let up = self.postgres_up;
        self.log(|| format!("Postgres is {}", if up { "up" } else { "down" }));
        if self.has(Mutation::CommitNotDurable) && !up && self.durable.calls.len() == self.tables.calls.len() {
            self.tables.clone_from(&self.durable);
        }
    }

    // ---- Faults of workers ----

    fn disturb_worker(&mut self, kind: MoveKind, w: usize, pick: u32) {
        let process = usize::from(self.workers[w].process);
        match kind {
            MoveKind::KillWorker => {
                self.log(|| format!("worker {w} is killed, another one starts"));
                self.ledger.disturbed[process] = true;
                self.replace_worker(w);
            }
            MoveKind::PauseWorker if self.workers[w].paused => self.resume(w),
            MoveKind::PauseWorker => {
                self.log(|| format!("worker {w} is paused"));
                self.ledger.disturbed[process] = true;
                self.workers[w].paused = true;
            }
            _ if self.workers[w].paused => {}
            MoveKind::CutWorker => {
                let cut = !self.workers[w].cut;
                self.log(|| format!("worker {w} is {}", if cut { "cut off" } else { "reconnected" }));
                self.ledger.disturbed[process] = true;
                self.workers[w].cut = cut;
            }
            MoveKind::StopWorker => {
                self.log(|| format!("worker {w} is asked to stop"));
                self.shut_down(w, pick & 1 == 1);
                self.replace_if_stopped(w);
            }
            MoveKind::GiveUpClaim => self.give_up_claim(w),
            MoveKind::ResendReport => {
                if let Some(n) = self.workers[w].held.iter().position(|held| held.reported) {
                    self.log(|| format!("worker {w} sends a report again"));
                    self.send_report(w, n);
                }
            }
            _ => {}
        }
    }

    /// A paused process resumes: it first stops the tools whose lease has ended.
    pub(super) fn resume(&mut self, w: usize) {
        self.log(|| format!("worker {w} is resumed"));
        self.workers[w].paused = false;
        self.expire(w);
    }
}
