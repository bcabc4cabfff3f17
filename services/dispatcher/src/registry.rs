//! Keeps the registered tools in memory as the database has them.

use std::{
    sync::{Arc, PoisonError, RwLock},
    time::{Duration, Instant},
};

use redial_engine::tools::{Tools, compile};
use redial_store::{Store, StoreError};
use tokio::{sync::Mutex, time::sleep};

/// The tools of the database, read again when one changes or an unknown one is asked for.
pub(crate) struct Registry {
    tools: RwLock<Arc<Tools>>,
    read_at: Mutex<Instant>,
}

/// An unknown tool makes the registry be read again at most this often.
const SHORTEST_AGE: Duration = Duration::from_millis(50);

impl Registry {
    pub(crate) async fn load(store: &Store) -> Result<Self, StoreError> {
        let registry = Self { tools: RwLock::default(), read_at: Mutex::new(Instant::now()) };
        registry.read(store).await?;
        Ok(registry)
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
    /// whose worker got a reply to its registration is never unknown, whichever dispatcher replied.
    pub(crate) async fn refresh_throttled(&self, store: &Store) -> Result<(), StoreError> {
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
        let tools = compile(store.tools().await?, &self.tools(), |tool, error| {
            tracing::error!(tool, %error, "Skipped a registered tool because of its schema");
        });
        *self.tools.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(tools);
        Ok(())
    }
}
