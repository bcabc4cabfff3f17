//! The worker: its tools and models, and the background tasks that run them.

use std::{path::Path, sync::Arc, time::Duration};

use redial_loops::Loops;
use redial_proto::{
    WorkerId, WorkerIdentity,
    subjects::{self, ControlVerb},
    webhook,
};
use redial_queue::Queue;
use redial_tools::{Allowed, NativeTool, Secrets, Tool, WebhookKey, check_compatible, check_reserved};
use secrecy::SecretString;
use tokio::task::JoinHandle;
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use crate::{
    config::WorkerConfig,
    control,
    drain::drain,
    error::WorkerError,
    heartbeat, models,
    pool::{Limits, pools},
    pull, register,
    report::{ReportSender, Reporter},
    state::{Named, WorkerState},
};

/// Shortest secret, in bytes, that is removed from the results of other tools than its own.
const MIN_SHARED: usize = 6;

/// Runs tools and asks models for the dispatchers. Any number of workers may run side by side.
///
/// ```no_run
/// use redial_worker::{CancellationToken, ToolEffect, Tool, Worker, WorkerConfig, WorkerError};
///
/// async fn run() -> Result<(), WorkerError> {
///     let shutdown = CancellationToken::new();
///     Worker::new(WorkerConfig::new("nats://localhost:4222", "tools"))
///         .add(Tool::echo().effect(ToolEffect::Read))
///         .manifest("tools.toml")?
///         .on_ready(|| eprintln!("the tools can be called now"))
///         .run(shutdown)
///         .await
/// }
/// ```
pub struct Worker {
    config: WorkerConfig,
    id: WorkerId,
    tools: Vec<Tool>,
    models: Vec<Tool>,
    webhooks: Vec<Tool>,
    ready: Box<dyn FnOnce() + Send>,
}

impl Worker {
    /// A worker without tools. Its id is the configured name and a random suffix.
    pub fn new(config: WorkerConfig) -> Self {
        let id = WorkerId::generate(&WorkerIdentity::of_name(&config.name));
        Self { config, id, tools: Vec::new(), models: Vec::new(), webhooks: Vec::new(), ready: Box::new(|| ()) }
    }

    /// The id under which attempts of this worker are on record.
    pub fn id(&self) -> &WorkerId {
        &self.id
    }

