//! A scripted dispatcher: replies as its script says, and records every message from workers.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use chrono::{DateTime, Utc};
use redial_proto::{
    CallId, ClaimId, ClaimJob, ClaimReply, ClaimRequest, ControlMessage, Grant, GrantRef, Heartbeat, HeartbeatReply,
    Job, JobRef, PieceRequest, Registered, Registration, ReleaseReply, ReleaseRequest, Report, ReportBatch, TaskId,
    ToolEffect, WorkerId,
    subjects::{self, ControlVerb},
};
use redial_queue::{OutgoingJob, Queue, QueueConfig, QueueError, Request};
use redial_servers::{Nats, NatsConfig, Server as _};
use redial_worker::{CancellationToken, Tool, Worker, WorkerConfig, WorkerError};
use serde_json::{Value, value::to_raw_value};
use tokio::{
    sync::mpsc,
    task::{JoinHandle, JoinSet},
};

use crate::{pieces::Pieces, within};

#[derive(Debug)]
pub(crate) enum Received {
    Registration(Registration),
    Claim(ClaimRequest),
    Heartbeat(Heartbeat),
    Release(ReleaseRequest),
    Report(Box<Report>),
}

#[derive(Default)]
pub(crate) struct Script {
    pub(crate) lease_ms: u64,
    pub(crate) timeout_ms: u64,
    pub(crate) effect: ToolEffect,
    /// Jobs that are never granted.
    pub(crate) refused: HashSet<JobRef>,
    /// How many of the next claims get no reply.
    pub(crate) unanswered_claims: usize,
    pub(crate) ignores_heartbeats: bool,
    /// What every reply to a heartbeat says, but for its time and lease.
    pub(crate) heartbeat: HeartbeatReply,
    /// How far the database's clock goes before this machine's.
    pub(crate) clock_ahead: Duration,
    /// The last claim that an attempt was granted to.
    claims: HashMap<JobRef, ClaimId>,
    /// Consumers that are not named like their pools.
    pub(crate) consumers: BTreeMap<String, String>,
    /// Tools that wait for an operator.
    pub(crate) waiting: BTreeMap<String, Vec<String>>,
    /// Workers are not notified that their reports are on record.
    pub(crate) withholds_records: bool,
    /// The task of granted calls.
    pub(crate) task: Option<TaskId>,
    /// The arguments of granted calls; by default they contain the call's id.
    pub(crate) arguments: Option<Value>,
    pub(crate) pieces: Pieces,
    jobs: HashMap<CallId, Job>,
}

pub(crate) struct Dispatcher {
    pub(crate) queue: Queue,
    nats: Option<Nats>,
    folder: tempfile::TempDir,
    script: Arc<Mutex<Script>>,
    received: mpsc::UnboundedReceiver<Received>,
    _tasks: JoinSet<()>,
}

