//! Starting and stopping dispatchers and workers.

use std::time::Duration;

use redial_proto::WorkerId;
use redial_testkit::Process;
use redial_tools::Tool;
use redial_worker::{Worker, WorkerConfig};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::{Role, Stack};

/// How long a role may take to start or to end.
const PATIENCE: Duration = Duration::from_mins(2);

impl Stack {
    /// Starts one more dispatcher, and waits until it answers.
    pub async fn dispatch(&mut self) {
        let url = self.servers.nats_url().to_owned();
        self.dispatch_through(&url).await;
    }

    /// Starts one more dispatcher through a proxy before NATS.
    pub async fn dispatch_through(&mut self, nats_url: &str) {
        let database_url = self.servers.database_url().to_owned();
        self.dispatch_between(nats_url, &database_url).await;
    }

    /// Starts one more dispatcher through proxies before both servers.
    pub async fn dispatch_between(&mut self, nats_url: &str, database_url: &str) {
        let mut config = self.dispatcher.clone();
        nats_url.clone_into(&mut config.queue.url);
        database_url.clone_into(&mut config.database_url);
        config.queue.contract = Some(self.contract);
        let shutdown = CancellationToken::new();
        let (started, ready) = oneshot::channel();
        let token = shutdown.clone();
        let running = tokio::spawn(async move {
            redial_dispatcher::run(config, token, || started.send(()).unwrap()).await.unwrap();
        });
        ready.await.expect("the dispatcher starts");
        self.roles.push(Role { is_dispatcher: true, shutdown, running });
    }

    /// Starts one more worker with 64 slots, and waits until it is registered.
    pub async fn work(&mut self, tools: Vec<Tool>) -> WorkerId {
        self.start_worker(|worker| tools.into_iter().fold(worker, Worker::add)).await
    }

    /// Starts one more worker with the models of a file, and waits until it is registered.
    pub async fn serve_models(&mut self, models: &std::path::Path) -> WorkerId {
        self.start_worker(|worker| worker.models(models).unwrap()).await
    }

    /// Starts one more worker with models that the test plays itself, each under its tool's name, and waits until a
    /// dispatcher knows it.
    pub async fn play_models(&mut self, models: Vec<Tool>) -> WorkerId {
        self.start_worker(|worker| models.into_iter().fold(worker, Worker::model)).await
    }

    /// Starts one more worker that delivers webhooks, also to these hosts and networks, and waits until it is registered.
    pub async fn deliver_webhooks(&mut self, allowed: &str) -> WorkerId {
        let key = self.dispatcher.webhook_key.clone().expect("a key");
        let allowed = allowed.parse().expect("hosts and networks");
        self.start_worker(|worker| worker.webhooks(key, allowed).unwrap()).await
    }

    async fn start_worker(&mut self, set_up: impl FnOnce(Worker) -> Worker) -> WorkerId {
        let (started, ready) = oneshot::channel();
        let mut config = WorkerConfig::new(self.servers.nats_url(), "test");
        config.nats.contract = Some(self.contract);
        let worker = set_up(Worker::new(config).on_ready(|| started.send(()).unwrap()));
        let (id, shutdown) = (worker.id().clone(), CancellationToken::new());
        let token = shutdown.clone();
        let running = tokio::spawn(async move { worker.run(token).await.unwrap() });
        self.roles.push(Role { is_dispatcher: false, shutdown, running });
        let registered = tokio::time::timeout(PATIENCE, ready).await;
        registered.expect("the worker is registered in time").expect("the worker starts");
        id
    }

    /// Starts a role of the program as a process of its own.
    pub fn process(&self, program: &str, role: &str, more: &[&str]) -> Process {
        Process::start(program, |command| {
            command.args([role, "--nats-url", self.servers.nats_url()]).args(more);
            if role != "worker" {
                command.args(["--database-url", self.servers.database_url()]);
            }
        })
    }

    /// Waits until all these tools are registered.
    pub async fn offered(&self, tools: &[&str]) {
        let wanted = i64::try_from(tools.len()).unwrap();
        self.counts(wanted, &format!("tools WHERE name IN ('{}')", tools.join("', '"))).await;
    }

    pub async fn stop_dispatchers(&mut self) {
        self.stop(true).await;
    }

    pub async fn stop_workers(&mut self) {
        self.stop(false).await;
    }

    async fn stop(&mut self, dispatchers: bool) {
        let stopping: Vec<Role> = self.roles.extract_if(.., |role| role.is_dispatcher == dispatchers).collect();
        for role in &stopping {
            role.shutdown.cancel();
        }
        for role in stopping {
            let ended = tokio::time::timeout(PATIENCE, role.running).await;
            ended.expect("a role that is shut down ends").expect("a role ends without an error");
        }
    }

    /// Asks roles to end and does not wait for them: they end with the test.
    pub(super) fn abandon_roles(&mut self) {
        for role in self.roles.drain(..) {
            role.shutdown.cancel();
        }
    }
}
