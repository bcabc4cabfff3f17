//! Plays the moves of a plan, and what is possible without time passing. The end of a history: the faults are over, and
//! everything must end by itself.

use chrono::TimeDelta;
use redial_engine::Time;
use redial_proto::ErrorClass;
use redial_records::InboxItem;

use super::{
    ACK_WAIT, World, call_id,
    dispatcher::CommitOutcome,
    job_of, named,
    operations::{Operation, OperationKind},
    worker::{Execution, Outcome, TIMER},
};
use crate::{
    Invariant, Mutation,
    plan::{Move, MoveKind},
};

/// Time that a move lets pass, in ms: mostly short, sometimes longer than a lease.
const SPANS: [i64; 8] = [1_000, 20, 200, 3_000, 6_000, 130_000, 17_000, 40_000];
/// Everything must end within this: some waits take five minutes, and several calls run one after another.
const DRAIN_LIMIT: TimeDelta = TimeDelta::seconds(6_000);
/// A worker that is cut off is reconnected after this: long enough that others must take over its attempts.
const HEAL_WORKERS_AFTER: TimeDelta = TimeDelta::seconds(60);
/// The most events at one moment; above what even the backlog of the longest outage needs.
const MAX_STEPS: u32 = 200_000;

impl World {
    pub(super) fn play(&mut self, one: Move) {
        self.now += TimeDelta::milliseconds(1);
        let (pick, nth) = (one.pick, |many: usize| (one.pick & 0xff) as usize % many.max(1));
        let d = (pick >> 16) as usize % self.dispatchers.len();
        let w = (pick >> 16) as usize % self.workers.len();
        match one.kind {
            MoveKind::Event => drop(self.next_event(pick)),
            MoveKind::Tick => {
                let span = TimeDelta::milliseconds(SPANS[(pick & 7) as usize]);
                self.log(|| format!("{} ms pass", span.num_milliseconds()));
                self.advance_to(self.now + span);
            }
            MoveKind::Submit => {
                let (calls, tasks) = (usize::from(self.setup.calls), usize::from(self.setup.tasks));
                match nth(calls + tasks) {
                    n if n < calls => self.submit_call(d, n, CommitOutcome::of(pick)),
                    n => self.submit_task(d, n - calls, CommitOutcome::of(pick)),
                }
            }
            MoveKind::CancelCall => self.cancel_call(d, nth(self.calls.len())),
            MoveKind::CancelTask => self.cancel_task(d, nth(self.tasks.len()), CommitOutcome::of(pick)),
            MoveKind::Sweep => self.sweep(d, pick, CommitOutcome::of(pick)),
            MoveKind::Feed => self.feed(d, CommitOutcome::of(pick)),
            MoveKind::CheckStreams => self.check_streams(d),
            MoveKind::KillDispatcher => self.kill_dispatcher(d),
            MoveKind::RepeatRequest => {
                let (requests, all) = (self.old_requests.len(), self.old_requests.len() + self.late_answers.len());
                match nth(all) {
                    _ if !self.nats_up || all == 0 => {}
                    n if n < requests => {
                        let request = self.old_requests[n].clone();
                        self.log(|| format!("{request:?} arrives, late or again"));
                        self.serve(request, pick);
                    }
                    n => {
                        let answer = self.late_answers.remove(n - requests);
                        self.log(|| format!("{answer:?} arrives late"));
                        self.take_answer(answer);
                    }
                }
            }
            MoveKind::LoseJob | MoveKind::RepeatJob | MoveKind::RepeatReport | MoveKind::Wipe => {
                self.disturb_streams(one.kind, nth);
            }
            MoveKind::ToggleNats => self.toggle("NATS", |world| &mut world.nats_up),
            MoveKind::TogglePostgres => self.toggle("Postgres", |world| &mut world.postgres_up),
            MoveKind::LockCall => self.toggle_lock(nth(self.calls.len())),
            MoveKind::LoseGrant => self.lose_grant(nth(self.calls.len())),
            MoveKind::KillWorker | MoveKind::CutWorker => {
                self.log(|| format!("worker {w}: {:?}", one.kind));
                self.disturbed.push(self.workers[w].process);
                if one.kind == MoveKind::KillWorker {
                    self.kill_worker(w);
                } else {
                    self.workers[w].cut ^= true;
                }
            }
        }
    }

