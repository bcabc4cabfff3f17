//! A worker process: it pulls, claims, runs, renews, reports, and gives back what it cannot finish.

use redial_proto::{Effect, ErrorClass};

use super::{
    ACK_WAIT, LEASE, MARGIN, World,
    network::numbers,
    rows::{Claim, Execution, Grant, Job, Jobs, Ms, Outcome, Packet, Process, Report},
};
use crate::{Invariant, Mutation};

/// Attempts that it runs at once.
const SLOTS: usize = 2;
/// It renews every third of the lease.
const HEARTBEAT: Ms = LEASE / 3;
/// A heartbeat that failed is tried again after this.
const RENEW_AGAIN: Ms = LEASE / 20;
/// A heartbeat's answer counts only within this.
const ANSWER: Ms = 3_000;
/// What is not answered is asked for again after this.
const ASK_AGAIN: Ms = 2_000;
/// A claim without an answer is given up after this.
const GIVE_UP: Ms = 20_000;

/// A process; when it dies another one takes its place.
#[derive(Clone, Debug)]
pub(super) struct Worker {
    pub(super) process: Process,
    /// Stopped by a signal; its tools may go on.
    pub(super) paused: bool,
    /// It cannot reach anybody.
    pub(super) cut: bool,
    /// Asked to end: it takes nothing new.
    pub(super) leaving: bool,
    pub(super) held: Vec<Held>,
    pub(super) claims: Vec<Asked>,
    /// Releases without an answer.
    pub(super) releases: Vec<Grant>,
    beat: u32,
    beat_sent: Ms,
    renew_at: Ms,
    chores_at: Ms,
}

/// An attempt that it answers for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held {
    pub(super) grant: Grant,
    pub(super) effect: Effect,
    pub(super) lease: Ms,
    /// Its execution in the ledger.
    pub(super) execution: usize,
    /// The tool is done, or was stopped; the report is not on record yet.
    pub(super) reported: bool,
}

/// A claim that was not answered yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    pub(super) claim: Claim,
    pub(super) jobs: Jobs,
    deliveries: u32,
    sent: Ms,
    /// The messages on the stream.
    messages: [u32; SLOTS],
}

impl Worker {
    pub(super) const fn new(process: Process) -> Self {
        Self {
            process,
            paused: false,
            cut: false,
            leaving: false,
            held: Vec::new(),
            claims: Vec::new(),
            releases: Vec::new(),
            beat: 0,
            beat_sent: 0,
            renew_at: 0,
            chores_at: 0,
        }
    }

    fn is_idle(&self) -> bool {
        self.held.is_empty() && self.claims.is_empty() && self.releases.is_empty()
    }

    pub(super) fn free_slots(&self) -> usize {
        let running = self.held.iter().filter(|held| !held.reported).count();
        let asked: usize = self.claims.iter().map(|asked| asked.jobs.as_slice().len()).sum();
        let full = self.paused || self.cut || self.leaving || self.held.len() >= Jobs::MOST;
        if full { 0 } else { SLOTS.saturating_sub(running + asked) }
    }

    /// When it has something to do, whatever comes in.
    pub(super) fn due_at(&self) -> Ms {
        if self.paused || self.is_idle() {
            return Ms::MAX;
        }
        let leases = self.held.iter().filter(|held| !held.reported).map(|held| held.lease);
        leases.chain([self.renew_at, self.chores_at]).min().unwrap_or(Ms::MAX)
    }

    fn find(&self, job: Job) -> Option<usize> {
        self.held.iter().position(|held| held.grant.job == job)
    }
}

impl World {
    // ---- Pull and claim ----

    /// Pulls jobs for the free slots, and asks for them.
    pub(super) fn pull(&mut self, w: usize) {
        let free = self.workers[w].free_slots();
        let (mut jobs, mut messages, mut deliveries) = (Jobs::default(), [0; SLOTS], 0);
        for message in self.jobs.iter_mut().filter(|message| message.again_at <= self.now).take(free) {
            message.again_at = self.now + ACK_WAIT;
            message.deliveries += 1;
            deliveries = message.deliveries;
            messages[jobs.as_slice().len()] = message.seq;
            jobs.push(message.job);
        }
        self.claims += 1;
        let (claim, now) = (self.claims, self.now);
        self.tell(|| format!("worker {w} pulls {} and asks for them in claim {claim}", numbers(&jobs)));
        let asked = Asked { claim, jobs, deliveries, sent: now, messages };
        if self.workers[w].is_idle() {
            self.workers[w].renew_at = now + HEARTBEAT;
            self.workers[w].chores_at = now + ASK_AGAIN;
        }
        self.workers[w].claims.push(asked);
        self.ask(w, &asked);
    }

    fn ask(&mut self, w: usize, asked: &Asked) {
        let worker = self.workers[w].process;
        let Asked { claim, jobs, deliveries, .. } = *asked;
        self.send(Packet::Claim { worker, claim, jobs, deliveries });
    }

