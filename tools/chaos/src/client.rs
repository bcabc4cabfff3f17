//! The clients: they submit calls and tasks, record each acknowledgement, repeat requests without an answer, and
//! sometimes cancel.

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use chrono::{DateTime, Utc};
use parking_lot::{Mutex, MutexGuard};
use redial_proto::{
    CallId, CallState, CancelReply, CancelRequest, Code, Submission, SubmitBatch, SubmitBatchReply, SubmitResult,
    SubmitStatus, TaskId, TaskResult, TaskSubmission, UserRole, subjects::Verb,
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
const MESSAGES: u64 = 20;
/// Clients submit more only while fewer calls and tasks than this are open, or than what is submitted in 3 s.
const MAX_LIVE: u64 = 300;

/// What clients know.
#[derive(Debug, Default)]
pub(crate) struct Log {
    acknowledged: Vec<(CallId, Option<String>)>,
    tasks: Vec<TaskId>,
    cancelled: Vec<(CallId, DateTime<Utc>)>,
    /// Answers that must not occur.
    pub(crate) surprises: Vec<String>,
    /// Requests whose outcome was unknown, and which were repeated.
    pub(crate) unknown: u64,
}

/// The clients of all tenants, and what they share.
pub(crate) struct Clients {
    customers: Vec<Customer>,
    log: Mutex<Log>,
    began: Instant,
    /// The submissions are spread over this time.
    over: Duration,
    /// Calls per second.
    rate: u64,
    skip_pauses: AtomicBool,
    live: AtomicU64,
}

pub(crate) struct Customer {
    /// As its user, through the proxy.
    queue: Queue,
    /// Hears every answer and every event.
    ear: Ear,
    calls: Mutex<VecDeque<PlannedCall>>,
    tasks: Mutex<VecDeque<TaskSubmission>>,
    /// How many there were at first.
    planned: (usize, usize),
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
            loop {
                let (subject, event) = events.next_with_subject().await;
                heard.hear(&subject, &event);
            }
        });
        let planned = (calls.len(), tasks.len());
        Ok(Self { queue, ear, calls: Mutex::new(calls.into()), tasks: Mutex::new(tasks.into()), planned })
    }

    /// Asks in this role; returns the answer unless it is an error.
    async fn ask<T: DeserializeOwned>(&self, role: UserRole, verb: Verb, request: &impl Serialize) -> Option<T> {
        match self.queue.ask_as::<_, Box<RawValue>>(role, verb, request, ANSWER).await {
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
}

impl Clients {
    /// Makes clients that will have submitted everything after this time, or soon after [`Clients::skip_pauses`].
    pub(crate) fn new(customers: Vec<Customer>, over: Duration) -> Arc<Self> {
        let calls: usize = customers.iter().map(|one| one.planned.0).sum();
        Arc::new(Self {
            customers,
            log: Mutex::default(),
            began: Instant::now(),
            over,
            rate: u64::try_from(calls).unwrap_or(u64::MAX) / over.as_secs().max(1),
            skip_pauses: AtomicBool::new(false),
            live: AtomicU64::new(0),
        })
    }

    /// Starts submitting. The set is empty when everything is acknowledged.
    pub(crate) fn start(self: &Arc<Self>, observer: &Observer) -> JoinSet<()> {
        let mut working = JoinSet::new();
        for customer in 0..self.customers.len() {
            for _ in 0..CLIENTS {
                working.spawn(Arc::clone(self).submit_calls(customer));
            }
            working.spawn(Arc::clone(self).submit_tasks(customer));
        }
        working.spawn(Arc::clone(self).watch(observer.clone()));
        working
    }

    /// Keeps up how much is open, while anything is left to submit.
    async fn watch(self: Arc<Self>, observer: Observer) {
        while self.customers.iter().any(|one| !one.calls.lock().is_empty() || !one.tasks.lock().is_empty()) {
            let all = self.skip_pauses.load(Ordering::Relaxed);
            let live = observer.live_besides(if all { &[] } else { &MAY_WAIT }).await;
            if let Some(live) = live {
                self.live.store(live, Ordering::Relaxed);
            }
            tokio::time::sleep(2 * PAUSE).await;
        }
    }

    /// Submits the rest without pauses, because the faults are over.
    pub(crate) fn skip_pauses(&self) {
        self.skip_pauses.store(true, Ordering::Relaxed);
    }

    /// Counts the calls and tasks that were acknowledged.
    pub(crate) fn acknowledged(&self) -> (usize, usize) {
        let log = self.log();
        (log.acknowledged.len(), log.tasks.len())
    }

    /// Returns what clients received, for the checker.
    pub(crate) fn claims(&self) -> Claims {
        let log = self.log();
        Claims {
            acknowledged: log.acknowledged.clone(),
            tasks: log.tasks.clone(),
            cancelled: log.cancelled.clone(),
            heard: self.customers.iter().map(|one| one.ear.heard()).collect(),
            ..Claims::default()
        }
    }

    pub(crate) fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock()
    }

    async fn submit_calls(self: Arc<Self>, customer: usize) {
        let customer = &self.customers[customer];
        let batch = usize::try_from(self.rate / MESSAGES).unwrap_or(usize::MAX).max(BATCH);
        while let Some(batch) = self.next(&customer.calls, customer.planned.0, batch).await {
            let results = self.submit_until_answered(customer, &batch).await;
            for (wish, result) in batch.iter().zip(results) {
                if let (true, Some(call)) = (wish.cancel, result.call) {
                    self.cancel(customer, call).await;
                }
            }
        }
    }

    async fn submit_tasks(self: Arc<Self>, customer: usize) {
        let customer = &self.customers[customer];
        while let Some(tasks) = self.next(&customer.tasks, customer.planned.1, 1).await {
            for task in tasks {
                self.submit_task(customer, &task).await;
            }
        }
    }

    /// Takes the next ones, once they are due and there is room for them; `None` if there are no more.
    async fn next<T>(&self, left: &Mutex<VecDeque<T>>, all: usize, most: usize) -> Option<Vec<T>> {
        loop {
            {
                let mut left = left.lock();
                let count = left.len().min(most);
                if count == 0 {
                    return None;
                }
                let room = self.live.load(Ordering::Relaxed) < MAX_LIVE.max(3 * self.rate);
                let part = self.began.elapsed().as_millis() * all as u128 / self.over.as_millis().max(1);
                let due = ((all - left.len()) as u128) < part || self.skip_pauses.load(Ordering::Relaxed);
                if room && due {
                    return Some(left.drain(..count).collect());
                }
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Submits calls until there is an answer for each; their keys make that safe. A call that is not on record is recorded
    /// as a surprise.
    async fn submit_until_answered(&self, customer: &Customer, calls: &[PlannedCall]) -> Vec<SubmitResult> {
        let raw = |wish: &PlannedCall| serde_json::value::to_raw_value(&wish.submission).ok();
        let batch = SubmitBatch { calls: calls.iter().filter_map(raw).collect() };
        loop {
            let reply: Option<SubmitBatchReply> = customer.ask(UserRole::Submit, Verb::CallSubmit, &batch).await;
            if let Some(reply) = self.known(reply)
                && !reply.results.iter().any(is_passing)
            {
                let mut log = self.log();
                for (wish, result) in calls.iter().zip(&reply.results) {
                    log.take(wish.submission.key.as_ref(), result);
                }
                return reply.results;
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn submit_task(&self, customer: &Customer, task: &TaskSubmission) {
        loop {
            let reply: Option<TaskResult> = customer.ask(task.role(), Verb::TaskSubmit, task).await;
            match self.known(reply).map(|result| (result.task, result.error)) {
                Some((Some(task), _)) => return self.log().tasks.push(task),
                Some((None, Some(error))) if error.code != Code::Unavailable => {
                    return self.log().surprises.push(format!("task {:?} was rejected: {error:?}", task.key));
                }
                _ => tokio::time::sleep(PAUSE).await,
            }
        }
    }

    async fn cancel(&self, customer: &Customer, call: CallId) {
        loop {
            let request = CancelRequest { call };
            let reply: Option<CancelReply> = customer.ask(UserRole::Submit, Verb::CallCancel, &request).await;
            if let Some(reply) = self.known(reply) {
                if matches!(reply.state, CallState::Cancelled | CallState::Running) {
                    self.log().cancelled.push((call, Utc::now()));
                }
                return;
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Returns the answer; `None` if the outcome is unknown.
    fn known<T>(&self, reply: Option<T>) -> Option<T> {
        self.log().unknown += u64::from(reply.is_none());
        reply
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

/// Submits calls once, without a proxy; returns their ids if all of them were accepted.
pub(crate) async fn submit_all_once(queue: &Queue, calls: &[Submission], patience: Duration) -> Option<Vec<CallId>> {
    let raw = calls.iter().map(serde_json::value::to_raw_value).collect::<Result<_, _>>().ok()?;
    let batch = SubmitBatch { calls: raw };
    let reply: SubmitBatchReply = queue.ask(Verb::CallSubmit, &batch, patience).await.ok()?;
    reply.results.into_iter().map(|result| result.call).collect()
}

/// Submits one call once, without a proxy; returns its id if it was accepted.
pub(crate) async fn submit_once(queue: &Queue, submission: &impl Serialize, patience: Duration) -> Option<CallId> {
    let reply: SubmitResult = queue.ask(Verb::CallSubmit, submission, patience).await.ok()?;
    reply.call
}
