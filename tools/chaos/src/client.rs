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
    CallId, CallState, CancelReply, CancelRequest, Code, Submission, SubmitBatch, SubmitBatchReply, SubmitResult,
    SubmitStatus, TaskId, TaskResult, TaskSubmission, subjects::Verb,
};
use redial_queue::Queue;
use redial_testkit::{Claims, Observer};
use serde::Serialize;
use tokio::task::JoinSet;

use crate::load::{MAY_WAIT, PlannedCall};

/// A request without an answer after this time has an unknown outcome.
const ANSWER: Duration = Duration::from_secs(2);
/// The pause before a request is repeated.
const PAUSE: Duration = Duration::from_millis(50);
/// Clients that submit calls side by side.
const CLIENTS: usize = 4;
/// Calls in one message.
const BATCH: usize = 8;
/// Clients submit more only while fewer calls and tasks than this are open.
const MAX_LIVE: u64 = 300;

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

/// The clients, and what they share.
pub(crate) struct Clients {
    queue: Queue,
    log: Mutex<Log>,
    calls: Mutex<VecDeque<PlannedCall>>,
    tasks: Mutex<VecDeque<TaskSubmission>>,
    pace: Pace,
    live: AtomicU64,
}

/// Spreads the submissions over the time of the faults.
#[derive(Debug)]
struct Pace {
    began: Instant,
    calls: f64,
    tasks: f64,
    over: Duration,
    skip_pauses: AtomicBool,
}

impl Clients {
    /// Clients that will have submitted everything after this time, or soon after [`Clients::skip_pauses`].
    pub(crate) fn new(queue: Queue, calls: Vec<PlannedCall>, tasks: Vec<TaskSubmission>, over: Duration) -> Arc<Self> {
        #[expect(clippy::cast_precision_loss, reason = "for a pace, near enough")]
        let pace = Pace {
            began: Instant::now(),
            calls: calls.len() as f64,
            tasks: tasks.len() as f64,
            over,
            skip_pauses: AtomicBool::new(false),
        };
        let (calls, tasks) = (Mutex::new(calls.into()), Mutex::new(tasks.into()));
        Arc::new(Self { queue, log: Mutex::default(), calls, tasks, pace, live: AtomicU64::new(0) })
    }

    /// Starts submitting. The set is empty when everything is acknowledged.
    pub(crate) fn start(self: &Arc<Self>, observer: &Observer) -> JoinSet<()> {
        let mut working = JoinSet::new();
        for _ in 0..CLIENTS {
            working.spawn(Arc::clone(self).submit_calls());
        }
        working.spawn(Arc::clone(self).submit_tasks());
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
        lock(&self.calls).len() + lock(&self.tasks).len()
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

    async fn submit_calls(self: Arc<Self>) {
        loop {
            let batch: Vec<PlannedCall> = {
                let mut calls = lock(&self.calls);
                let most = calls.len().min(BATCH);
                if most == 0 {
                    return;
                }
                let room = if self.may_submit(self.pace.calls, calls.len()) { most } else { 0 };
                calls.drain(..room).collect()
            };
            if batch.is_empty() {
                tokio::time::sleep(PAUSE).await;
                continue;
            }
            let results = submit_until_answered(&self.queue, &self.log, &batch).await;
            for (wish, call) in batch.iter().zip(results) {
                if let (true, Some(call)) = (wish.cancel, call) {
                    self.cancel(call).await;
                }
            }
        }
    }

    async fn submit_tasks(self: Arc<Self>) {
        loop {
            let next = {
                let mut tasks = lock(&self.tasks);
                if tasks.is_empty() {
                    return;
                }
                self.may_submit(self.pace.tasks, tasks.len()).then(|| tasks.pop_front()).flatten()
            };
            let Some(task) = next else {
                tokio::time::sleep(PAUSE).await;
                continue;
            };
            self.submit_task(&task).await;
        }
    }

    async fn submit_task(&self, task: &TaskSubmission) {
        loop {
            let reply = self.queue.ask_as::<_, TaskResult>(task.role(), Verb::TaskSubmit, task, ANSWER).await;
            match known(&self.log, reply).map(|result| (result.task, result.error)) {
                Some((Some(task), _)) => return lock(&self.log).tasks.push(task),
                Some((None, Some(error))) if error.code != Code::Unavailable => {
                    return lock(&self.log).surprises.push(format!("task {:?} was rejected: {error:?}", task.key));
                }
                _ => tokio::time::sleep(PAUSE).await,
            }
        }
    }

    fn may_submit(&self, all: f64, left: usize) -> bool {
        let room = self.live.load(Ordering::Relaxed) < MAX_LIVE;
        #[expect(clippy::cast_precision_loss, reason = "for a pace, near enough")]
        let submitted = all - left as f64;
        let due = all * self.pace.began.elapsed().as_secs_f64() / self.pace.over.as_secs_f64();
        room && (submitted < due || self.pace.skip_pauses.load(Ordering::Relaxed))
    }

    async fn cancel(&self, call: CallId) {
        loop {
            let request = CancelRequest { call };
            let reply = self.queue.ask::<_, CancelReply>(Verb::CallCancel, &request, ANSWER).await;
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
async fn submit_until_answered(queue: &Queue, log: &Mutex<Log>, batch_calls: &[PlannedCall]) -> Vec<Option<CallId>> {
    let raw = |wish: &PlannedCall| serde_json::value::to_raw_value(&wish.submission).ok();
    let batch = SubmitBatch { calls: batch_calls.iter().filter_map(raw).collect() };
    loop {
        let reply = queue.ask::<_, SubmitBatchReply>(Verb::CallSubmit, &batch, ANSWER).await;
        if let Some(reply) = known(log, reply)
            && !reply.results.iter().any(is_passing)
        {
            let mut log = lock(log);
            for (wish, result) in batch_calls.iter().zip(&reply.results) {
                log.take(wish.submission.key.as_ref(), result);
            }
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
fn known<T, E>(log: &Mutex<Log>, reply: Result<T, E>) -> Option<T> {
    if reply.is_err() {
        lock(log).unknown += 1;
    }
    reply.ok()
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