    /// There was no answer. The claim may have been granted all the same, so it is given back.
    pub(super) fn give_claim_up(&mut self, w: usize) {
        if self.workers[w].claims.is_empty() {
            return;
        }
        let asked = self.workers[w].claims.remove(0);
        self.tell(|| format!("worker {w} gives claim {} up", asked.claim));
        for job in asked.jobs.as_slice() {
            self.give_back(w, Grant { job: *job, claim: asked.claim });
        }
    }

    fn give_back(&mut self, w: usize, grant: Grant) {
        self.workers[w].releases.push(grant);
        let worker = self.workers[w].process;
        self.send(Packet::Release { worker, grant });
    }

    // ---- What it is told ----

    pub(super) fn hear(&mut self, w: usize, packet: Packet) {
        match packet {
            Packet::Granted { claim, jobs, .. } => self.granted(w, claim, &jobs),
            Packet::Renewed { beat, held, lost, cancelled, .. } => self.renewed(w, beat, [&held, &lost, &cancelled]),
            Packet::Released { grant, .. } => {
                self.workers[w].releases.retain(|release| *release != grant);
            }
            Packet::Ingested { job, .. } => self.forget(w, job, true),
            Packet::Stop { job, .. } => self.cancelled(w, job),
            Packet::Claim { .. } | Packet::Renew { .. } | Packet::Release { .. } => {}
        }
    }

    /// Runs what was granted, gives back what it cannot run any more, and acknowledges the jobs.
    fn granted(&mut self, w: usize, claim: Claim, granted: &Jobs) {
        let Some(n) = self.workers[w].claims.iter().position(|asked| asked.claim == claim) else { return };
        let asked = self.workers[w].claims.remove(n);
        self.jobs.retain(|message| !asked.messages.contains(&message.seq));
        let lease = asked.sent + LEASE - MARGIN;
        for job in granted.as_slice() {
            let grant = Grant { job: *job, claim };
            if self.workers[w].find(*job).is_some() {
                continue;
            }
            if self.workers[w].leaving || self.now >= lease {
                self.give_back(w, grant);
            } else {
                self.start(w, grant, lease);
            }
        }
    }

    fn start(&mut self, w: usize, grant: Grant, lease: Ms) {
        self.tell(|| format!("worker {w} starts call {}, attempt {}", grant.job.call, grant.job.attempt));
        let call = grant.job.call;
        // A process that stands still, or stood still a moment ago, cannot stop its tool in time.
        let awake = self.workers.iter().filter(|worker| !worker.paused);
        let runs = |held: &Held| !held.reported && held.grant.job.call == call;
        if awake.flat_map(|worker| &worker.held).any(runs) {
            self.accuse(Invariant::LeasesApart, || format!("call {call} runs twice at the same time"));
        }
        let (worker, execution) = (self.workers[w].process, self.ledger.executions.len());
        let begun = Execution { job: grant.job, worker, effect: false, stopped: false, reported: None };
        self.ledger.executions.push(begun);
        let effect = self.row(call).effect;
        self.workers[w].held.push(Held { grant, effect, lease, execution, reported: false });
    }

    fn renewed(&mut self, w: usize, beat: u32, [held, lost, cancelled]: [&Jobs; 3]) {
        let worker = &mut self.workers[w];
        if worker.beat != beat || self.now > worker.beat_sent + ANSWER {
            return;
        }
        worker.renew_at = worker.beat_sent + HEARTBEAT;
        let lease = worker.beat_sent + LEASE - MARGIN;
        for one in worker.held.iter_mut().filter(|one| held.as_slice().contains(&one.grant.job)) {
            one.lease = one.lease.max(lease);
        }
        for job in lost.as_slice() {
            self.forget(w, *job, false);
        }
        for job in cancelled.as_slice() {
            self.cancelled(w, *job);
        }
    }

    /// No longer its business. `ingested`: its report is on record; else the lease was lost.
    fn forget(&mut self, w: usize, job: Job, ingested: bool) {
        let Some(n) = self.workers[w].find(job) else { return };
        let held = self.workers[w].held[n];
        if !held.reported {
            if ingested {
                return;
            }
            self.ledger.executions[held.execution].stopped = true;
        }
        self.workers[w].held.remove(n);
    }

    fn cancelled(&mut self, w: usize, job: Job) {
        let Some(n) = self.workers[w].find(job).filter(|n| !self.workers[w].held[*n].reported) else { return };
        self.tell(|| format!("worker {w} stops call {}: it is cancelled", job.call));
        self.stop_tool(w, n, ErrorClass::Cancelled);
    }

    /// The tool is stopped, and that is reported.
    fn stop_tool(&mut self, w: usize, n: usize, class: ErrorClass) {
        self.ledger.executions[self.workers[w].held[n].execution].stopped = true;
        self.report(w, n, Outcome { class: Some(class), effect_possible: true, retry_after: None });
    }

    // ---- Reports ----