impl Dispatcher {
    pub(crate) async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let nats = Box::pin(Nats::start(NatsConfig::new(folder.path()))).await.unwrap();
        let queue = within(20, Box::pin(Queue::connect(&config(&nats)))).await.unwrap();
        within(20, Box::pin(ensure(&queue))).await;
        let (sender, received) = mpsc::unbounded_channel();
        let effect = ToolEffect::Read;
        let script = Script { lease_ms: 15_000, timeout_ms: 60_000, effect, ..Script::default() };
        let script = Arc::new(Mutex::new(script));
        let responder = Responder { queue: queue.clone(), script: Arc::clone(&script), received: sender };
        let mut tasks = JoinSet::new();
        for &verb in ControlVerb::ALL {
            let subject = subjects::control_of_all(verb);
            let (responder, mut requests) =
                (responder.clone(), queue.serve(&subject, Some("dispatchers")).await.unwrap());
            tasks.spawn(async move {
                while let Some(request) = requests.next().await {
                    responder.reply(verb, &request).await;
                }
            });
        }
        tasks.spawn(responder.ingest());
        queue.flush().await;
        Self { queue, nats: Some(nats), folder, script, received, _tasks: tasks }
    }

    pub(crate) fn script(&self) -> MutexGuard<'_, Script> {
        self.script.lock().unwrap()
    }

    /// Starts a worker, and waits until it has registered.
    pub(crate) async fn worker(&mut self, slots: u32, tools: impl IntoIterator<Item = Tool>) -> RunningWorker {
        self.worker_with(|config| config.slots = slots, tools).await
    }

    /// Does the same with changed settings.
    pub(crate) async fn worker_with(
        &mut self,
        change: impl FnOnce(&mut WorkerConfig),
        tools: impl IntoIterator<Item = Tool>,
    ) -> RunningWorker {
        let mut config = self.config();
        change(&mut config);
        self.start_worker(tools.into_iter().fold(Worker::new(config), Worker::add)).await
    }

    pub(crate) fn config(&self) -> WorkerConfig {
        let nats = config(self.nats.as_ref().unwrap());
        let drain_grace = Duration::from_millis(300);
        WorkerConfig { nats, drain_grace, ..WorkerConfig::new("", "test") }
    }

    /// Starts a worker, and waits until it has registered.
    pub(crate) async fn start_worker(&mut self, worker: Worker) -> RunningWorker {
        let running = RunningWorker::start(worker);
        self.next(|received| matches!(received, Received::Registration(_)).then_some(())).await;
        running
    }

    /// Publishes a job for a tool of pool `default`.
    pub(crate) async fn submit(&self, tool: &str) -> JobRef {
        self.submit_many("default", tool, 1, 2).await[0]
    }

    /// Does the same for many jobs; `bytes` is the declared size of their arguments.
    pub(crate) async fn submit_many(&self, pool: &str, tool: &str, count: usize, bytes: u32) -> Vec<JobRef> {
        self.publish(&self.new_jobs(pool, tool, count, bytes), 1).await
    }

    /// Publishes jobs for a tool of pool `default` in one message.
    pub(crate) async fn submit_pack(&self, tool: &str, count: usize) -> Vec<JobRef> {
        self.publish(&self.new_jobs("default", tool, count, 2), count).await
    }

    /// Publishes jobs, so many in each message. A server that stood still has them all the same, and takes none twice.
    async fn publish(&self, jobs: &[OutgoingJob], each: usize) -> Vec<JobRef> {
        let packs: Vec<&[OutgoingJob]> = jobs.chunks(each).collect();
        within(20, async { while !self.queue.publish_packs(&packs).await.iter().all(Result::is_ok) {} }).await;
        jobs.iter().map(|job| JobRef { call: job.job.call, attempt: job.job.attempt }).collect()
    }

    fn new_jobs(&self, pool: &str, tool: &str, count: usize, bytes: u32) -> Vec<OutgoingJob> {
        let new = |_| {
            let job = Job { call: CallId::generate(), attempt: 1, tool: tool.into(), bytes };
            self.script().jobs.insert(job.call, job.clone());
            OutgoingJob { job, consumer: pool.into(), publish_no: 1, traceparent: None }
        };
        (0..count).map(new).collect()
    }

    /// Waits for a message that `select` accepts; skips others.
    pub(crate) async fn next<T>(&mut self, select: impl FnMut(Received) -> Option<T>) -> T {
        self.next_within(20, select).await
    }

    async fn next_within<T>(&mut self, seconds: u64, mut select: impl FnMut(Received) -> Option<T>) -> T {
        within(seconds, async {
            loop {
                if let Some(found) = select(self.received.recv().await.unwrap()) {
                    return found;
                }
            }
        })
        .await
    }

    pub(crate) async fn report(&mut self) -> Report {
        self.next(|received| if let Received::Report(report) = received { Some(*report) } else { None }).await
    }

    pub(crate) async fn claim(&mut self) -> ClaimRequest {
        self.next(|received| if let Received::Claim(claim) = received { Some(claim) } else { None }).await
    }

    pub(crate) fn grant_of(&self, job: JobRef) -> GrantRef {
        job.granted_to(self.script().claims[&job])
    }

    /// Returns the attempts of the next release; fails if a report comes before it.
    pub(crate) async fn released(&mut self) -> Vec<JobRef> {
        // The fetch of arguments is given up after 15 s, and on a busy machine later.
        self.next_within(60, |received| match received {
            Received::Release(release) => Some(release.jobs.iter().map(GrantRef::job_ref).collect()),
            Received::Report(report) => panic!("it is reported: {report:?}"),
            _ => None,
        })
        .await
    }

    /// Waits for a heartbeat that renews the leases of these attempts, and of no other.
    pub(crate) async fn renewed(&mut self, jobs: &[JobRef]) {
        self.next(|received| {
            matches!(received, Received::Heartbeat(heartbeat) if running(&heartbeat) == jobs).then_some(())
        })
        .await;
    }

    pub(crate) async fn heartbeat(&mut self) -> Heartbeat {
        self.next(|received| if let Received::Heartbeat(heartbeat) = received { Some(heartbeat) } else { None }).await
    }

    /// Takes all messages received so far.
    pub(crate) fn received(&mut self) -> Vec<Received> {
        std::iter::from_fn(|| self.received.try_recv().ok()).collect()
    }

    pub(crate) async fn send_control(&self, worker: &WorkerId, message: &ControlMessage) {
        self.queue.publish(&subjects::worker(worker), message).await.unwrap();
    }

    /// Waits until no job is left on the stream.
    pub(crate) async fn stream_is_empty(&self) {
        within(20, async {
            while self.queue.ensure_streams().await.map_or(1, |streams| streams.jobs) > 0 {
                tokio::task::yield_now().await;
            }
        })
        .await;
    }

    /// Kills the server and starts it again without what it had stored.
    pub(crate) async fn restart_nats(&mut self) {
        let nats = self.nats.take().unwrap();
        let store = nats.store().to_owned();
        nats.kill().await;
        std::fs::remove_dir_all(store).unwrap();
        self.nats = Some(Nats::start(NatsConfig::new(self.folder.path())).await.unwrap());
        within(20, ensure(&self.queue)).await;
    }
}

