//! Keeps the registered tools in memory as the database has them.

use std::{
    collections::BTreeSet,
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::RwLock;
use redial_engine::tools::{Identities, RegisteredTool, Tools, compile, memory_without};
use redial_proto::{ApiError, Code, WorkerIdentity};
use redial_store::{Store, StoreError};
use tokio::{
    sync::Mutex,
    time::{sleep, timeout},
};

use crate::aside::aside;

/// The tools of the database, read again when one changes or an unknown one is asked for.
pub(crate) struct Registry {
    tools: RwLock<Arc<Tools>>,
    /// Without the tools that agents are not offered.
    offered: RwLock<Arc<Tools>>,
    /// The worker identities that may serve each tool.
    identities: RwLock<Arc<Identities>>,
    read_at: Mutex<Instant>,
}

/// An unknown tool makes the registry be read again at most this often.
const SHORTEST_AGE: Duration = Duration::from_millis(50);
/// How long a submission of an unknown tool waits for that.
const PATIENCE: Duration = Duration::from_secs(2);

/// The tools at one moment, and who may serve them.
pub(crate) struct Served {
    tools: Arc<Tools>,
    identities: Arc<Identities>,
}

impl Served {
    /// Returns the pool of a tool that the identity may serve.
    pub(crate) fn pool_of(&self, tool: &str, identity: &WorkerIdentity) -> Option<&str> {
        let may = self.identities.get(tool).is_some_and(|identities| identities.contains(identity.as_str()));
        self.tools.get(tool).filter(|_| may).map(|tool| tool.spec.pool.as_str())
    }

    /// Returns the memory that the schemas of the other tools of an identity take, in bytes.
    pub(crate) fn memory_without(&self, identity: &WorkerIdentity, without: &BTreeSet<&str>) -> u64 {
        memory_without(&self.tools, &self.identities, identity.as_str(), without)
    }
}

impl Registry {
    pub(crate) async fn load(store: &Store) -> Result<Self, StoreError> {
        let registry = Self {
            tools: RwLock::default(),
            offered: RwLock::default(),
            identities: RwLock::default(),
            read_at: Mutex::new(Instant::now()),
        };
        registry.read(store).await?;
        Ok(registry)
    }

    pub(crate) fn tools(&self) -> Arc<Tools> {
        self.tools.read().clone()
    }

    /// Returns the tools as agents may use them: all models, and the tools that workers have.
    pub(crate) fn offered(&self) -> Arc<Tools> {
        self.offered.read().clone()
    }

    pub(crate) fn served(&self) -> Served {
        let identities = self.identities.read().clone();
        Served { tools: self.tools(), identities }
    }

    /// Decides which tools agents are offered, by its name and what they were offered before.
    pub(crate) fn offer(&self, is_offered: impl Fn(&str, &Tools) -> bool) {
        let mut now = self.offered.write();
        // Read under the lock: another task may have read the database meanwhile, and must not be followed by the tools before that.
        let tools = self.tools();
        let offered = |(name, tool): &(&String, &Arc<RegisteredTool>)| tool.is_model() || is_offered(name, &now);
        let offered = tools.iter().filter(offered).map(|(name, tool)| (name.clone(), tool.clone())).collect();
        *now = Arc::new(offered);
    }

    pub(crate) async fn refresh(&self, store: &Store) -> Result<(), StoreError> {
        self.read_since(Instant::now(), store).await
    }

    /// Reads the database again if it was not read for this long.
    pub(crate) async fn refresh_older_than(&self, age: Duration, store: &Store) -> Result<(), StoreError> {
        match Instant::now().checked_sub(age) {
            Some(moment) => self.read_since(moment, store).await,
            None => Ok(()),
        }
    }

    /// Reads the database again because a tool is unknown, but not more often than every [`SHORTEST_AGE`]. So a tool whose
    /// worker got a reply to its registration is never unknown, whichever dispatcher replied. After an error a tool may
    /// exist that is unknown here: nothing final may be decided about it.
    pub(crate) async fn refresh_throttled(&self, store: &Store) -> Result<(), ApiError> {
        let asked_at = Instant::now();
        let refresh = async {
            let read_at = *self.read_at.lock().await;
            sleep((read_at + SHORTEST_AGE).saturating_duration_since(asked_at)).await;
            self.read_since(asked_at, store).await
        };
        let done = timeout(PATIENCE, refresh).await.unwrap_or(Err(StoreError::Timeout(PATIENCE)));
        done.map_err(|error| {
            tracing::warn!(%error, "Failed to reload the registry; submissions of unknown tools are rejected for now");
            ApiError::new(Code::Unavailable, "the registered tools cannot be read from the database now; try again")
        })
    }

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
        let specs = store.tools().await?;
        let report =
            |tool: &str, error| tracing::error!(tool, %error, "Skipped a registered tool because of its schema");
        let identities = store.tool_identities().await?;
        let tools = aside(|| compile(specs, &identities, &self.tools(), report));
        *self.identities.write() = Arc::new(identities);
        let before = std::mem::replace(&mut *self.tools.write(), Arc::new(tools));
        // A tool that is new was registered a moment ago, by a live worker.
        self.offer(|tool, offered| offered.contains_key(tool) || !before.contains_key(tool));
        Ok(())
    }
}
