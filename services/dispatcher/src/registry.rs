//! The tools that workers registered, with their schemas compiled.

use std::{
    collections::HashMap,
    sync::{Arc, PoisonError, RwLock},
    time::{Duration, Instant},
};

use redial_arguments::{Schema, SchemaError};
use redial_proto::{RetryOverride, RetryPolicy, ToolSpec, turn};
use redial_store::{Store, StoreError};
use tokio::{sync::Mutex, time::sleep};

use crate::accept::digest;

/// A tool that calls can be submitted for.
#[derive(Debug)]
pub(crate) struct Tool {
    pub(crate) spec: ToolSpec,
    pub(crate) schema: Arc<Schema>,
    /// Fingerprint of the spec.
    pub(crate) version: String,
}

impl Tool {
    pub(crate) fn new(spec: ToolSpec) -> Result<Self, SchemaError> {
        let schema = Arc::new(Schema::compile(&spec.parameters)?);
        // A spec has text keys only, so this cannot fail.
        let version = serde_json::to_value(&spec).map(|spec| digest(&spec).simple().to_string()).unwrap_or_default();
        Ok(Self { spec, schema, version })
    }

    /// Asks a model; no tool of an agent.
    pub(crate) fn is_model(&self) -> bool {
        self.spec.pool == turn::POOL
    }
}

pub(crate) type Tools = HashMap<String, Arc<Tool>>;

/// The tools of the database, read again when one changes or an unknown one is asked for.
pub(crate) struct Registry {
    tools: RwLock<Arc<Tools>>,
    read_at: Mutex<Instant>,
}

/// An unknown tool makes the registry be read again at most this often.
const SHORTEST_AGE: Duration = Duration::from_millis(50);

impl Registry {
    pub(crate) async fn load(store: &Store) -> Result<Self, StoreError> {
        let read_at = Mutex::new(Instant::now());
        let tools = RwLock::new(Arc::new(compile(store.tools().await?, &Tools::new())));
        Ok(Self { tools, read_at })
    }

    /// The tools as they are now.
    pub(crate) fn tools(&self) -> Arc<Tools> {
        self.tools.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Reads the database again.
    pub(crate) async fn refresh(&self, store: &Store) -> Result<(), StoreError> {
        self.read_since(Instant::now(), store).await
    }

    /// Reads the database again, but not more often than every [`SHORTEST_AGE`]: waits as long as that takes. So a tool
    /// whose worker was told that it is registered is never unknown, whichever dispatcher told it.
    pub(crate) async fn refresh_gently(&self, store: &Store) -> Result<(), StoreError> {
        let asked_at = Instant::now();
        let read_at = *self.read_at.lock().await;
        sleep((read_at + SHORTEST_AGE).saturating_duration_since(asked_at)).await;
        self.read_since(asked_at, store).await
    }

    /// Makes sure that the database was read after this moment.
    async fn read_since(&self, moment: Instant, store: &Store) -> Result<(), StoreError> {
        let mut read_at = self.read_at.lock().await;
        if *read_at < moment {
            let began = Instant::now();
            self.read(store).await?;
            *read_at = began;
        }
        Ok(())
    }

    async fn read(&self, store: &Store) -> Result<(), StoreError> {
        let tools = Arc::new(compile(store.tools().await?, &self.tools()));
        *self.tools.write().unwrap_or_else(PoisonError::into_inner) = tools;
        Ok(())
    }

    /// When and how often to retry a call: its own settings over its tool's. A tool that left the registry, which
    /// only happens by hand, is retried by the defaults.
    pub(crate) fn retry(&self, tool: &str, over: &RetryOverride) -> RetryPolicy {
        self.tools().get(tool).map_or_else(RetryPolicy::default, |tool| tool.spec.retry).with(over)
    }
}

/// Compiles what is new; keeps what has not changed.
fn compile(specs: Vec<ToolSpec>, known: &Tools) -> Tools {
    let mut tools = Tools::with_capacity(specs.len());
    for spec in specs {
        if let Some(tool) = known.get(&spec.name).filter(|tool| tool.spec == spec) {
            tools.insert(spec.name, tool.clone());
            continue;
        }
        let name = spec.name.clone();
        match Tool::new(spec) {
            Ok(tool) => drop(tools.insert(name, Arc::new(tool))),
            Err(error) => tracing::error!(tool = name, %error, "the registry holds a tool with a bad schema"),
        }
    }
    tools
}
