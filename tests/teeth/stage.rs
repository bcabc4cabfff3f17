//! Where a scenario plays: a stack whose ways to Postgres and NATS can carry a bug, and can be cut.

use std::{
    net::{Ipv4Addr, SocketAddr, TcpListener},
    time::Duration,
};

use redial_testkit::{Accusation, FaultProxy, Servers, Stack, until};
use redial_worker::{CancellationToken, Tool, Worker, WorkerConfig};
use serde_json::json;
use sqlx::AssertSqlSafe;

use crate::{
    bugs::Bug,
    messages, statements,
    wire::{Met, Wire},
};

/// With its bug a call may never end. So long it is given; without a bug everything is waited for until it happens.
const PATIENCE: Duration = Duration::from_secs(3);
/// Longer than any scenario.
const LONG_LEASE: Duration = Duration::from_secs(600);

pub(crate) struct Stage {
    pub(crate) stack: Stack,
    pub(crate) bug: &'static Bug,
    /// The bug is there; otherwise this is the same scenario in good order.
    pub(crate) seeded: bool,
    met: Vec<Met>,
    wires: Vec<Wire>,
    shutdown: CancellationToken,
}

/// The ways of one process to its servers. Dropped, they are gone.
pub(crate) struct Ways {
    nats: FaultProxy,
    postgres: Option<FaultProxy>,
}

impl Stage {
    /// A database and a NATS, with the bug in what stands between them and the programs; nobody works on them yet.
    pub(crate) async fn set(bug: &'static Bug, seeded: bool) -> Self {
        Self::over(Servers::start().await, bug, seeded).await
    }

    pub(crate) async fn over(servers: Servers, bug: &'static Bug, seeded: bool) -> Self {
        let mut stack = Stack::on(servers).await;
        stack.lease = LONG_LEASE;
        let met = if seeded { bug.traces() } else { Vec::new() };
        if seeded {
            sqlx::raw_sql(bug.schema).execute(stack.db()).await.unwrap();
        }
        Self { stack, bug, seeded, met, wires: Vec::new(), shutdown: CancellationToken::new() }
    }

    /// The same with one dispatcher.
    pub(crate) async fn with_dispatcher(bug: &'static Bug, seeded: bool) -> (Self, Ways) {
        let mut stage = Self::set(bug, seeded).await;
        let ways = stage.dispatch().await;
        (stage, ways)
    }

    /// Starts a dispatcher with the bug.
    pub(crate) async fn dispatch(&mut self) -> Ways {
        let (nats, nats_url) = self.way_to_nats().await;
        let database_url = self.stack.servers.database_url();
        let (postgres, mut database_url) = FaultProxy::before(database_url).await;
        if self.seeded && !self.bug.statements.is_empty() {
            let exchanges: Vec<_> = self.bug.statements.iter().copied().zip(self.met.iter().cloned()).collect();
            let (wire, through) = statements::before(&database_url, &exchanges).await;
            self.wires.push(wire);
            database_url = through;
        }
        self.stack.dispatch_between(&nats_url, &database_url).await;
        Ways { nats, postgres: Some(postgres) }
    }

    /// Starts a worker with the bug and so many slots.
    pub(crate) async fn work(&mut self, slots: u32, tools: Vec<Tool>) -> Ways {
        self.start_worker(slots, |worker| tools.into_iter().fold(worker, Worker::add)).await
    }

    /// Starts a worker with a model.
    pub(crate) async fn play(&mut self, model: Tool) -> Ways {
        self.start_worker(1, |worker| worker.model(model)).await
    }

    async fn start_worker(&mut self, slots: u32, set_up: impl FnOnce(Worker) -> Worker) -> Ways {
        let (nats, nats_url) = self.way_to_nats().await;
        let (tell, ready) = tokio::sync::oneshot::channel();
        let config = WorkerConfig { slots, ..WorkerConfig::new(nats_url, "teeth") };
        let worker = set_up(Worker::new(config)).on_ready(|| tell.send(()).unwrap());
        tokio::spawn(worker.run(self.shutdown.clone()));
        ready.await.expect("the worker starts");
        Ways { nats, postgres: None }
    }

    async fn way_to_nats(&mut self) -> (FaultProxy, String) {
        let (faults, url) = FaultProxy::before(self.stack.servers.nats_url()).await;
        let Some(meddling) = self.bug.messages.filter(|_| self.seeded) else { return (faults, url) };
        let (wire, through) = messages::before(&url, meddling, self.met.last().unwrap()).await;
        self.wires.push(wire);
        (faults, through)
    }

    /// Waits for the end; with the bug there may be none.
    pub(crate) async fn ends(&self, end: impl Future) {
        if self.seeded {
            let _in_time = tokio::time::timeout(PATIENCE, end).await;
        } else {
            end.await;
        }
    }

    /// Waits until a stream is empty: everything on it was answered.
    pub(crate) async fn answered(&self, stream: &str) {
        let mut nats = self.stack.raw_nats().await;
        until(&format!("{stream} is empty"), async || (nats.messages(stream).await == 0).then_some(())).await;
    }

    /// Waits until a stream's consumer was given something.
    pub(crate) async fn delivered(&self, stream: &str) {
        let mut nats = self.stack.raw_nats().await;
        until(&format!("something of {stream} is delivered"), async || {
            let info = nats.jetstream(&format!("CONSUMER.INFO.{stream}.dispatchers"), &json!({})).await;
            (info["delivered"]["consumer_seq"].as_u64()? > 0).then_some(())
        })
        .await;
    }

    /// Changes the tables past everybody.
    pub(crate) async fn meddle(&self, statement: &str) {
        sqlx::raw_sql(AssertSqlSafe(statement.to_owned())).execute(self.stack.db()).await.unwrap();
    }

    /// The end of the scenario. In good order nothing may be left over; with the bug, what the checker says.
    pub(crate) async fn judge(self) -> Vec<Accusation> {
        for (n, met) in self.met.iter().enumerate() {
            assert!(met.times() > 0, "{}: change {n} of statements and messages was never met", self.bug.name);
        }
        let accusations = if self.seeded {
            self.stack.verdict().await
        } else {
            self.stack.finish().await;
            Vec::new()
        };
        self.shutdown.cancel();
        accusations
    }
}

impl Ways {
    /// Nothing goes to Postgres or comes from there, and nobody is told.
    pub(crate) fn silence_postgres(&self) {
        self.postgres.as_ref().unwrap().black_hole(true);
    }

    /// Nothing goes to NATS or comes from there, and nobody is told.
    pub(crate) fn silence_nats(&self) {
        self.nats.black_hole(true);
    }

    /// To everybody else the process is dead: what it has under way never arrives, and it does not come back.
    pub(crate) fn kill(&self) {
        let nobody = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap();
        for way in [Some(&self.nats), self.postgres.as_ref()].into_iter().flatten() {
            die(way, nobody);
        }
    }
}

fn die(way: &FaultProxy, nobody: SocketAddr) {
    way.target(nobody);
    way.cut();
}
