//! A worker whose messages the test sends one by one.

use std::time::Duration;

use chrono::Utc;
use redial_proto::{
    CallId, ClaimId, ClaimReply, ClaimRequest, ControlMessage, Failure, Grant, GrantRef, Heartbeat, HeartbeatReply,
    Job, JobRef, Registered, Registration, ReleaseReply, ReleaseRequest, Report, ReportBatch, ToolSpec, WorkerId,
    subjects,
};
use redial_queue::{Delivery, Queue, Subscription};
use redial_testkit::Stack;
use serde_json::value::RawValue;

const ANSWER: Duration = Duration::from_secs(25);
/// Between two heartbeats: within the lease of a stack.
const BEAT: Duration = Duration::from_millis(500);

/// A worker without a loop of its own.
pub(crate) struct Hand {
    pub(crate) id: WorkerId,
    queue: Queue,
    notices: Subscription,
    /// From which it pulls. A worker without tools has none of its own.
    pub(crate) consumer: String,
}

impl Hand {
    /// Registers itself with these tools.
    pub(crate) async fn new(stack: &Stack, tools: Vec<ToolSpec>) -> Self {
        let (id, queue) = (WorkerId::generate("manual"), stack.queue().clone());
        let notices = queue.subscribe(&subjects::worker(&id)).await.unwrap();
        let mut hand = Self { id, queue, notices, consumer: "default".to_owned() };
        hand.register(tools).await;
        hand
    }

    /// Registers itself, perhaps again, with these tools of the default pool.
    pub(crate) async fn register(&mut self, tools: Vec<ToolSpec>) {
        let registration = Registration {
            worker: self.id.clone(),
            started_at: Utc::now(),
            slots: 10,
            version: "manual".to_owned(),
            tools,
            other_tools: std::collections::BTreeMap::new(),
        };
        let mut registered: Registered = self.queue.request(subjects::REGISTER, &registration, ANSWER).await.unwrap();
        if let Some(consumer) = registered.consumers.remove("default") {
            self.consumer = consumer;
        }
    }

    /// Takes the next job of its consumer from the stream. While it waits, it shows that it lives, or no job of its
    /// tools would be published; it renews nothing.
    pub(crate) async fn job(&self) -> Job {
        let mut jobs = self.queue.jobs(&self.consumer).unwrap();
        loop {
            self.beat().await;
            let deliveries = jobs.pull(1, BEAT).await.unwrap();
            if let Some(delivery) = deliveries.first() {
                return taken(delivery).await;
            }
        }
    }

    /// Sends a heartbeat that renews nothing.
    pub(crate) async fn beat(&self) -> HeartbeatReply {
        let beat = Heartbeat { worker: self.id.clone(), running: Vec::new(), slots: 10, draining: false };
        self.queue.request(subjects::HEARTBEAT, &beat, ANSWER).await.unwrap()
    }

    /// Claims one attempt under this claim id.
    pub(crate) async fn claim_as(&self, claim: ClaimId, call: CallId, attempt: u32) -> Vec<Grant> {
        let request = ClaimRequest { claim, worker: self.id.clone(), jobs: vec![JobRef { call, attempt }] };
        self.queue.request::<_, ClaimReply>(subjects::CLAIM, &request, ANSWER).await.unwrap().grants
    }

    /// Claims the first attempts of these calls with one request.
    pub(crate) async fn claim_all(&self, calls: &[CallId]) -> Vec<Grant> {
        let jobs = calls.iter().map(|&call| JobRef { call, attempt: 1 }).collect();
        let request = ClaimRequest { claim: ClaimId::generate(), worker: self.id.clone(), jobs };
        self.queue.request::<_, ClaimReply>(subjects::CLAIM, &request, ANSWER).await.unwrap().grants
    }

    /// Claims one attempt.
    pub(crate) async fn claim(&self, call: CallId, attempt: u32) -> Vec<Grant> {
        self.claim_as(ClaimId::generate(), call, attempt).await
    }

    /// Releases the attempts that this claim was granted; returns how many.
    pub(crate) async fn release(&self, claim: ClaimId, call: CallId, attempt: u32) -> u32 {
        let request = ReleaseRequest { worker: self.id.clone(), jobs: vec![GrantRef { call, attempt, claim }] };
        self.queue.request::<_, ReleaseReply>(subjects::RELEASE, &request, ANSWER).await.unwrap().released
    }

    /// Takes the next job and claims its attempt.
    pub(crate) async fn granted(&self) -> Grant {
        let job = self.job().await;
        self.claim(job.call, job.attempt).await.pop().expect("the attempt is free")
    }

    /// Reports a result and waits until a dispatcher has ingested it.
    pub(crate) async fn report(&mut self, call: CallId, attempt: u32, end: Result<&str, Failure>) {
        let (output, error) = match end {
            Ok(text) => (Some(RawValue::from_string(text.to_owned()).unwrap()), None),
            Err(failure) => (None, Some(failure)),
        };
        let report = Report { call, attempt, duration_ms: 1, output, error };
        let reports = vec![serde_json::value::to_raw_value(&report).unwrap()];
        self.queue.put(subjects::RESULTS, &ReportBatch { worker: self.id.clone(), reports }).await.unwrap();
        self.ingested(JobRef { call, attempt }).await;
    }

    /// Waits for the notice that a report of this attempt was ingested.
    pub(crate) async fn ingested(&mut self, job: JobRef) {
        loop {
            let notice = tokio::time::timeout(ANSWER, self.notices.next()).await.expect("a notice").unwrap();
            if serde_json::from_slice::<ControlMessage>(&notice).unwrap().ingested.contains(&job) {
                return;
            }
        }
    }
}

async fn taken(delivery: &Delivery) -> Job {
    delivery.ack().await;
    serde_json::from_slice(&delivery.payload).unwrap()
}
