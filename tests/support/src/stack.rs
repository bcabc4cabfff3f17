//! Dispatchers and workers in this process, on real servers and a database of their own.
//!
//! [`Stack::finish`] fails the test if jobs, leases or calls are left over, or if any invariant
//! does not hold; dropping a stack that was not finished also fails it.

mod ask;
mod gateway;
mod roles;
mod sql;

use std::{path::PathBuf, sync::Mutex, time::Duration};

use chrono::DateTime;
use redial_dispatcher::DispatcherConfig;
use redial_proto::{CallId, ToolEffect};
use redial_queue::{Queue, QueueConfig};
use redial_store::{Purpose, Store, StoreConfig};
use redial_testkit::{
    Claims, Disturbance, Evidence, Heard, Invariant, Ledger, RawNats, Servers, Violation, check, scripted_tool,
    unique_path, until, within,
};
use redial_tools::{Tool, WebhookKey};
use serde_json::{Value, json};
use sqlx::{PgPool, postgres::PgPoolOptions};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

pub use gateway::{TestGateway, new_token, token};

/// How long a stream may take to become empty: less than the 30 s after which what was not acknowledged comes again.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long a stream may take after the death of a worker, which may have died between a claim and its acknowledgement:
/// more than these 30 s.
const PATIENCE_AFTER_DEATHS: Duration = Duration::from_mins(1);
/// How long a connection may take on a machine that does not answer for seconds now and then.
const CONNECTION: Duration = Duration::from_secs(20);

/// What the secrets of webhooks are derived from, unless a test sets another key.
pub const WEBHOOK_KEY: &str = "a-canary-key-of-tests-for-webhooks-0123456789";

pub struct Stack {
    pub servers: Servers,
    /// What scripted tools write to.
    pub ledger: Ledger,
    /// The settings of dispatchers that are started later. Workers that are started later deliver webhooks by its key, and gateways
    /// use its access file.
    pub dispatcher: DispatcherConfig,
    /// The version of the contract of the roles that start from now on.
    pub contract: u32,
    queue: Queue,
    db: PgPool,
    claims: Mutex<Claims>,
    jobs_may_stay: bool,
    roles: Vec<Role>,
    finished: bool,
}

#[derive(Debug)]
struct Role {
    is_dispatcher: bool,
    shutdown: CancellationToken,
    running: JoinHandle<()>,
}

/// Returns how a role connects to NATS.
fn nats(servers: &Servers, name: &str) -> QueueConfig {
    QueueConfig { url: servers.nats_url().to_owned(), name: name.to_owned(), ..QueueConfig::default() }
}

impl Stack {
    /// Starts one dispatcher with leases of 6 s and no worker, on the Postgres that all tests share.
    pub async fn start() -> Self {
        Self::start_with(|_| {}).await
    }

    /// Starts one like [`Stack::start`] after changes of the settings.
    pub async fn start_with(change: impl FnOnce(&mut Self)) -> Self {
        let mut stack = Self::on(Servers::start().await).await;
        change(&mut stack);
        stack.dispatched().await
    }

    /// Starts one with leases of this length, for attempts that must outlast a moment in which the machine stands
    /// still.
    pub async fn start_leasing(lease: Duration) -> Self {
        Self::start_with(|stack| stack.dispatcher.lease = lease).await
    }

    /// Starts one with a dispatcher that keeps what another worker identity registers until an operator accepts it.
    pub async fn start_pinned() -> Self {
        Self::start_with(|stack| stack.dispatcher.accept_tools = false).await
    }

    /// Starts the usual dispatcher, and a worker with `echo`.
    pub async fn with_echo() -> Self {
        let mut stack = Self::start().await;
        stack.work(vec![Tool::echo()]).await;
        stack
    }

    /// Starts the usual dispatcher, and a worker that has the scripted tool `tool`.
    pub async fn with_tool(effect: ToolEffect) -> Self {
        let mut stack = Self::start().await;
        stack.work(vec![scripted_tool("tool", effect, &stack.ledger)]).await;
        stack
    }

    /// Starts the usual dispatcher on a Postgres of its own, which can be killed.
    pub async fn start_own() -> Self {
        Self::on(Servers::start_own().await).await.dispatched().await
    }

    /// Starts a dispatcher, and waits until it has dealt with the new job stream. Until then it publishes again what
    /// was published, as after a loss, and a worker that takes jobs one by one does not expect the second one.
    async fn dispatched(mut self) -> Self {
        self.dispatch().await;
        self.holds("the job stream is on record", "SELECT done FROM job_stream").await;
        self
    }

