//! A worker whose messages the test sends one by one.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Mutex,
    time::Duration,
};

use chrono::{DateTime, TimeDelta, Utc};
use redial_proto::{
    ANY_POOL, ApiError, CONTRACT, CallId, ClaimId, ClaimJob, ClaimReply, ClaimRequest, ControlMessage, Failure, Grant,
    GrantRef, Heartbeat, HeartbeatReply, Job, JobRef, PieceReply, PieceRequest, Registered, ReleaseReply,
    ReleaseRequest, Report, ReportBatch, ReturnedPack, ToolSpec, WorkerId, WorkerIdentity,
    subjects::{self, ControlVerb},
};
use redial_queue::{Queue, Subscription};
use redial_test_stack::Stack;
use serde_json::{Value, json, value::RawValue};
use tokio::time::Instant;

use super::fixture::{ANSWER, api};

/// Between two heartbeats: within the lease of a stack.
const BEAT: Duration = Duration::from_millis(500);

/// How long a job may take to arrive.
const PATIENCE: Duration = Duration::from_mins(2);

/// So few that no message has several jobs.
const SLOTS: u32 = 7;

/// A worker without a loop of its own.
pub(crate) struct Hand {
    pub(crate) id: WorkerId,
    queue: Queue,
    notices: Subscription,
    db: sqlx::PgPool,
    /// The claims under which its attempts were granted.
    claims: Mutex<HashMap<JobRef, ClaimId>>,
    /// From which it pulls. A worker without tools has none of its own.
    pub(crate) consumer: String,
}

impl Hand {
    /// Registers itself with these tools.
    pub(crate) async fn new(stack: &Stack, tools: Vec<ToolSpec>) -> Self {
        let mut hand = Self::of_identity(stack, "manual").await;
        hand.register(tools).await;
        hand
    }

    /// A worker of this identity, which is not registered yet.
    pub(crate) async fn of_identity(stack: &Stack, identity: &str) -> Self {
        let (id, queue) = (WorkerId::generate(&WorkerIdentity::of_name(identity)), stack.queue().clone());
        let notices = queue.subscribe(&subjects::worker(&id)).await.unwrap();
        let (db, claims) = (stack.db().clone(), Mutex::default());
        let consumer = "default".to_owned();
        Self { id, queue, notices, db, claims, consumer }
    }

    /// Registers itself, perhaps again, with these tools of the default pool; returns what waits for an operator.
    pub(crate) async fn register(&mut self, tools: Vec<ToolSpec>) -> BTreeMap<String, Vec<String>> {
        let mut registered = self.try_register(tools).await.unwrap();
        if let Some(consumer) = registered.consumers.remove("default") {
            self.consumer = consumer;
        }
        registered.waiting
    }

    /// Registers itself; the answer, or the error that the dispatcher answered with.
    pub(crate) async fn try_register(&self, tools: Vec<ToolSpec>) -> Result<Registered, ApiError> {
        self.try_register_on(&self.subject(ControlVerb::Register), tools).await
    }

    /// The same on this subject.
    pub(crate) async fn try_register_on(&self, subject: &str, tools: Vec<ToolSpec>) -> Result<Registered, ApiError> {
        api(self.queue.request(subject, &self.registration(&tools, &json!({})), ANSWER).await)
    }

    /// A registration with some tools, and others that it names only.
    pub(crate) fn registration(&self, tools: &[ToolSpec], other_tools: &Value) -> Value {
        json!({
            "worker": self.id, "started_at": Utc::now(), "slots": SLOTS, "version": "manual", "contract": CONTRACT,
            "tools": tools, "other_tools": other_tools,
        })
    }

    /// Takes the next job of its consumer from the stream. While it waits, it shows that it lives, or no job of its
    /// tools would be published; it renews nothing.
    pub(crate) async fn job(&self) -> Job {
        let mut jobs = self.queue.jobs(&self.consumer).unwrap();
        let next = async {
            loop {
                self.beat().await;
                let deliveries = jobs.pull(1, BEAT).await.unwrap();
                if let Some(delivery) = deliveries.first() {
                    delivery.ack().await;
                    return serde_json::from_slice(&delivery.payload).unwrap();
                }
            }
        };
        let Ok(job) = tokio::time::timeout(PATIENCE, next).await else {
            panic!("no job arrived on consumer {} within {PATIENCE:?}", self.consumer)
        };
        job
    }

    /// Asks for the arguments of a grant that has them apart.
    pub(crate) async fn open(&self, call: CallId, attempt: u32) -> Result<PieceReply, ApiError> {
        let open = PieceRequest::Open { worker: self.id.clone(), grant: self.grant_of(call, attempt) };
        api(self.queue.piece(&self.subject(ControlVerb::Piece), &open, Instant::now() + ANSWER).await)
    }

    /// Sends a heartbeat that renews nothing.
    pub(crate) async fn beat(&self) -> HeartbeatReply {
        self.beat_with(Vec::new()).await
    }

    /// Sends a heartbeat that renews these.
    pub(crate) async fn beat_with(&self, running: Vec<GrantRef>) -> HeartbeatReply {
        self.beat_at(None, running).await
    }

