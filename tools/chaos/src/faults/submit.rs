//! What faults submit, without proxies. All of it must be acknowledged, and end well.

use std::time::{Duration, Instant};

use redial_proto::{CallId, Submission};
use redial_testkit::Progress;
use serde_json::Value;

use super::{Injector, LOOK, PATIENCE, reached};
use crate::{client, load};

const ANSWER: Duration = Duration::from_secs(5);

impl Injector {
    /// Submits so many calls of a tool.
    pub(super) async fn submit(&mut self, tool: &str, count: u64, orders: impl Fn(u64) -> Value) -> Vec<CallId> {
        let submissions: Vec<Submission> =
            (0..count).map(|n| load::of_fault(self.number(), tool, &orders(n))).collect();
        let mut submitted = Vec::new();
        for batch in submissions.chunks(500) {
            let control = self.fixture.control.clone();
            let ids = acknowledged(|| client::submit_all_once(&control, batch, ANSWER)).await;
            let Some(ids) = ids else {
                self.wrong.push(format!("{} calls of {tool} were not accepted", batch.len()));
                continue;
            };
            self.calls.extend(ids.iter().copied().zip(batch.iter().map(|call| call.key.clone())));
            submitted.extend(ids);
        }
        submitted
    }

    /// Returns how far calls have come; as if they had not been submitted, while the database is down.
    pub(super) async fn progress(&self, calls: &[CallId]) -> Progress {
        let all = u64::try_from(calls.len()).unwrap_or(u64::MAX);
        let none = Progress { waiting: all, open: all, last_start: None };
        self.fixture.observer.progress(calls).await.unwrap_or(none)
    }

    /// Waits until calls have ended; returns how long that took.
    pub(super) async fn end(&self, calls: &[CallId]) -> Option<Duration> {
        reached(async || self.progress(calls).await.open == 0).await
    }
}

/// Repeats until there is an answer: keys make that safe.
async fn acknowledged<T>(ask: impl AsyncFn() -> Option<T>) -> Option<T> {
    let began = Instant::now();
    while began.elapsed() < PATIENCE {
        if let Some(answer) = ask().await {
            return Some(answer);
        }
        tokio::time::sleep(LOOK).await;
    }
    None
}