    /// Creates and migrates a database, and starts no role.
    pub async fn on(servers: Servers) -> Self {
        servers.create_database().await;
        let queue = Queue::connect(&nats(&servers, "test")).await.unwrap();
        let options = PgPoolOptions::new().max_connections(4).acquire_timeout(CONNECTION);
        let db = options.connect_lazy(&servers.primary_url()).unwrap();
        let dispatcher = DispatcherConfig {
            connections: 8,
            lease: Duration::from_secs(6),
            accept_tools: true,
            webhook_key: WebhookKey::new(WEBHOOK_KEY).ok(),
            ..DispatcherConfig::new(nats(&servers, "dispatcher"), servers.database_url())
        };
        Self {
            servers,
            ledger: Ledger::create(),
            dispatcher,
            contract: redial_proto::CONTRACT,
            queue,
            db,
            claims: Mutex::default(),
            jobs_may_stay: false,
            roles: Vec::new(),
            finished: false,
        }
    }

    /// Creates all consumers before any dispatcher does: a message that is not acknowledged is redelivered after `wait`
    /// instead of 30 s. After a crash of NATS, acknowledged messages may stay on a stream for that time.
    pub async fn redeliver_after(&self, wait: Duration) {
        self.queue.ensure_streams().await.unwrap();
        self.queue.ensure_jobs("default").await.unwrap();
        let mut nats = self.raw_nats().await;
        for consumer in ["JOBS.default", "RESULTS.dispatchers", "INTAKE.dispatchers"] {
            let (stream, _) = consumer.split_once('.').unwrap();
            let info = nats.jetstream(&format!("CONSUMER.INFO.{consumer}"), &json!({})).await;
            let mut config = info["config"].clone();
            config["ack_wait"] = json!(wait.as_nanos());
            nats.jetstream(&format!("CONSUMER.DELETE.{consumer}"), &json!({})).await;
            let request = json!({"stream_name": stream, "config": config});
            let made = nats.jetstream(&format!("CONSUMER.DURABLE.CREATE.{consumer}"), &request).await;
            assert_eq!(made["config"]["ack_wait"], config["ack_wait"], "{made}");
        }
    }

    /// Returns a connection to NATS, as a client has one.
    pub fn queue(&self) -> &Queue {
        &self.queue
    }

    /// Opens a connection of a user of a tenant.
    pub async fn user(&self, tenant: &str, user: &str) -> Queue {
        let (tenant, user) = (tenant.parse().unwrap(), user.parse().unwrap());
        let config = QueueConfig { tenant, user, ..nats(&self.servers, "a user") };
        Queue::connect(&config).await.unwrap()
    }

    /// Returns connections to the test's database that do not go through the store.
    pub fn db(&self) -> &PgPool {
        &self.db
    }

    /// Kills the primary of Postgres, and makes its standby the primary.
    pub async fn fail_over(&mut self) {
        self.servers.kill_postgres().await;
        self.servers.pair().expect("a standby").promote().await;
        self.db.set_connect_options(self.servers.primary_url().parse().unwrap());
    }

    /// Opens a connection to NATS that sends any bytes.
    pub async fn raw_nats(&self) -> RawNats {
        RawNats::connect(self.servers.one_nats_url()).await
    }

    /// Opens a connection through the store, as a dispatcher or a user's command does.
    pub async fn store(&self, purpose: Purpose) -> Store {
        let config = StoreConfig { url: self.servers.database_url().to_owned(), connections: 2, purpose };
        Store::connect(&config).await.unwrap()
    }

    /// Says that the test kills workers, or stops them for longer than a lease: any attempt may be lost.
    pub fn workers_will_die(&self) {
        self.claims().disturbed.push(Disturbance { worker: None, from: DateTime::UNIX_EPOCH, until: None });
    }

    /// Adds what somebody received.
    pub fn was_heard(&self, heard: Heard) {
        self.claims().heard.push(heard);
    }

    /// Says that the test leaves jobs on the stream that no worker is there to take.
    pub fn leaves_jobs(&mut self) {
        self.jobs_may_stay = true;
    }

    /// Says that the test leaves calls that have not ended.
    pub fn leaves_calls(&mut self) {
        self.jobs_may_stay = true;
        self.claims().calls_may_live = true;
    }

    /// Waits until a statement waits for a lock that the test holds.
    pub async fn waits_for_lock(&self) {
        let waiting = "SELECT count(*) > 0 FROM pg_stat_activity
                       WHERE datname = current_database() AND wait_event_type = 'Lock'";
        self.holds("a statement waits for a lock", waiting).await;
    }

    pub async fn evidence(&self) -> Evidence {
        Evidence::at_once(&self.db).await
    }