fn config(nats: &Nats) -> QueueConfig {
    QueueConfig { url: nats.url(), name: "test".into(), ..QueueConfig::default() }
}

async fn ensure(queue: &Queue) {
    let mut waits = tokio::time::interval(Duration::from_millis(50));
    loop {
        waits.tick().await;
        let made = async {
            queue.ensure_streams().await?;
            for consumer in ["default", "default+2", "models", "commands"] {
                queue.ensure_jobs(consumer).await?;
            }
            Ok::<_, QueueError>(())
        };
        if made.await.is_ok() {
            return;
        }
    }
}

/// Replies to requests in the background.
#[derive(Clone)]
struct Responder {
    queue: Queue,
    script: Arc<Mutex<Script>>,
    received: mpsc::UnboundedSender<Received>,
}

pub(crate) fn running(heartbeat: &Heartbeat) -> Vec<JobRef> {
    heartbeat.running.iter().map(GrantRef::job_ref).collect()
}

pub(crate) fn jobs_of(claim: &ClaimRequest) -> Vec<JobRef> {
    claim.jobs.iter().map(ClaimJob::job_ref).collect()
}

impl Responder {
    fn script(&self) -> MutexGuard<'_, Script> {
        self.script.lock().unwrap()
    }

    fn record(&self, received: Received) {
        // The test may have ended already.
        let _ = self.received.send(received);
    }

    async fn reply(&self, verb: ControlVerb, request: &Request) {
        match verb {
            ControlVerb::Register => {
                self.script().heartbeat.register = false;
                let registration: Registration = serde_json::from_slice(&request.payload).unwrap();
                let waiting = self.script().waiting.clone();
                let accepted = registration.tools.iter().filter(|tool| !waiting.contains_key(&tool.name));
                let pools = accepted.map(|tool| &tool.pool).chain(registration.other_tools.values());
                let mut consumers: BTreeMap<String, String> = pools.map(|pool| (pool.clone(), pool.clone())).collect();
                consumers.extend(self.script().consumers.clone());
                self.record(Received::Registration(registration));
                let at = self.script().now();
                let lease_ms = self.script().lease_ms;
                request.reply(&Registered { consumers, waiting, at, lease_ms }).await;
            }
            ControlVerb::Claim => {
                let claim: ClaimRequest = serde_json::from_slice(&request.payload).unwrap();
                let reply = self.script().grant(&claim);
                self.record(Received::Claim(claim));
                if let Some(reply) = reply {
                    request.reply(&reply).await;
                }
            }
            ControlVerb::Heartbeat => {
                let reply = self.script().heartbeat_reply();
                self.record(Received::Heartbeat(serde_json::from_slice(&request.payload).unwrap()));
                if let Some(reply) = reply {
                    request.reply(&reply).await;
                }
            }
            ControlVerb::Piece => {
                let asked: PieceRequest = serde_json::from_slice(&request.payload).unwrap();
                let held = self.script().pieces.held(&asked);
                if let Some(held) = held {
                    held.notified().await;
                }
                let answer = self.script().pieces.answer(asked);
                match answer {
                    Ok(reply) => request.reply(&reply).await,
                    Err(error) => request.reply_error(&error).await,
                }
            }
            ControlVerb::Release => {
                let release: ReleaseRequest = serde_json::from_slice(&request.payload).unwrap();
                let released = u32::try_from(release.jobs.len()).unwrap();
                self.record(Received::Release(release));
                request.reply(&ReleaseReply { released }).await;
            }
        }
    }

    async fn ingest(self) {
        let mut results = self.queue.results();
        loop {
            for mut delivery in results.next(64).await {
                if let Some(payload) = delivery.apart.take() {
                    delivery.payload = self.script().pieces.take(payload).into();
                }
                let batch: ReportBatch = serde_json::from_slice(&delivery.payload).unwrap();
                let texts = batch.reports.iter().map(|raw| raw.get());
                let reports: Vec<Report> = texts.map(|text| serde_json::from_str(text).unwrap()).collect();
                let ingested = reports.iter().map(Report::grant_ref).collect();
                let withheld = self.script().withholds_records;
                for report in reports {
                    self.record(Received::Report(Box::new(report)));
                }
                if !withheld {
                    let message = ControlMessage { ingested, cancelled: Vec::new() };
                    self.queue.publish(&subjects::worker(&batch.worker), &message).await.unwrap();
                }
                delivery.ack().await;
            }
        }
    }
}

