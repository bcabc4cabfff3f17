//! Whether the parts of an installation answered when somebody last asked.

use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::Serialize;
use tokio::sync::Mutex;

/// Nobody needs a token to ask whether a gateway is ready, so the parts are asked no more often than this, however many ask.
const FRESH: Duration = Duration::from_millis(500);

/// Which parts answer.
#[derive(Clone, Serialize, JsonSchema)]
pub(crate) struct Health {
    /// Whether requests can be answered.
    pub(crate) ready: bool,
    /// Postgres.
    pub(crate) postgres: PartHealth,
    /// NATS.
    pub(crate) nats: PartHealth,
    /// At least one dispatcher.
    pub(crate) dispatcher: PartHealth,
    /// Since when NATS has taken no jobs of that dispatcher: calls are accepted, and wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) jobs_fail_since: Option<DateTime<Utc>>,
}

/// Whether a part answers.
#[derive(Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PartHealth {
    /// It answers.
    Ok,
    /// It does not.
    Unavailable,
}

pub(crate) struct LastLook<T>(Mutex<Option<(Instant, T)>>);

impl<T> Default for LastLook<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T: Clone> LastLook<T> {
    /// Returns the answer of a moment ago; else asks for it, once for all who wait for it.
    pub(crate) async fn answer(&self, ask: impl Future<Output = T>) -> T {
        let mut last = self.0.lock().await;
        if let Some((at, answer)) = &*last
            && at.elapsed() < FRESH
        {
            return answer.clone();
        }
        let answer = ask.await;
        *last = Some((Instant::now(), answer.clone()));
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn those_who_ask_at_once_ask_once() {
        let (look, asked) = (LastLook::default(), std::sync::atomic::AtomicU32::new(0));
        let ask = async || look.answer(async { asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed) }).await;
        assert_eq!(tokio::join!(ask(), ask(), ask()), (0, 0, 0));
    }
}
