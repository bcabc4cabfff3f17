//! The clients: they submit calls and tasks, record each acknowledgement, repeat requests without an answer, and
//! sometimes cancel.

use std::{
    collections::VecDeque,
    path::Path,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use chrono::Utc;
use redial_proto::{
    CallId, CallState, CancelReply, CancelRequest, Code, GetRequest, Language, Submission, SubmitBatch,
    SubmitBatchReply, SubmitResult, SubmitStatus, TaskGet, TaskId, TaskResult, TaskSubmission, UserRole,
    subjects::Verb,
};
use redial_queue::{Queue, QueueError};
use redial_testkit::{Claims, Ear, Observer};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::value::RawValue;
use tokio::task::JoinSet;

use crate::load::{MAY_WAIT, PlannedCall};

/// A request without an answer after this time has an unknown outcome.
const ANSWER: Duration = Duration::from_secs(2);
/// The pause before a request is repeated.
const PAUSE: Duration = Duration::from_millis(50);
/// Clients of a tenant that submit calls side by side.
const CLIENTS: usize = 2;
/// Calls in one message, unless so many are to be submitted that it takes more.
const BATCH: usize = 8;
/// Messages of all clients per second, by which the number of calls in a message is chosen.
const MESSAGES: f64 = 20.0;
/// Clients submit more only while fewer calls and tasks than this are open, or than what is submitted in [`LIVE_FOR`].
const MAX_LIVE: u64 = 300;
const LIVE_FOR: Duration = Duration::from_secs(3);

/// Between two questions about what a tenant has submitted.
const READS: Duration = Duration::from_millis(200);

/// What clients know.
#[derive(Debug, Default)]
pub(crate) struct Log {
    acknowledged: Vec<(CallId, Option<String>)>,
    tasks: Vec<TaskId>,
    cancelled: Vec<(CallId, chrono::DateTime<Utc>)>,
    /// Answers that must not occur.
    pub(crate) surprises: Vec<String>,
    /// Requests whose outcome was unknown, and which were repeated.
    pub(crate) unknown: u64,
}

/// The clients of all tenants, and what they share.
pub(crate) struct Clients {
    customers: Vec<Customer>,
    log: Mutex<Log>,
    pace: Pace,
    live: AtomicU64,
}

/// The clients of a tenant.
pub(crate) struct Customer {
    /// As its user, through the proxy.
    queue: Queue,
    /// Hears every answer and every event.
    ear: Ear,
    calls: Mutex<VecDeque<PlannedCall>>,
    tasks: Mutex<VecDeque<TaskSubmission>>,
    /// How many there were at first.
    planned: (usize, usize),
    /// What it may ask about.
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    calls: Vec<CallId>,
    tasks: Vec<TaskId>,
}

impl Customer {
    /// Submits these, and listens to the events of its tenant from now on.
    pub(crate) async fn new(
        queue: Queue,
        calls: Vec<PlannedCall>,
        tasks: Vec<TaskSubmission>,
    ) -> Result<Self, QueueError> {
        let ear = Ear::new(format!("user {}", queue.user()), Some(queue.tenant().as_str()));
        let mut events = queue.subscribe(&format!("redial.events.{}.>", queue.tenant())).await?;
        let heard = ear.clone();
        tokio::spawn(async move {
            while let Some((subject, event)) = events.next_with_subject().await {
                heard.hear(&subject, &event);
            }
        });
        let planned = (calls.len(), tasks.len());
        let (calls, tasks) = (Mutex::new(calls.into()), Mutex::new(tasks.into()));
        Ok(Self { queue, ear, calls, tasks, planned, known: Mutex::default() })
    }

    /// Asks in this role, and hears the answer, be it an error.
    async fn ask<T: DeserializeOwned>(&self, role: UserRole, verb: Verb, request: &impl Serialize) -> Option<T> {
        let answer = self.queue.ask_as::<_, Box<RawValue>>(role, verb, request, ANSWER).await;
        match answer {
            Ok(answer) => {
                self.ear.hear(verb.name(), answer.get().as_bytes());
                serde_json::from_str(answer.get()).ok()
            }
            Err(error) => {
                self.ear.hear(verb.name(), error.to_string().as_bytes());
                None
            }
        }
    }

    /// Reads a call and a task, to hear what the answers hold.
    async fn read(&self) {
        let (call, task) = {
            let known = lock(&self.known);
            (some(&known.calls), some(&known.tasks))
        };
        if let Some(call) = call {
            let request = GetRequest { call, language: Language::En };
            let _heard: Option<serde_json::Value> = self.ask(UserRole::Read, Verb::CallGet, &request).await;
        }
        if let Some(task) = task {
            let request = TaskGet { task, after_step: 0 };
            let _heard: Option<serde_json::Value> = self.ask(UserRole::Read, Verb::TaskGet, &request).await;
        }
    }
}

fn some<T: Copy>(all: &[T]) -> Option<T> {
    (!all.is_empty()).then(|| all[rand::random_range(0..all.len())])
}

/// Spreads the submissions over the time of the faults.
#[derive(Debug)]
struct Pace {
    began: Instant,
    over: Duration,
    /// Calls per second.
    rate: f64,
    skip_pauses: AtomicBool,
}

impl Pace {
    fn batch(&self) -> usize {
        BATCH.max(whole(self.rate / MESSAGES) as usize)
    }

    fn most_live(&self) -> u64 {
        MAX_LIVE.max(whole(self.rate * LIVE_FOR.as_secs_f64()).into())
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rate of at most 10,000,000 calls")]
fn whole(number: f64) -> u32 {
    number as u32
}

impl Clients {
    /// Clients that will have submitted everything after this time, or soon after [`Clients::skip_pauses`].
    pub(crate) fn new(customers: Vec<Customer>, over: Duration) -> Arc<Self> {
        let calls: u32 = customers.iter().map(|one| u32::try_from(one.planned.0).unwrap_or(u32::MAX)).sum();
        let rate = f64::from(calls) / over.as_secs_f64();
        let pace = Pace { began: Instant::now(), over, rate, skip_pauses: AtomicBool::new(false) };
        Arc::new(Self { customers, log: Mutex::default(), pace, live: AtomicU64::new(0) })
    }

    /// Starts submitting. The set is empty when everything is acknowledged.
    pub(crate) fn start(self: &Arc<Self>, observer: &Observer) -> JoinSet<()> {
        let mut working = JoinSet::new();
        for customer in 0..self.customers.len() {
            for _ in 0..CLIENTS {
                working.spawn(Arc::clone(self).submit_calls(customer));
            }
            working.spawn(Arc::clone(self).submit_tasks(customer));
            let clients = Arc::clone(self);
            tokio::spawn(async move {
                loop {
                    clients.customers[customer].read().await;
                    tokio::time::sleep(READS).await;
                }
            });
        }
        let (clients, observer) = (Arc::clone(self), observer.clone());
        working.spawn(async move {
            while clients.left() > 0 {
                let all = clients.pace.skip_pauses.load(Ordering::Relaxed);
                let live = if all { observer.live().await } else { observer.live_besides(&MAY_WAIT).await };
                if let Some(live) = live {
                    clients.live.store(live, Ordering::Relaxed);
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        });
        working
    }

    /// Submits the rest without pauses, because the faults are over.
    pub(crate) fn skip_pauses(&self) {
        self.pace.skip_pauses.store(true, Ordering::Relaxed);
    }

    /// Calls and tasks that no client has submitted yet.
    pub(crate) fn left(&self) -> usize {
        self.customers.iter().map(|one| lock(&one.calls).len() + lock(&one.tasks).len()).sum()
    }

    /// Calls and tasks that were acknowledged.
    pub(crate) fn acknowledged(&self) -> (usize, usize) {
        let log = lock(&self.log);
        (log.acknowledged.len(), log.tasks.len())
    }

    /// What clients received, for the checker.
    pub(crate) fn claims(&self) -> Claims {
        let log = lock(&self.log);
        Claims {
            acknowledged: log.acknowledged.clone(),
            tasks: log.tasks.clone(),
            cancelled: log.cancelled.clone(),
            heard: self.customers.iter().map(|one| one.ear.heard()).collect(),
            ..Claims::default()
        }
    }

    /// What clients know.
    pub(crate) fn log(&self) -> MutexGuard<'_, Log> {
        lock(&self.log)
    }

    /// Writes what was acknowledged to a file, a line each.
    pub(crate) fn write(&self, file: &Path) -> std::io::Result<()> {
        let log = self.log();
        let calls = log.acknowledged.iter().map(|(id, key)| format!("call {id} {}\n", key.as_deref().unwrap_or("-")));
        let tasks = log.tasks.iter().map(|id| format!("task {id}\n"));
        let cancelled = log.cancelled.iter().map(|(id, at)| format!("cancelled {id} {}\n", at.timestamp_micros()));
        std::fs::write(file, calls.chain(tasks).chain(cancelled).collect::<String>())
    }

    async fn submit_calls(self: Arc<Self>, customer: usize) {
        let customer = &self.customers[customer];
        loop {
            let batch: Vec<PlannedCall> = {
                let mut calls = lock(&customer.calls);
                let most = calls.len().min(self.pace.batch());
                if most == 0 {
                    return;
                }
                let room = if self.may_submit(customer.planned.0, calls.len()) { most } else { 0 };
                calls.drain(..room).collect()
            };
            if batch.is_empty() {
                tokio::time::sleep(PAUSE).await;
                continue;
            }
            let results = submit_until_answered(customer, &self.log, &batch).await;
            for (wish, call) in batch.iter().zip(results) {
                if let (true, Some(call)) = (wish.cancel, call) {
                    self.cancel(customer, call).await;
                }
            }
        }
    }

    async fn submit_tasks(self: Arc<Self>, customer: usize) {
        let customer = &self.customers[customer];
        loop {
            let next = {
                let mut tasks = lock(&customer.tasks);
                if tasks.is_empty() {
                    return;
                }
                self.may_submit(customer.planned.1, tasks.len()).then(|| tasks.pop_front()).flatten()
            };
            let Some(task) = next else {
                tokio::time::sleep(PAUSE).await;
                continue;
            };
            self.submit_task(customer, &task).await;
        }
    }

    async fn submit_task(&self, customer: &Customer, task: &TaskSubmission) {
        loop {
            let reply: Option<TaskResult> = customer.ask(task.role(), Verb::TaskSubmit, task).await;
            match known(&self.log, reply).map(|result| (result.task, result.error)) {
                Some((Some(task), _)) => {
                    lock(&customer.known).tasks.push(task);
                    return lock(&self.log).tasks.push(task);
                }
                Some((None, Some(error))) if error.code != Code::Unavailable => {
                    return lock(&self.log).surprises.push(format!("task {:?} was rejected: {error:?}", task.key));
                }
                _ => tokio::time::sleep(PAUSE).await,
            }
        }
    }

    fn may_submit(&self, all: usize, left: usize) -> bool {
        let room = self.live.load(Ordering::Relaxed) < self.pace.most_live();
        #[expect(clippy::cast_precision_loss, reason = "for a pace, near enough")]
        let (all, submitted) = (all as f64, (all - left) as f64);
        let due = all * self.pace.began.elapsed().as_secs_f64() / self.pace.over.as_secs_f64();
        room && (submitted < due || self.pace.skip_pauses.load(Ordering::Relaxed))
    }

    async fn cancel(&self, customer: &Customer, call: CallId) {
        loop {
            let request = CancelRequest { call };
            let reply: Option<CancelReply> = customer.ask(UserRole::Submit, Verb::CallCancel, &request).await;
            if let Some(reply) = known(&self.log, reply) {
                if matches!(reply.state, CallState::Cancelled | CallState::Running) {
                    lock(&self.log).cancelled.push((call, Utc::now()));
                }
                return;
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}

/// Submits calls until there is an answer for each; their keys make that safe. `None` for a call that is not on record,
/// which is recorded as a surprise.
async fn submit_until_answered(
    customer: &Customer,
    log: &Mutex<Log>,
    batch_calls: &[PlannedCall],
) -> Vec<Option<CallId>> {
    let raw = |wish: &PlannedCall| serde_json::value::to_raw_value(&wish.submission).ok();
    let batch = SubmitBatch { calls: batch_calls.iter().filter_map(raw).collect() };
    loop {
        let reply: Option<SubmitBatchReply> = customer.ask(UserRole::Submit, Verb::CallSubmit, &batch).await;
        if let Some(reply) = known(log, reply)
            && !reply.results.iter().any(is_passing)
        {
            let mut log = lock(log);
            for (wish, result) in batch_calls.iter().zip(&reply.results) {
                log.take(wish.submission.key.as_ref(), result);
            }
            lock(&customer.known).calls.extend(reply.results.iter().filter_map(|result| result.call));
            return reply.results.iter().map(|result| result.call).collect();
        }
        tokio::time::sleep(PAUSE).await;
    }
}

impl Log {
    fn take(&mut self, key: Option<&String>, result: &SubmitResult) {
        match (result.status, result.call) {
            (SubmitStatus::Accepted | SubmitStatus::Existing, Some(call)) => {
                self.acknowledged.push((call, key.cloned()));
            }
            (status, _) => self.surprises.push(format!("call {key:?} was answered {status:?}: {:?}", result.error)),
        }
    }
}

/// True if it was not accepted because a server is down.
fn is_passing(result: &SubmitResult) -> bool {
    result.error.as_ref().is_some_and(|error| error.code == Code::Unavailable)
}

/// The answer; `None` if the outcome is unknown.
fn known<T>(log: &Mutex<Log>, reply: Option<T>) -> Option<T> {
    if reply.is_none() {
        lock(log).unknown += 1;
    }
    reply
}

/// Submits calls once, without a proxy; their ids if all of them were accepted.
pub(crate) async fn submit_all_once(queue: &Queue, calls: &[Submission], patience: Duration) -> Option<Vec<CallId>> {
    let raw = calls.iter().map(serde_json::value::to_raw_value).collect::<Result<_, _>>().ok()?;
    let batch = SubmitBatch { calls: raw };
    let reply: SubmitBatchReply = queue.ask(Verb::CallSubmit, &batch, patience).await.ok()?;
    reply.results.into_iter().map(|result| result.call).collect()
}

/// Submits one task once, without a proxy; its id if it was accepted.
pub(crate) async fn submit_task_once(queue: &Queue, task: &TaskSubmission, patience: Duration) -> Option<TaskId> {
    let reply: TaskResult = queue.ask_as(task.role(), Verb::TaskSubmit, task, patience).await.ok()?;
    reply.task
}

/// Submits one call once, without a proxy; its id if it was accepted.
pub(crate) async fn submit_once(queue: &Queue, submission: &impl Serialize, patience: Duration) -> Option<CallId> {
    let reply: SubmitResult = queue.ask(Verb::CallSubmit, submission, patience).await.ok()?;
    reply.call
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