    /// Returns what this stack's clients received, and what its tools did.
    pub fn claims_made(&self) -> Claims {
        let mut claims = self.claims().clone();
        claims.tool_events = self.ledger.entries();
        claims
    }

    /// Waits until every call has ended. Panics, and says which have not, after `patience`, counted as in [`until`].
    pub async fn drained(&self, patience: Duration) {
        let drained = within(patience, async || {
            let live = sqlx::query_scalar::<_, i64>("SELECT count(*) FROM calls WHERE wake_at IS NOT NULL");
            (live.fetch_one(&self.db).await.ok()? == 0).then_some(())
        });
        assert!(drained.await.is_some(), "after {patience:?} these calls have not ended:\n{}", self.live().await);
    }

    /// Lists the calls that have not ended, a line each, at most twenty: for a panic.
    pub async fn live(&self) -> String {
        let lines = sqlx::query_scalar(
            "SELECT format('%s %s attempt %s, job published %s times, last %s ago, due in %s, worker %s, lease %s', id,
                           state, attempt, publish_no, clock_timestamp() - published_at, wake_at - clock_timestamp(),
                           worker, lease_until - clock_timestamp())
             FROM calls WHERE wake_at IS NOT NULL ORDER BY wake_at LIMIT 20",
        );
        let lines = lines.fetch_all(&self.db).await.unwrap_or_else(|error| vec![error.to_string()]).join("\n");
        format!("{lines}\nconsumer of their jobs: {}", self.consumer("JOBS", "default").await)
    }

    /// Ends the test: nothing may be left over, every invariant must hold. Returns what is on record.
    pub async fn finish(mut self) -> Evidence {
        self.finished = true;
        if !self.jobs_may_stay {
            self.wait_until_empty().await;
        }
        self.abandon_roles();
        let evidence = self.evidence().await;
        let violations = check(&evidence, &self.claims_made());
        assert!(violations.is_empty(), "{}", summary(&violations));
        evidence
    }

    /// Ends the test without failing it; returns what the checker finds.
    pub async fn verdict(mut self) -> Vec<Violation> {
        self.finished = true;
        self.abandon_roles();
        check(&self.evidence().await, &self.claims_made())
    }

    /// Waits until no message is left on any stream. For tests that stop their workers before they finish.
    pub async fn wait_until_empty(&self) {
        let patience = if self.claims().disturbed.is_empty() { PATIENCE } else { PATIENCE_AFTER_DEATHS };
        for (stream, consumer) in [("JOBS", "default"), ("RESULTS", "dispatchers"), ("INTAKE", "dispatchers")] {
            let empty = within(patience, async || {
                let left = self.raw_nats().await.messages(stream).await;
                let dead = self.servers.nats_crashed() && self.is_delivered(stream, consumer).await;
                (left == 0 || dead).then_some(())
            });
            // By the clock: NATS delivers again by the clock, too.
            if tokio::time::timeout(patience, empty).await.ok().flatten().is_none() {
                let info = self.consumer(stream, consumer).await;
                panic!("messages are left on {stream}, and consumer {consumer} reports: {info}");
            }
        }
    }

    /// True if a consumer has delivered everything. After a crash, messages that it still wants acknowledged may be gone.
    async fn is_delivered(&self, stream: &str, consumer: &str) -> bool {
        self.consumer(stream, consumer).await["num_pending"] == 0
    }

    async fn consumer(&self, stream: &str, consumer: &str) -> Value {
        self.raw_nats().await.jetstream(&format!("CONSUMER.INFO.{stream}.{consumer}"), &json!({})).await
    }

    fn claims(&self) -> std::sync::MutexGuard<'_, Claims> {
        self.claims.lock().unwrap()
    }

    /// Waits until a call has ended.
    pub async fn wait_for_end(&self, call: CallId) {
        until(&format!("call {call} has ended"), async || {
            let ended = sqlx::query_scalar("SELECT wake_at IS NULL FROM calls WHERE id = $1").bind(call.0);
            ended.fetch_one(&self.db).await.unwrap_or(false).then_some(())
        })
        .await;
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        assert!(self.finished || std::thread::panicking(), "the test did not finish its stack: call Stack::finish");
    }
}

/// Makes a new file with this text.
pub fn file(name: &str, text: &str) -> PathBuf {
    let path = unique_path(name);
    std::fs::write(&path, text).unwrap();
    path
}

fn summary(violations: &[Violation]) -> String {
    let kinds: std::collections::BTreeSet<Invariant> = violations.iter().map(|a| a.invariant).collect();
    let lines: Vec<String> = violations.iter().take(20).map(Violation::to_string).collect();
    format!("{} violations of {kinds:?}, the first of them:\n{}", violations.len(), lines.join("\n"))
}