    /// An attempt has ended: the report is put on the stream until it is on record.
    pub(super) fn report(&mut self, w: usize, n: usize, outcome: Outcome) {
        let held = &mut self.workers[w].held[n];
        held.reported = true;
        let execution = held.execution;
        self.ledger.executions[execution].reported = Some(outcome);
        self.put(w, n);
    }

    /// Puts the report of an ended attempt on the stream.
    pub(super) fn put(&mut self, w: usize, n: usize) {
        let worker = &self.workers[w];
        let execution = self.ledger.executions[worker.held[n].execution];
        if let (true, false, Some(outcome)) = (self.nats_up, worker.cut, execution.reported) {
            let report = Report { job: execution.job, worker: worker.process, outcome };
            self.old_reports.push(report);
            self.store_report(report);
        }
    }

    // ---- Time ----

    /// Does what is due at this time.
    pub(super) fn worker_wakes(&mut self, w: usize) {
        self.expire(w);
        let now = self.now;
        if self.workers[w].renew_at <= now {
            self.beat(w);
        }
        if self.workers[w].chores_at <= now {
            self.workers[w].chores_at = now + ASK_AGAIN;
            self.chores(w);
        }
    }

    /// Stops the tools whose lease is over.
    pub(super) fn expire(&mut self, w: usize) {
        let (now, mut n) = (self.now, 0);
        if self.has(Mutation::ToolOutlivesLease) {
            return self.workers[w].held.iter_mut().for_each(|held| held.lease = Ms::MAX);
        }
        while n < self.workers[w].held.len() {
            let held = self.workers[w].held[n];
            if held.reported || held.lease > now || !self.hand_back(w, n) {
                n += 1;
            }
        }
    }

    /// Stops a tool half-way. What may run twice is given back; true if so. It is unknown how far an `unsafe` tool came.
    fn hand_back(&mut self, w: usize, n: usize) -> bool {
        let held = self.workers[w].held[n];
        let call = held.grant.job.call;
        if held.effect == Effect::Unsafe {
            self.tell(|| format!("worker {w} stops call {call} and reports it lost"));
            self.stop_tool(w, n, ErrorClass::Lost);
            return false;
        }
        self.tell(|| format!("worker {w} stops call {call} and gives it back"));
        self.ledger.executions[held.execution].stopped = true;
        self.workers[w].held.remove(n);
        self.give_back(w, held.grant);
        true
    }

    fn beat(&mut self, w: usize) {
        let (now, up) = (self.now, self.nats_up);
        let worker = &mut self.workers[w];
        worker.beat += 1;
        worker.beat_sent = now;
        worker.renew_at = now + if up && !worker.cut { ANSWER } else { RENEW_AGAIN };
        let (process, beat, mut jobs) = (worker.process, worker.beat, Jobs::default());
        worker.held.iter().for_each(|held| jobs.push(held.grant.job));
        if !jobs.as_slice().is_empty() {
            self.send(Packet::Renew { worker: process, beat, jobs });
        }
    }

    /// Asks again for what was not answered.
    fn chores(&mut self, w: usize) {
        if self.workers[w].claims.first().is_some_and(|asked| self.now - asked.sent >= GIVE_UP) {
            self.give_claim_up(w);
        }
        for n in 0..self.workers[w].claims.len() {
            let asked = self.workers[w].claims[n];
            self.ask(w, &asked);
        }
        let worker = self.workers[w].process;
        for n in 0..self.workers[w].releases.len() {
            let grant = self.workers[w].releases[n];
            self.send(Packet::Release { worker, grant });
        }
        for n in 0..self.workers[w].held.len() {
            if self.workers[w].held[n].reported {
                self.put(w, n);
            }
        }
    }

    // ---- Its end ----

    /// A process ends without a word; another one starts.
    pub(super) fn replace_worker(&mut self, w: usize) {
        let process = self.new_process();
        let worker = &mut self.workers[w];
        let (mut held, mut claims, mut releases) = (
            std::mem::take(&mut worker.held),
            std::mem::take(&mut worker.claims),
            std::mem::take(&mut worker.releases),
        );
        held.clear();
        claims.clear();
        releases.clear();
        *worker = Worker { held, claims, releases, ..Worker::new(process) };
    }

    /// A process that was asked to end gives back what it can, now or when its tools are done.
    pub(super) fn leave(&mut self, w: usize, at_once: bool) {
        self.workers[w].leaving = true;
        while !self.workers[w].claims.is_empty() {
            self.give_claim_up(w);
        }
        let mut n = 0;
        while at_once && n < self.workers[w].held.len() {
            if self.workers[w].held[n].reported || !self.hand_back(w, n) {
                n += 1;
            }
        }
    }

    /// A process that was asked to end and has nothing left to do is gone.
    pub(super) fn gone(&mut self, w: usize) {
        if self.workers[w].leaving && !self.workers[w].paused && self.workers[w].is_idle() {
            self.tell(|| format!("worker {w} has ended, another one starts"));
            self.replace_worker(w);
        }
    }
}
