//! Two tenants, users with different roles, workers of two pools, and a dispatcher, each with credentials of its own.

use std::time::Duration;

use redial_dispatcher::DispatcherConfig;
use redial_proto::{TurnReply, TurnRequest};
use redial_queue::{Queue, QueueConfig};
use redial_test_stack::{RawNats, Servers};
use redial_tools::{Tool, ToolError};
use redial_worker::{Worker, WorkerConfig};
use tokio::{sync::oneshot, task::JoinHandle};
use tokio_util::sync::CancellationToken;

use crate::nats_permissions::server::Server;

const ACCESS: &str = r#"
[dispatcher]
password = "$TEST_DISPATCHER"
[tenants.acme.users]
alice = { roles = ["submit", "inline", "read", "operate", "admin"], password = "$TEST_PASSWORD" }
sam = { roles = ["submit"], password = "$TEST_PASSWORD" }
[tenants.globex.users]
bob = { roles = ["submit", "inline", "read", "operate", "admin"], password = "$TEST_PASSWORD" }
rita = { roles = ["read"], password = "$TEST_PASSWORD" }
[workers.tools]
pools = ["default"]
password = "$TEST_PASSWORD"
[workers.models]
pools = ["models"]
password = "$TEST_PASSWORD"
[workers.rogue]
pools = ["other"]
password = "$TEST_PASSWORD"
"#;

pub(crate) const ANSWER: Duration = Duration::from_secs(25);

pub(crate) struct World {
    server: Server,
    servers: Servers,
    shutdown: CancellationToken,
    roles: Vec<JoinHandle<()>>,
}

impl World {
    pub(crate) async fn start() -> Self {
        let server = Server::start(ACCESS).await;
        let servers = Servers::start().await;
        servers.create_database().await;
        let mut world = Self { server, servers, shutdown: CancellationToken::new(), roles: Vec::new() };
        world.dispatch().await;
        world.work("tools", "default", |worker| worker.add(Tool::echo())).await;
        let model = Tool::new("small", |request: TurnRequest| async move {
            let said = request.messages.last().map(|message| message.content.clone()).unwrap_or_default();
            Ok::<_, ToolError>(TurnReply { text: Some(format!("You said {said}")), ..TurnReply::default() })
        });
        world.work("models", "models", |worker| worker.model(model)).await;
        world
    }

    async fn dispatch(&mut self) {
        let config = DispatcherConfig::new(self.config("dispatcher"), self.servers.database_url());
        let (started, ready) = oneshot::channel();
        let token = self.shutdown.clone();
        let run = async move { redial_dispatcher::run(config, token, || started.send(()).unwrap()).await.unwrap() };
        self.roles.push(tokio::spawn(run));
        tokio::time::timeout(ANSWER, ready).await.expect("the dispatcher starts").unwrap();
    }

    async fn work(&mut self, identity: &str, pool: &str, set_up: impl FnOnce(Worker) -> Worker) {
        let config = WorkerConfig {
            nats: self.config(&format!("worker.{identity}")),
            pools: vec![pool.to_owned()],
            ..WorkerConfig::new("", identity)
        };
        let (started, ready) = oneshot::channel();
        let worker = set_up(Worker::new(config).on_ready(|| started.send(()).unwrap()));
        let token = self.shutdown.clone();
        self.roles.push(tokio::spawn(async move { worker.run(token).await.unwrap() }));
        tokio::time::timeout(ANSWER, ready).await.expect("the worker is registered").unwrap();
    }

    /// The settings of a user.
    pub(crate) fn config(&self, user: &str) -> QueueConfig {
        self.server.config(user)
    }

    /// A correct client of a user, `tenant.user`.
    pub(crate) async fn user(&self, user: &str) -> Queue {
        Queue::connect(&self.config(user)).await.unwrap()
    }

    /// A client that does what a correct one never would.
    pub(crate) async fn raw(&self, user: &str) -> RawNats {
        self.server.connect(user).await
    }

    pub(crate) async fn count(&self, what: &str) -> i64 {
        let db = sqlx::PgPool::connect(self.servers.database_url()).await.unwrap();
        let count = sqlx::query_scalar(sqlx::AssertSqlSafe(format!("SELECT count(*) FROM {what}")));
        let count = count.fetch_one(&db).await.unwrap();
        db.close().await;
        count
    }

    pub(crate) async fn stop(self) {
        self.shutdown.cancel();
        for role in self.roles {
            role.await.unwrap();
        }
    }
}
