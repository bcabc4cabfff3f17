//! A worker: its tools, and the tasks that run them.

use std::{collections::HashMap, path::Path, sync::Arc};

use redial_proto::{WorkerId, turn};
use redial_queue::Queue;
use redial_tools::{NativeTool, Tool, check_reserved, check_together};
use tokio::{sync::Semaphore, task::JoinSet};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    WorkerConfig, WorkerError,
    drain::drain,
    heartbeat, models, notice, pull, register,
    report::Reports,
    shared::{Pool, Shared},
};

/// Most slots of a pool.
const MAX_SLOTS: u32 = 100_000;

/// Runs tools, and asks models, for the dispatchers. Any number of workers may run side by side.
pub struct Worker {
    config: WorkerConfig,
    id: WorkerId,
    tools: Vec<Tool>,
    models: Vec<Tool>,
    ready: Box<dyn FnOnce() + Send>,
}

impl Worker {
    /// A worker without tools. Its id is the name of the configuration and a random part.
    pub fn new(config: WorkerConfig) -> Self {
        let id = WorkerId::generate(&config.name);
        Self { config, id, tools: Vec::new(), models: Vec::new(), ready: Box::new(|| ()) }
    }

    /// Its id, as it stands in the audit.
    pub fn id(&self) -> &WorkerId {
        &self.id
    }

    /// Adds an async function with every default: see [`Tool::new`]. The effect is `unsafe`; use [`Worker::add`] to
    /// say better.
    #[must_use]
    pub fn tool<M: 'static>(self, name: impl Into<String>, function: impl NativeTool<M>) -> Self {
        self.add(Tool::new(name, function))
    }

    /// Adds a tool.
    #[must_use]
    #[expect(clippy::should_implement_trait, reason = "workers are not numbers")]
    pub fn add(mut self, tool: Tool) -> Self {
        self.tools.push(tool);
        self
    }

    /// Adds the tools of a manifest (`tools.toml`). Their secrets are read from the environment.
    pub fn manifest(mut self, path: impl AsRef<Path>) -> Result<Self, WorkerError> {
        self.tools.extend(redial_tools::load(path.as_ref())?);
        Ok(self)
    }

    /// Adds a model of your own under the name that the tool has: a function that takes a [`crate::TurnRequest`] and
    /// returns a [`crate::TurnReply`], and may show watchers what it writes with [`crate::Context::delta`].
    #[must_use]
    pub fn model(mut self, model: Tool) -> Self {
        self.models.push(models::own(model));
        self
    }

    /// Adds the models of a file (`models.toml`). Their keys are read from the environment.
    pub fn models(mut self, path: impl AsRef<Path>) -> Result<Self, WorkerError> {
        self.models.extend(models::load(path.as_ref())?);
        Ok(self)
    }

    /// Calls `tell` once a dispatcher knows the worker's tools: from then on they can be called.
    #[must_use]
    pub fn on_ready(mut self, tell: impl FnOnce() + Send + 'static) -> Self {
        self.ready = Box::new(tell);
        self
    }

    /// Runs until `shutdown` is cancelled and everything is drained. Returns an error only if it cannot run at all:
    /// wrong tools, wrong credentials, a connection that was closed for good.
    pub async fn run(mut self, shutdown: CancellationToken) -> Result<(), WorkerError> {
        self.check()?;
        self.tools.append(&mut self.models);
        let Some(queue) = shutdown.run_until_cancelled(Queue::connect(&self.config.nats)).await else {
            return Ok(());
        };
        let (pools, slots) = pools(&self.tools, self.config.slots);
        let queue = queue?;
        let (reports, reporter) = Reports::new(queue.clone(), self.id.clone());
        let shared = Arc::new(Shared::new(queue, self.id, self.tools, slots, reports));
        let notices = notice::subscribe(&shared).await?;
        let Some(registered) = shutdown.run_until_cancelled(register::register(&shared)).await else {
            return Ok(());
        };
        registered?;
        (self.ready)();
        tracing::info!(worker = %shared.id, slots, tools = shared.tools.len(), "ready");

        // Dropped at the end, which stops them.
        let mut background = JoinSet::new();
        background.spawn(reporter.run());
        background.spawn(heartbeat::renew(Arc::clone(&shared)));
        background.spawn(heartbeat::watch(Arc::clone(&shared)));
        background.spawn(register::keep_announced(Arc::clone(&shared)));
        let mut notices = tokio::spawn(notice::obey(Arc::clone(&shared), notices));
        let pulls = TaskTracker::new();
        for pool in pools {
            pulls.spawn(pull::pull(Arc::clone(&shared), pool));
        }
        let work = async {
            shutdown.cancelled().await;
            drain(&shared, &pulls, self.config.drain_grace, &self.config.kill).await;
        };
        let end = tokio::select! {
            () = work => Ok(()),
            _ = &mut notices => Err(WorkerError::Closed),
        };
        notices.abort();
        shared.draining.cancel();
        shared.held.stop_all();
        end
    }

    fn check(&self) -> Result<(), WorkerError> {
        if self.tools.is_empty() && self.models.is_empty() {
            return Err(WorkerError::NoTools);
        }
        for tool in &self.tools {
            check_reserved(&tool.spec).map_err(|reason| wrong(tool, reason))?;
        }
        let all = [self.tools.as_slice(), &self.models].concat();
        for tool in &all {
            tool.spec.check().map_err(|reason| wrong(tool, reason))?;
            if let Some(limit) = tool.concurrency
                && !(1..=MAX_SLOTS).contains(&limit)
            {
                return Err(wrong(tool, format!("concurrency is {limit}; allowed: 1 to {MAX_SLOTS}")));
            }
        }
        if !(1..=MAX_SLOTS).contains(&self.config.slots) {
            return Err(WorkerError::Slots { slots: self.config.slots, max: MAX_SLOTS });
        }
        Ok(check_together(&all)?)
    }
}