    // ---- Clients ----

    /// Submits a call as a client does, again if it was not acknowledged. The key makes it one call.
    fn submit_call(&mut self, d: usize, n: usize, commit: CommitOutcome) {
        if self.acknowledged_calls >> n & 1 == 1 || !self.nats_up {
            return;
        }
        let call = call_id(n as u128);
        let (effect, most) = (self.calls[n].record.effect, self.calls[n].max_attempts());
        self.log(|| format!("a client submits call {n} ({effect}, at most {most} attempts)"));
        let published = self.admits(d, call);
        let written = self.transaction(d, commit, |world| world.insert(call, published));
        if written == Some(true) && published {
            self.publish(redial_proto::JobRef { call, attempt: 1 }, 1);
        }
        if written.is_some() || self.has(Mutation::ReplyBeforeCommit) {
            self.acknowledged_calls |= 1 << n;
        }
    }

    fn submit_task(&mut self, d: usize, task: usize, commit: CommitOutcome) {
        if self.acknowledged_tasks >> task & 1 == 1 || !self.nats_up {
            return;
        }
        self.log(|| format!("a client submits task {task}"));
        let written = self.transaction(d, commit, |world| {
            let now = world.now;
            let row = &mut world.tasks[task];
            if !row.exists {
                (row.exists, row.submitted_at, row.wake_at) = (true, now, Some(now + TimeDelta::seconds(1)));
                world.add_to_inbox(task, InboxItem::Start);
            }
        });
        if written.is_some() || self.has(Mutation::ReplyBeforeCommit) {
            self.acknowledged_tasks |= 1 << task;
        }
    }

    fn cancel_call(&mut self, d: usize, n: usize) {
        if self.calls[n].is_open() && self.nats_up {
            let call = self.calls[n].record.id;
            self.log(|| format!("a client cancels call {call}"));
            let kind = OperationKind::Cancel { call, for_client: true };
            self.dispatchers[d].operations.push(Operation::new(kind));
        }
    }

    fn cancel_task(&mut self, d: usize, task: usize, commit: CommitOutcome) {
        let is_open = self.tasks.get(task).is_some_and(|row| row.exists && !row.state.is_terminal());
        if is_open && self.nats_up {
            self.log(|| format!("a client cancels task {task}"));
            self.transaction(d, commit, |world| world.add_to_inbox(task, InboxItem::Cancel));
        }
    }

    // ---- Faults ----

    fn disturb_streams(&mut self, kind: MoveKind, nth: impl Fn(usize) -> usize) {
        match kind {
            MoveKind::LoseJob if !self.jobs.is_empty() => {
                let lost = self.jobs.remove(nth(self.jobs.len()));
                self.log(|| format!("the job for attempt {} is lost", named(lost.job)));
            }
            MoveKind::RepeatJob if !self.old_jobs.is_empty() => {
                let job = self.old_jobs[nth(self.old_jobs.len())];
                self.log(|| format!("the job for attempt {} appears again", named(job)));
                self.store_job(job);
            }
            MoveKind::RepeatReport if !self.old_reports.is_empty() => {
                let report = self.old_reports[nth(self.old_reports.len())];
                self.log(|| format!("{report:?} appears again"));
                self.store_report(report);
            }
            MoveKind::Wipe => {
                self.log(|| "the store of NATS is wiped".to_owned());
                self.jobs.clear();
                self.results.clear();
            }
            _ => {}
        }
    }

    /// Locks a call or lets go of it. The lock may outlast a lease, which its worker cannot renew: then the attempt may
    /// be lost.
    fn toggle_lock(&mut self, n: usize) {
        let Some(row) = self.calls.get(n).filter(|row| row.exists) else { return };
        let (call, worker) = (row.record.id, row.record.worker.clone());
        let held = self.locked.len();
        self.locked.retain(|locked| *locked != call);
        if self.locked.len() == held {
            self.locked.push(call);
            self.disturbed.extend(worker.and_then(|worker| worker.as_str().parse::<u32>().ok()));
        }
        self.log(|| format!("call {call} is locked, or free again"));
    }