    /// The same, of grants that it held at this time.
    pub(crate) async fn beat_at(&self, held_at: Option<DateTime<Utc>>, running: Vec<GrantRef>) -> HeartbeatReply {
        let beat = Heartbeat { worker: self.id.clone(), running, slots: SLOTS, draining: false, held_at };
        self.queue.request(&self.subject(ControlVerb::Heartbeat), &beat, ANSWER).await.unwrap()
    }

    /// Sends the last heartbeat of a worker that has drained.
    pub(crate) async fn say_goodbye(&self) {
        let beat = Heartbeat { worker: self.id.clone(), running: Vec::new(), slots: 0, draining: true, held_at: None };
        self.queue.request::<_, HeartbeatReply>(&self.subject(ControlVerb::Heartbeat), &beat, ANSWER).await.unwrap();
    }

    /// Claims one attempt under this claim id.
    pub(crate) async fn claim_as(&self, claim: ClaimId, call: CallId, attempt: u32) -> Vec<Grant> {
        self.claim_until(Utc::now() + TimeDelta::hours(1), claim, call, attempt).await
    }

    /// The same, granted for the first time until then.
    pub(crate) async fn claim_until(
        &self,
        not_after: DateTime<Utc>,
        claim: ClaimId,
        call: CallId,
        attempt: u32,
    ) -> Vec<Grant> {
        self.ask_for(claim, not_after, &[JobRef { call, attempt }], Vec::new()).await
    }

    /// Claims the first attempts of these calls, and gives jobs back.
    pub(crate) async fn claim_and_return(&self, calls: &[CallId], returned: Vec<ReturnedPack>) -> Vec<Grant> {
        let jobs: Vec<JobRef> = calls.iter().map(|&call| JobRef { call, attempt: 1 }).collect();
        self.ask_for(ClaimId::generate(), Utc::now() + TimeDelta::hours(1), &jobs, returned).await
    }

    async fn ask_for(
        &self,
        claim: ClaimId,
        not_after: DateTime<Utc>,
        jobs: &[JobRef],
        returned: Vec<ReturnedPack>,
    ) -> Vec<Grant> {
        let mut asked = Vec::with_capacity(jobs.len());
        for &JobRef { call, attempt } in jobs {
            // The tool that its job names; a claim that names another one is not granted.
            let tool = sqlx::query_scalar("SELECT tool FROM calls WHERE id = $1").bind(call.0).fetch_optional(&self.db);
            asked.push(ClaimJob { call, attempt, tool: tool.await.unwrap().unwrap_or_default() });
        }
        let request = ClaimRequest { claim, worker: self.id.clone(), not_after, jobs: asked, returned };
        let subject = self.subject(ControlVerb::Claim);
        let grants = self.queue.request::<_, ClaimReply>(&subject, &request, ANSWER).await.unwrap().grants;
        let mut claims = self.claims.lock().unwrap();
        claims.extend(grants.iter().map(|grant| (grant.job_ref(), claim)));
        grants
    }

    /// The claim under which an attempt was granted to it.
    pub(crate) fn claim_of(&self, call: CallId, attempt: u32) -> ClaimId {
        self.claims.lock().unwrap()[&JobRef { call, attempt }]
    }

    /// The grant of an attempt.
    pub(crate) fn grant_of(&self, call: CallId, attempt: u32) -> GrantRef {
        GrantRef { call, attempt, claim: self.claim_of(call, attempt) }
    }

    /// The subject of its reports.
    pub(crate) fn results(&self) -> String {
        subjects::results(&self.id.identity())
    }

    pub(crate) fn subject(&self, verb: ControlVerb) -> String {
        subjects::control(&self.id.identity(), ANY_POOL, verb)
    }

    /// Claims one attempt.
    pub(crate) async fn claim(&self, call: CallId, attempt: u32) -> Vec<Grant> {
        self.claim_as(ClaimId::generate(), call, attempt).await
    }

    /// Releases the attempts that this claim was granted; returns how many.
    pub(crate) async fn release(&self, claim: ClaimId, call: CallId, attempt: u32) -> u32 {
        let request = ReleaseRequest { worker: self.id.clone(), jobs: vec![GrantRef { call, attempt, claim }] };
        let reply = self.queue.request::<_, ReleaseReply>(&self.subject(ControlVerb::Release), &request, ANSWER).await;
        reply.unwrap().released
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
        // A report of an attempt that it was never granted names a claim that nobody knows.
        let known = self.claims.lock().unwrap().get(&JobRef { call, attempt }).copied();
        let claim = known.unwrap_or_else(ClaimId::generate);
        let report = Report { call, attempt, claim, duration_ms: 1, output, error };
        let reports = vec![serde_json::value::to_raw_value(&report).unwrap()];
        let batch = ReportBatch { worker: self.id.clone(), reports };
        self.queue.put_large(&self.results(), &self.subject(ControlVerb::Piece), &batch).await.unwrap();
        self.ingested(GrantRef { call, attempt, claim }).await;
    }

    /// Waits for the notice that a report of this grant was ingested.
    pub(crate) async fn ingested(&mut self, grant: GrantRef) {
        loop {
            let notice = tokio::time::timeout(ANSWER, self.notices.next()).await.expect("a notice");
            if serde_json::from_slice::<ControlMessage>(&notice).unwrap().ingested.contains(&grant) {
                return;
            }
        }
    }
}