impl Script {
    fn grant(&mut self, claim: &ClaimRequest) -> Option<ClaimReply> {
        if self.unanswered_claims > 0 {
            self.unanswered_claims -= 1;
            return None;
        }
        let granted: Vec<JobRef> =
            claim.jobs.iter().map(ClaimJob::job_ref).filter(|job| !self.refused.contains(job)).collect();
        self.claims.extend(granted.iter().map(|job| (*job, claim.claim)));
        let grants = granted.into_iter().map(|job| self.grant_of(job)).collect();
        Some(ClaimReply { lease_ms: self.lease_ms, grants })
    }

    fn grant_of(&self, job: JobRef) -> Grant {
        let arguments = self.arguments.clone().unwrap_or_else(|| serde_json::json!({"call": job.call}));
        Grant {
            call: job.call,
            attempt: job.attempt,
            tool: self.jobs[&job.call].tool.clone(),
            arguments: to_raw_value(if self.pieces.are_used { &Value::Null } else { &arguments }).unwrap(),
            apart: self.pieces.are_used,
            timeout_ms: self.timeout_ms,
            effect: self.effect,
            idempotency_key: "key".into(),
            tenant: "default".into(),
            conversation: None,
            task: self.task,
            traceparent: Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".into()),
        }
    }

    fn heartbeat_reply(&mut self) -> Option<HeartbeatReply> {
        let (at, lease_ms) = (Some(self.now()), self.lease_ms);
        (!self.ignores_heartbeats).then(|| HeartbeatReply { at, lease_ms, ..self.heartbeat.clone() })
    }

    pub(crate) fn now(&self) -> DateTime<Utc> {
        Utc::now() + self.clock_ahead
    }
}

pub(crate) struct RunningWorker {
    pub(crate) id: WorkerId,
    pub(crate) shutdown: CancellationToken,
    task: JoinHandle<Result<(), WorkerError>>,
}

impl RunningWorker {
    pub(crate) fn start(worker: Worker) -> Self {
        let (id, shutdown) = (worker.id().clone(), CancellationToken::new());
        Self { id, task: tokio::spawn(worker.run(shutdown.clone())), shutdown }
    }

    pub(crate) async fn stop(self) {
        self.shutdown.cancel();
        self.ended().await;
    }

    pub(crate) async fn ended(self) {
        within(20, self.task).await.unwrap().unwrap();
    }
}