    fn toggle(&mut self, name: &str, server: fn(&mut Self) -> &mut bool) {
        let up = !*server(self);
        *server(self) = up;
        self.outages += 1;
        self.log(|| format!("{name} is {}", if up { "up" } else { "down" }));
    }

    // ---- Events ----

    /// Runs one of the possible events; false if there is none.
    fn next_event(&mut self, pick: u32) -> bool {
        let operations =
            if self.postgres_up { self.dispatchers.iter().map(|one| one.operations.len()).sum() } else { 0 };
        let workers = (0..self.workers.len()).filter(|w| self.can_claim(*w)).count();
        let tasks = (0..self.tasks.len()).filter(|task| self.is_task_due(*task)).count();
        let counts = [operations, self.results_to_take().count(), self.running().count(), workers, tasks];
        let all: usize = counts.iter().sum();
        if all == 0 {
            return false;
        }
        let (mut n, mut kind) = ((pick & 0xffff) as usize % all, 0);
        while n >= counts[kind] {
            n -= counts[kind];
            kind += 1;
        }
        match kind {
            0 => self.next_operation(n, CommitOutcome::of(pick)),
            1 => self.take_result(n, pick),
            2 => self.run_tool(n, pick >> 16),
            3 => {
                if let Some(w) = (0..self.workers.len()).filter(|w| self.can_claim(*w)).nth(n) {
                    self.claim_jobs(w, pick);
                }
            }
            _ => {
                if let Some(task) = (0..self.tasks.len()).filter(|task| self.is_task_due(*task)).nth(n) {
                    self.advance_task(task, pick);
                }
            }
        }
        true
    }

    fn next_operation(&mut self, mut n: usize, commit: CommitOutcome) {
        for d in 0..self.dispatchers.len() {
            let operations = self.dispatchers[d].operations.len();
            if n < operations {
                return self.step(d, n, commit);
            }
            n -= operations;
        }
    }

    fn results_to_take(&self) -> impl Iterator<Item = usize> {
        let due = |n: &usize| self.nats_up && self.results[*n].redeliver_at <= self.now;
        (0..self.results.len()).filter(due)
    }

    /// Takes a report from the stream as a dispatcher does.
    fn take_result(&mut self, n: usize, pick: u32) {
        let d = (pick >> 16) as usize % self.dispatchers.len();
        let Some(n) = self.results_to_take().nth(n) else { return };
        self.results[n].redeliver_at = self.now + ACK_WAIT;
        let message = self.results[n];
        self.log(|| format!("dispatcher {d} takes {:?}", message.report));
        self.dispatchers[d].operations.push(Operation::new(OperationKind::Ingest(message)));
    }

    /// Returns attempts whose tool can go on. After the faults, the tool of a worker that is cut off hangs, so that
    /// others take over.
    fn running(&self) -> impl Iterator<Item = usize> {
        let hangs = |process| self.draining && self.workers.iter().any(|one| one.process == process && one.cut);
        (0..self.executions.len()).filter(move |n| self.executions[*n].runs() && !hangs(self.executions[*n].worker))
    }

    /// Lets a tool have its effect, or end, or both.
    fn run_tool(&mut self, n: usize, pick: u32) {
        let Some(n) = self.running().nth(n) else { return };
        let Execution { grant, effect: done, .. } = self.executions[n];
        let outcome = self.outcome(pick, done);
        let has_effect = pick & 3 == 3 || outcome.class.is_none();
        if has_effect && !done {
            self.executions[n].effect = true;
            self.log(|| format!("the tool of attempt {} has its effect", named(job_of(grant))));
            // The record may have lost the grant of another one, whose worker was not heard before this one was granted.
            let counts = |one: &&Execution| one.grant.call == grant.call && one.effect && !one.lost;
            let times = self.executions.iter().filter(counts).count();
            if times > 1 && self.call(grant.call).record.effect == redial_proto::ToolEffect::Unsafe {
                let found = || format!("the unsafe tool of attempt {} had its effect before", named(job_of(grant)));
                self.report_violation(Invariant::UnsafeOnce, found);
            }
            if pick & 3 == 3 {
                return;
            }
        }
        self.log(|| format!("attempt {} ends, {:?}", named(job_of(grant)), outcome.class));
        self.report(n, outcome);
    }

