//! A stack whose connections to Postgres and NATS can carry a mutation, and can be cut.

use std::{
    net::{Ipv4Addr, TcpListener},
    sync::Arc,
    time::Duration,
};

use redial_proto::ToolEffect;
use redial_test_stack::{FaultProxy, Invariant, Servers, Stack, Violation, scripted_tool, until};
use redial_worker::{CancellationToken, Tool, Worker, WorkerConfig};
use serde_json::json;

use super::{
    list::Mutation,
    messages, statements,
    wire::{Hits, Wire},
};

/// How long a scenario with its mutation waits for an end that never comes, as the checker must notice.
const NO_END: Duration = Duration::from_secs(3);
/// The same for an end that does come: less than the 30 s after which such a wait fails.
const LATE_END: Duration = Duration::from_secs(25);
/// Longer than any scenario.
const LONG_LEASE: Duration = Duration::from_mins(10);

pub(crate) struct Fixture {
    pub(crate) stack: Stack,
    pub(crate) mutation: &'static Mutation,
    /// False in the run without the mutation.
    pub(crate) mutated: bool,
    hits: Vec<Hits>,
    links: Vec<Links>,
    wires: Vec<Wire>,
    shutdown: CancellationToken,
}

/// The connections of one process to its servers; they close with the fixture.
#[derive(Clone)]
pub(crate) struct Links {
    nats: Arc<FaultProxy>,
    postgres: Option<Arc<FaultProxy>>,
}

impl Fixture {
    /// Servers with the mutation in the proxies before them; no role runs yet.
    pub(crate) async fn new(mutation: &'static Mutation, mutated: bool) -> Self {
        let servers = if mutation.own_servers { Servers::start_own().await } else { Servers::start().await };
        let mut stack = Stack::on(servers).await;
        stack.dispatcher.lease = LONG_LEASE;
        let hits = if mutated { mutation.counters() } else { Vec::new() };
        if mutated {
            stack.execute(mutation.schema).await;
        }
        let (links, wires, shutdown) = (Vec::new(), Vec::new(), CancellationToken::new());
        Self { stack, mutation, mutated, hits, links, wires, shutdown }
    }

    /// Starts a dispatcher with the mutation.
    pub(crate) async fn dispatch(&mut self) -> Links {
        let (nats, nats_url) = self.link_to_nats().await;
        let database_url = self.stack.servers.database_url();
        let (postgres, mut database_url) = FaultProxy::before(database_url).await;
        if self.mutated && !self.mutation.statements.is_empty() {
            let replacements: Vec<_> =
                self.mutation.statements.iter().copied().zip(self.hits.iter().cloned()).collect();
            let (wire, through) = statements::before(&database_url, &replacements).await;
            self.wires.push(wire);
            database_url = through;
        }
        self.stack.dispatch_between(&nats_url, &database_url).await;
        self.keep(nats, Some(postgres))
    }

    /// Starts a worker with the mutation and so many slots.
    pub(crate) async fn work(&mut self, slots: u32, tools: Vec<Tool>) -> Links {
        self.start_worker(slots, |worker| tools.into_iter().fold(worker, Worker::add)).await
    }

    /// Starts a worker with one slot and `tool`.
    pub(crate) async fn serve(&mut self, effect: ToolEffect) -> Links {
        let tool = scripted_tool("tool", effect, &self.stack.ledger);
        self.work(1, vec![tool]).await
    }

    /// Starts a worker with a model.
    pub(crate) async fn play(&mut self, model: Tool) -> Links {
        self.start_worker(1, |worker| worker.model(model)).await
    }

    async fn start_worker(&mut self, slots: u32, set_up: impl FnOnce(Worker) -> Worker) -> Links {
        let (nats, nats_url) = self.link_to_nats().await;
        let (started, ready) = tokio::sync::oneshot::channel();
        let config = WorkerConfig { slots, ..WorkerConfig::new(nats_url, "mutations") };
        let worker = set_up(Worker::new(config)).on_ready(|| started.send(()).unwrap());
        tokio::spawn(worker.run(self.shutdown.clone()));
        ready.await.expect("the worker starts");
        self.keep(nats, None)
    }

    fn keep(&mut self, nats: FaultProxy, postgres: Option<FaultProxy>) -> Links {
        let links = Links { nats: Arc::new(nats), postgres: postgres.map(Arc::new) };
        self.links.push(links.clone());
        links
    }

    async fn link_to_nats(&mut self) -> (FaultProxy, String) {
        let (faults, url) = FaultProxy::before(self.stack.servers.nats_url()).await;
        let Some(change) = self.mutation.messages.filter(|_| self.mutated) else { return (faults, url) };
        let (wire, through) = messages::before(&url, change, self.hits.last().unwrap()).await;
        self.wires.push(wire);
        (faults, through)
    }

    /// Waits for the end, or only for a while with the mutation.
    pub(crate) async fn ends(&self, end: impl Future) {
        if self.mutated {
            let never_ends = matches!(self.mutation.caught_by, Invariant::EveryCallEnds | Invariant::EveryTaskEnds);
            let _in_time = tokio::time::timeout(if never_ends { NO_END } else { LATE_END }, end).await;
        } else {
            end.await;
        }
    }

    /// Waits until a stream is empty: everything on it was answered.
    pub(crate) async fn answered(&self, stream: &str) {
        let mut nats = self.stack.raw_nats().await;
        until(&format!("{stream} is empty"), async || (nats.messages(stream).await == 0).then_some(())).await;
    }

    /// Waits until a consumer got a message of a stream.
    pub(crate) async fn delivered(&self, stream: &str) {
        let mut nats = self.stack.raw_nats().await;
        until(&format!("a message of {stream} is delivered"), async || {
            let info = nats.jetstream(&format!("CONSUMER.INFO.{stream}.dispatchers"), &json!({})).await;
            (info["delivered"]["consumer_seq"].as_u64()? > 0).then_some(())
        })
        .await;
    }

    /// Ends the scenario. Without the mutation nothing may be left over; with it, returns what the checker finds.
    pub(crate) async fn violations(self) -> Vec<Violation> {
        for (n, hits) in self.hits.iter().enumerate() {
            assert!(hits.count() > 0, "{}: change {n} of statements and messages never matched", self.mutation.name);
        }
        let violations = if self.mutated {
            self.stack.verdict().await
        } else {
            self.stack.finish().await;
            Vec::new()
        };
        self.shutdown.cancel();
        violations
    }
}

impl Links {
    /// Forwards nothing to or from Postgres, and closes no connection.
    pub(crate) fn silence_postgres(&self) {
        self.postgres.as_ref().unwrap().black_hole(true);
    }

    /// Forwards nothing to or from NATS, and closes no connection.
    pub(crate) fn silence_nats(&self) {
        self.nats.black_hole(true);
    }

    /// Cuts the process off for good: nothing that it sends arrives.
    pub(crate) fn kill(&self) {
        let nobody = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap();
        for way in [Some(&self.nats), self.postgres.as_ref()].into_iter().flatten() {
            way.target(nobody);
            way.cut();
        }
    }
}