fn wrong(tool: &Tool, reason: String) -> WorkerError {
    WorkerError::Tool { tool: tool.spec.name.clone(), reason }
}

/// The pools of these tools, and how many calls they run at once in all. A tool's limit is its pool's, but each model
/// has one of its own: providers count requests for each, and none shall wait for another.
fn pools(tools: &[Tool], default: u32) -> (Vec<Pool>, u32) {
    let mut limits: HashMap<&str, u32> = HashMap::new();
    let (models, tools): (Vec<&Tool>, Vec<&Tool>) = tools.iter().partition(|tool| tool.spec.pool == turn::POOL);
    for tool in tools {
        let limit = limits.entry(tool.spec.pool.as_str()).or_insert(default);
        *limit = tool.concurrency.unwrap_or(*limit);
    }
    let of_model = |model: &&Tool| (model.spec.name.clone(), model.concurrency.unwrap_or(default));
    let of_models: HashMap<String, u32> = models.iter().map(of_model).collect();
    if !of_models.is_empty() {
        limits.insert(turn::POOL, of_models.values().sum());
    }
    let pool = |(name, limit): (&&str, &u32)| Pool {
        name: (*name).to_owned(),
        slots: slots(*limit),
        limits: of_models.iter().filter(|_| *name == turn::POOL).map(|(name, n)| (name.clone(), slots(*n))).collect(),
    };
    (limits.iter().map(pool).collect(), limits.values().sum())
}

fn slots(limit: u32) -> Arc<Semaphore> {
    Arc::new(Semaphore::new(usize::try_from(limit).unwrap_or(usize::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared::Busy;

    fn worker(tools: Vec<Tool>) -> Worker {
        tools.into_iter().fold(Worker::new(WorkerConfig::new("nats://127.0.0.1:1", "test")), Worker::add)
    }

    fn named(name: &str) -> Tool {
        let mut tool = Tool::echo();
        tool.spec.name = name.to_owned();
        tool
    }

    #[test]
    fn a_limit_of_one_tool_is_the_limit_of_its_pool() {
        let quick = Tool::echo();
        let slow = |name| named(name).pool("slow");
        for tools in
            [[quick.clone(), slow("a"), slow("b").concurrency(2)], [slow("b").concurrency(2), slow("a"), quick]]
        {
            let (mut pools, all) = pools(&tools, 64);
            pools.sort_by(|a, b| a.name.cmp(&b.name));
            let slots: Vec<_> = pools.iter().map(|pool| (pool.name.as_str(), pool.slots.available_permits())).collect();
            assert_eq!((slots, all), (vec![("default", 64), ("slow", 2)], 66));
        }
    }

    #[test]
    fn each_model_has_a_limit_of_its_own() {
        let model = |name, limit| {
            let mut model = models::own(named(name));
            model.concurrency = limit;
            model
        };
        let (pools, all) = pools(&[model("small", Some(2)), model("large", None), Tool::echo()], 64);
        let pool = pools.iter().find(|pool| pool.name == turn::POOL).unwrap();
        assert_eq!((pool.slots.available_permits(), all), (66, 130));
        let held: Vec<_> = (0..2).map(|_| pool.slot("model-small").ok().unwrap()).collect();
        assert_eq!(pool.slot("model-small").err(), Some(Busy::Tool));
        let large: Vec<_> = (0..64).map(|_| pool.slot("model-large").ok().unwrap()).collect();
        assert_eq!(pool.slot("model-large").err(), Some(Busy::Tool));
        drop((held, large));
        assert!(pool.slot("model-small").is_ok());
    }

    #[test]
    fn a_worker_may_hold_models_only_and_tools_are_no_models() {
        let none = || Worker::new(WorkerConfig::new("nats://127.0.0.1:1", "test"));
        assert!(none().model(named("small")).check().is_ok());
        let error = |worker: Worker| worker.check().unwrap_err().to_string();
        assert_eq!(
            error(none().add(named("model-small"))),
            r#"tool "model-small": names that start with "model-" belong to models; choose another"#
        );
        assert!(error(none().add(named("a").pool("models"))).contains(r#"pool "models" belongs to models"#));
        assert!(error(none().model(named("a")).model(named("a"))).contains(r#""model-a" is there twice"#));
        assert!(error(none().model(named("a.b"))).contains("model-a.b"));
    }

    #[test]
    fn what_cannot_run_is_named() {
        let error = |worker: Worker| worker.check().unwrap_err().to_string();
        assert!(error(worker(Vec::new())).contains("no tools and no models; at least one is needed"));
        assert!(error(worker(vec![Tool::echo(), Tool::echo()])).contains("\"echo\""));
        assert!(error(worker(vec![Tool::echo().concurrency(0)])).contains("concurrency is 0; allowed: 1 to 100000"));
        let missing = worker(vec![Tool::echo()]).manifest("/nowhere/tools.toml").err().unwrap();
        assert!(missing.to_string().contains("/nowhere/tools.toml"), "{missing}");
        let mut none = worker(vec![Tool::echo()]);
        none.config.slots = 0;
        assert!(error(none).contains("slots is 0; allowed: 1 to 100000"));
        assert!(error(worker(vec![named("a.b")])).contains("a.b"));
    }
}