    /// Returns how an attempt ends: three of five succeed, and most others can be retried. Workers report `lost` only
    /// of a tool that they stopped.
    fn outcome(&self, pick: u32, effect: bool) -> Outcome {
        const OFTEN: [ErrorClass; 4] =
            [ErrorClass::Unavailable, ErrorClass::Timeout, ErrorClass::RateLimited, ErrorClass::Internal];
        let number = (pick >> 2 & 63) as usize;
        let any = ErrorClass::ALL[(number + self.steps as usize) % ErrorClass::ALL.len()];
        let class = match number {
            0..38 => None,
            _ if number.is_multiple_of(4) => Some(if any == ErrorClass::Lost { ErrorClass::Auth } else { any }),
            _ => Some(OFTEN[number / 4 % OFTEN.len()]),
        };
        Outcome { class, effect_possible: effect || pick & 3 != 1, pauses: pick & 4 == 4 }
    }

    /// Lets time pass, and runs the timers of workers. A calm network delivers at once, and no transaction fails.
    fn advance_to(&mut self, until: Time) {
        while self.violation.is_none() {
            for _ in 0..1000 {
                let waits = self.dispatchers.iter().any(|one| !one.operations.is_empty());
                if !self.is_prompt() || !self.postgres_up || !waits {
                    break;
                }
                self.next_operation(0, CommitOutcome::Committed);
            }
            if self.now >= until {
                break;
            }
            self.now = if self.has_timers() { until.min(self.now + TIMER) } else { until };
            self.hear();
            self.run_timers();
        }
    }

    // ---- The end ----

    /// Repairs everything, submits again what was not acknowledged, and plays until all has ended.
    pub(super) fn drain(&mut self) {
        self.heal();
        let began = self.now;
        loop {
            self.settle();
            let calls_ended = self.calls.iter().all(|row| !row.is_open());
            if (calls_ended && self.tasks.iter().all(|row| !row.exists || row.state.is_terminal()))
                || self.violation.is_some()
            {
                return;
            }
            if self.now >= began + DRAIN_LIMIT {
                return self.report_unfinished();
            }
            if self.now >= began + HEAL_WORKERS_AFTER {
                self.workers.iter_mut().for_each(|worker| worker.cut = false);
            }
            let (soonest, latest) = (self.now + TimeDelta::milliseconds(1), self.now + TimeDelta::seconds(10));
            self.advance_to(self.next_due().clamp(soonest, latest));
            for d in 0..self.dispatchers.len() {
                self.check_streams(d);
                self.sweep(d, 0, CommitOutcome::Committed);
                self.feed(d, CommitOutcome::Committed);
            }
        }
    }

    fn heal(&mut self) {
        self.log(|| "the faults are over".to_owned());
        self.draining = true;
        if !self.nats_up || !self.postgres_up {
            self.outages += 1;
        }
        (self.nats_up, self.postgres_up) = (true, true);
        self.locked.clear();
        for n in 0..usize::from(self.setup.calls) {
            self.submit_call(0, n, CommitOutcome::Committed);
        }
        for task in 0..usize::from(self.setup.tasks) {
            self.submit_task(0, task, CommitOutcome::Committed);
        }
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

    fn next_due(&self) -> Time {
        let calls = self.calls.iter().filter(|row| row.is_open()).map(|row| row.wake_at);
        let tasks = self.tasks.iter().filter_map(|row| row.wake_at);
        let messages = self.jobs.iter().map(|message| message.redeliver_at);
        let due = calls.chain(tasks).chain(messages).filter(|at| *at > self.now).min();
        due.unwrap_or(self.now + TimeDelta::seconds(1))
    }

    fn report_unfinished(&mut self) {
        let open = self.calls.iter().find(|row| row.is_open()).cloned();
        if let Some(row) = open {
            let found = || format!("call {} is still {}", row.record.id, row.record.state);
            self.report_violation(Invariant::EveryCallEnds, found);
        } else {
            self.report_violation(Invariant::EveryTaskEnds, || "a task never ends".to_owned());
        }
    }
}