    /// Adds an async function as a tool with all defaults, see [`Tool::new`]. Its effect is `unsafe`; use
    /// [`Worker::add`] for another one.
    #[must_use]
    pub fn tool<M: 'static>(self, name: impl Into<String>, function: impl NativeTool<M>) -> Self {
        self.add(Tool::new(name, function))
    }

    /// Adds a tool. [`Worker::run`] checks that names are unique and that tools of one pool agree on its limit.
    #[must_use]
    #[expect(clippy::should_implement_trait, reason = "workers are not numbers")]
    pub fn add(mut self, tool: Tool) -> Self {
        self.tools.push(tool);
        self
    }

    /// Adds the tools of a manifest (`tools.toml`). Their secrets are read from the environment, their programs run as
    /// [`WorkerConfig::command_user`].
    pub fn manifest(self, path: impl AsRef<Path>) -> Result<Self, WorkerError> {
        self.manifest_with(path, &|name| std::env::var(name).ok())
    }

    /// The same; `variable` gives the value of an environment variable.
    pub fn manifest_with(
        mut self,
        path: impl AsRef<Path>,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, WorkerError> {
        self.tools.extend(redial_tools::load_with(path.as_ref(), &self.config.command_user, variable)?);
        Ok(self)
    }

    /// Adds a model that you implement, under the tool's name: a function that takes a [`crate::TurnRequest`] and
    /// returns a [`crate::TurnReply`]. It may show its answer to watchers while it writes it, with
    /// [`crate::Context::delta`].
    #[must_use]
    pub fn model(mut self, model: Tool) -> Self {
        self.models.push(models::from_tool(model));
        self
    }

    /// Delivers webhooks, with secrets derived from this key: to the public internet, and to what is allowed besides. The tool
    /// has a pool of its own, `webhooks`.
    pub fn webhooks(mut self, key: WebhookKey, allowed: Allowed) -> Result<Self, WorkerError> {
        let built = Tool::webhooks(key, allowed);
        let tool = built.map_err(|reason| WorkerError::Tool { tool: webhook::TOOL.to_owned(), reason })?;
        self.webhooks = vec![tool];
        Ok(self)
    }

    /// Adds the models of a file (`models.toml`). Their keys are read from the environment.
    pub fn models(self, path: impl AsRef<Path>) -> Result<Self, WorkerError> {
        self.models_with(path, &|name| std::env::var(name).ok())
    }

    /// The same; `variable` gives the value of an environment variable.
    pub fn models_with(
        mut self,
        path: impl AsRef<Path>,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, WorkerError> {
        self.models.extend(models::load(path.as_ref(), variable)?);
        Ok(self)
    }

    /// Runs `callback` once a dispatcher has registered the tools: from then on they can be called, unless they wait until an operator
    /// accepts them, which is logged.
    #[must_use]
    pub fn on_ready(mut self, callback: impl FnOnce() + Send + 'static) -> Self {
        self.ready = Box::new(callback);
        self
    }

    /// Runs until `shutdown` is cancelled and the worker is drained. Returns an error only for what retries cannot
    /// solve: invalid tools, wrong credentials; or the panic of a background loop, a bug in Redial; or the end of the NATS
    /// client. The process should end then, and be started again.
    pub async fn run(self, shutdown: CancellationToken) -> Result<(), WorkerError> {
        self.run_with(shutdown, |_| ()).await
    }

    /// Does the same with more loops.
    async fn run_with(
        mut self,
        shutdown: CancellationToken,
        start_more: impl FnOnce(&Loops),
    ) -> Result<(), WorkerError> {
        self.check()?;
        self.tools.append(&mut self.models);
        self.tools.append(&mut self.webhooks);
        self.share_secrets();
        let Some(queue) = shutdown.run_until_cancelled(Queue::connect(&self.config.nats)).await else {
            return Ok(());
        };
        let queue = queue?;
        let limits = Limits { slots: self.config.slots, command_slots: self.config.command_slots };
        let (pools, slots) = pools(&self.tools, limits);
        let named = Named { id: self.id, pools: self.config.pools_token()?, host: self.config.host };
        let pieces_subject = subjects::control(&named.id.identity(), &named.pools, ControlVerb::Piece);
        let (reports, reporters) = ReportSender::new(&queue, &named.id, &pieces_subject);
        let state = Arc::new(WorkerState::new(queue, named, self.tools, slots, reports));
        let control_messages = control::subscribe(&state).await?;
        let Some(registered) = shutdown.run_until_cancelled(register::register(&state)).await else {
            return Ok(());
        };
        registered?;
        (self.ready)();
        tracing::info!(worker = %state.id, slots = state.slots.all, tools = state.tools.len(), "Worker started");
        if std::process::id() == 1 && state.tools.values().any(|tool| tool.starts_programs) {
            tracing::warn!(
                "Found no init: this worker is process 1, and does not reap what its programs leave behind; start it below an init, \
                 such as tini or that of `docker run --init`"
            );
        }

        let loops = state.control_tasks.group();
        let _background = spawn_background(&state, &loops, reporters);
        let _control = aborted(loops.spawn("control messages", control::run(Arc::clone(&state), control_messages)));
        let pulls = loops.group();
        for pool in pools {
            pulls.spawn("pull jobs", pull::pull(Arc::clone(&state), pool));
        }
        start_more(&loops);
        tokio::select! {
            biased;
            // What still runs is released, as far as that works.
            _ = loops.panicked() => {
                drain(&state, &pulls, Duration::ZERO, &self.config.kill).await;
            }
            () = async {
                shutdown.cancelled().await;
                drain(&state, &pulls, self.config.drain_grace, &self.config.kill).await;
            } => {}
        }
        state.draining.cancel();
        state.attempts.stop_all();
        loops.panic().map_or(Ok(()), |panic| Err(panic.into()))
    }

    /// Makes every tool remove the secrets of all of them, and the login of NATS: a tool may come across those of others.
    fn share_secrets(&mut self) {
        let login: Vec<SecretString> = self.config.nats.secrets().into_iter().map(SecretString::from).collect();
        let all = self.tools.iter().fold(Secrets::new(&login), |all, tool| all.union(tool.secrets()));
        let all = all.at_least(MIN_SHARED);
        for tool in &mut self.tools {
            tool.share_secrets(&all);
        }
    }

    fn check(&self) -> Result<(), WorkerError> {
        if self.tools.is_empty() && self.models.is_empty() && self.webhooks.is_empty() {
            return Err(WorkerError::NoTools);
        }
        for tool in &self.tools {
            check_reserved(&tool.spec).map_err(|reason| invalid(tool, reason))?;
        }
        let all = [self.tools.as_slice(), &self.models, &self.webhooks].concat();
        for tool in &all {
            tool.spec.check().map_err(|reason| invalid(tool, reason))?;
            if let Some(limit) = tool.concurrency
                && !WorkerConfig::SLOTS.contains(&limit)
            {
                let max = WorkerConfig::SLOTS.end();
                return Err(invalid(tool, format!("concurrency is {limit}; allowed: 1 to {max}")));
            }
        }
        for (setting, slots) in [("slots", self.config.slots), ("command_slots", self.config.command_slots)] {
            if !WorkerConfig::SLOTS.contains(&slots) {
                return Err(WorkerError::Slots { setting, slots, max: *WorkerConfig::SLOTS.end() });
            }
        }
        check_compatible(&all)?;
        self.check_pools(&all)
    }

    /// Refuses a tool in a pool that the credentials do not cover: every dispatcher would.
    fn check_pools(&self, tools: &[Tool]) -> Result<(), WorkerError> {
        let pools = &self.config.pools;
        self.config.pools_token()?;
        let outside = |tool: &&Tool| !pools.is_empty() && !pools.contains(&tool.spec.pool);
        match tools.iter().find(outside) {
            Some(tool) => {
                let allowed = pools.join(", ");
                Err(invalid(tool, format!("its pool is {:?}; this worker's pools are: {allowed}", tool.spec.pool)))
            }
            None => Ok(()),
        }
    }
}

/// Starts the loops that report, send heartbeats, and keep the worker registered. Dropping them aborts them.
fn spawn_background(
    state: &Arc<WorkerState>,
    loops: &Loops,
    [of_small, of_large]: [Reporter; 2],
) -> [AbortOnDropHandle<()>; 5] {
    [
        aborted(loops.spawn("send reports", of_small.run())),
        aborted(loops.spawn("send large reports", of_large.run())),
        aborted(loops.spawn("send heartbeats", heartbeat::run(Arc::clone(state)))),
        aborted(loops.spawn("stop expired attempts", heartbeat::stop_expired(Arc::clone(state)))),
        aborted(loops.spawn("keep the worker registered", register::keep_registered(Arc::clone(state)))),
    ]
}

fn aborted(handle: JoinHandle<()>) -> AbortOnDropHandle<()> {
    AbortOnDropHandle::new(handle)
}

fn invalid(tool: &Tool, reason: String) -> WorkerError {
    WorkerError::Tool { tool: tool.spec.name.clone(), reason }
}

#[cfg(test)]
mod tests {
    use redial_proto::subjects::{self, ControlVerb};
    use redial_servers::{Nats, NatsConfig, Server as _};

    use super::*;

    fn empty() -> Worker {
        Worker::new(WorkerConfig::new("nats://127.0.0.1:1", "test"))
    }

    fn named(name: &str) -> Tool {
        let mut tool = Tool::echo();
        tool.spec.name = name.to_owned();
        tool
    }

    #[test]
    fn what_is_wrong_with_a_worker_is_named() {
        let limited = |slots, command_slots| {
            let config = WorkerConfig { slots, command_slots, ..WorkerConfig::new("nats://127.0.0.1:1", "test") };
            Worker::new(config).add(Tool::echo())
        };
        for (worker, wanted) in [
            (empty(), "no tools and no models; at least one is needed"),
            (empty().add(Tool::echo()).add(Tool::echo()), "\"echo\""),
            (empty().add(Tool::echo().concurrency(0)), "concurrency is 0; allowed: 1 to 100000"),
            (limited(0, 4), "slots is 0; allowed: 1 to 100000"),
            (limited(4, 100_001), "command_slots is 100001; allowed: 1 to 100000"),
            (empty().add(named("a.b")), "a.b"),
            (empty().model(named("a.b")), "model-a.b"),
            (empty().model(named("a")).model(named("a")), r#""model-a" is declared twice"#),
            (empty().add(named("redial_webhook")), "the name of a built-in tool"),
            (
                empty().add(named("model-small")),
                r#"tool "model-small": names that start with "model-" are reserved for models; choose another"#,
            ),
        ] {
            let error = worker.check().unwrap_err().to_string();
            assert!(error.contains(wanted), "{error}");
        }
        let missing = empty().manifest("/nowhere/tools.toml").err().unwrap();
        assert!(missing.to_string().contains("/nowhere/tools.toml"), "{missing}");
        let key = WebhookKey::new(&"k".repeat(32)).unwrap();
        assert!(empty().webhooks(key, Allowed::default()).unwrap().check().is_ok());
        assert!(empty().model(named("small")).check().is_ok(), "it may have only models");
    }

    #[test]
    fn tools_remove_the_secrets_of_all_others_and_the_login_of_nats() {
        let tools = [Tool::echo().secret("canary-1").secret("pin"), named("b")];
        let config = WorkerConfig::new("nats://me:canary-2@127.0.0.1:1", "test");
        let model = named("m").secret("canary-3");
        let mut worker = tools.into_iter().fold(Worker::new(config), Worker::add).model(model);
        worker.tools.append(&mut worker.models);
        worker.share_secrets();
        let shown = |tool: usize| worker.tools[tool].secrets().redact("me canary-1 canary-2 canary-3 pin");
        assert_eq!(shown(0), "me [secret] [secret] [secret] [secret]");
        assert_eq!(
            [shown(1), shown(2)],
            ["me [secret] [secret] [secret] pin"; 2],
            "a short one is the tool's own affair"
        );
    }

    /// A NATS on which every registration succeeds.
    #[tokio::test]
    async fn a_loop_that_panics_stops_the_worker_with_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let nats = Nats::start(NatsConfig::new(folder.path())).await.unwrap();
        let mut config = WorkerConfig::new(nats.url(), "test");
        let queue = Queue::connect(&config.nats).await.unwrap();
        queue.ensure_streams().await.unwrap();
        let mut requests = queue.serve(&subjects::control_of_all(ControlVerb::Register), None).await.unwrap();
        queue.flush().await;
        let registered = tokio::spawn(async move {
            while let Some(request) = requests.next().await {
                request.reply(&serde_json::json!({"at": "2026-01-01T00:00:00Z", "lease_ms": 15_000})).await;
            }
        });
        config.drain_grace = Duration::from_hours(1);
        let broken = |loops: &Loops| drop(loops.spawn("broken", async { panic!("on purpose") }));
        let stopped = Worker::new(config).add(Tool::echo()).run_with(CancellationToken::new(), broken);
        let error = tokio::time::timeout(Duration::from_mins(1), stopped).await.expect("it stops").unwrap_err();
        assert!(matches!(&error, WorkerError::Panicked(panic) if panic.name == "broken"), "{error}");
        registered.abort();
    }
}
