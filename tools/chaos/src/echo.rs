//! Keeps reports and jobs, and publishes copies of them later.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use bytes::Bytes;
use rand::{Rng as _, SeedableRng as _, rngs::StdRng};
use redial_proto::subjects;
use redial_queue::{Queue, QueueError};
use serde_json::value::RawValue;

/// Messages stored of each kind.
const MEMORY: usize = 3_000;
/// Messages repeated at once.
const ROUND: usize = 150;

/// See the module.
pub(crate) struct Echo {
    queue: Queue,
    reports: Heard,
    jobs: Heard,
    leaks: Arc<AtomicUsize>,
}

/// Messages with their subjects.
type Heard = Arc<Mutex<VecDeque<(String, Bytes)>>>;

impl Echo {
    /// Subscribes to all messages, and looks for the secret in each.
    pub(crate) async fn listen(queue: &Queue, secret: &str) -> Result<Self, QueueError> {
        let reports = remember(queue, subjects::RESULTS).await?;
        let jobs = remember(queue, "redial.jobs.>").await?;
        let (leaks, secret) = (Arc::new(AtomicUsize::new(0)), secret.as_bytes().to_owned());
        let (found, mut all) = (Arc::clone(&leaks), queue.subscribe(">").await?);
        tokio::spawn(async move {
            while let Some(message) = all.next().await {
                let leaked = message.windows(secret.len()).any(|part| part == secret);
                found.fetch_add(usize::from(leaked), Ordering::Relaxed);
            }
        });
        Ok(Self { queue: queue.clone(), reports, jobs, leaks })
    }

    /// How many messages contained the secret.
    pub(crate) fn leaks(&self) -> usize {
        self.leaks.load(Ordering::Relaxed)
    }

    /// Repeats reports, old and new; returns how many were published.
    pub(crate) async fn repeat_reports(&self, seed: u64) -> usize {
        self.repeat(&self.reports, seed).await
    }

    /// Repeats jobs, old and new, for the workers that they were published to; returns how many were published.
    pub(crate) async fn repeat_jobs(&self, seed: u64) -> usize {
        self.repeat(&self.jobs, seed).await
    }

    async fn repeat(&self, heard: &Heard, seed: u64) -> usize {
        let mut said = 0;
        for (subject, message) in choose(heard, seed) {
            let Ok(message) = serde_json::from_slice::<Box<RawValue>>(&message) else { continue };
            said += usize::from(self.queue.put(&subject, &message).await.is_ok());
        }
        said
    }
}

async fn remember(queue: &Queue, subject: &str) -> Result<Heard, QueueError> {
    let mut messages = queue.subscribe(subject).await?;
    let heard = Heard::default();
    let memory = Arc::clone(&heard);
    tokio::spawn(async move {
        while let Some(message) = messages.next_with_subject().await {
            let mut memory = memory.lock().unwrap_or_else(PoisonError::into_inner);
            if memory.len() == MEMORY {
                memory.pop_front();
            }
            memory.push_back(message);
        }
    });
    Ok(heard)
}

fn choose(heard: &Heard, seed: u64) -> Vec<(String, Bytes)> {
    let heard = heard.lock().unwrap_or_else(PoisonError::into_inner);
    let mut random = StdRng::seed_from_u64(seed);
    let most = if heard.is_empty() { 0 } else { ROUND };
    (0..most).map(|_| heard[random.random_range(0..heard.len())].clone()).collect()
}
