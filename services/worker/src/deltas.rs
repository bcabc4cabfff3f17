//! Deltas: shows the watchers of a task a model's answer while the model writes it.
//!
//! Deltas may get lost; only the report carries the whole answer. Each says what precedes it, and every few seconds one has the
//! whole text so far, so that a watcher that missed some, or began late, can show the text again. A secret that the model writes
//! in one interval is removed; one that comes in two is not recognised here, only in the report.

use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use redial_proto::{Delta, DeltaPosition, TaskId, WholeText, subjects};
use redial_queue::Queue;
use redial_tools::{Secrets, Watchers};
use tokio::{
    sync::mpsc,
    time::{Instant, sleep_until},
};

/// Deltas of this interval are published together: otherwise a fast model would flood NATS.
const INTERVAL: Duration = Duration::from_millis(50);
/// Deltas that may wait to be published; what follows when there are more is not published.
const CAPACITY: usize = 1024;
/// How often the whole text so far is published.
const WHOLE: Duration = Duration::from_secs(2);
/// Bytes of such a text; a longer one is not published whole. As JSON it may take six times as many.
const WHOLE_BYTES: usize = 128 * 1024;

/// Publishes the deltas of one attempt to the watchers of its task.
pub(crate) struct DeltaPublisher {
    queue: Queue,
    subject: String,
    attempt: u32,
    secrets: Secrets,
    receiver: mpsc::Receiver<Delta>,
    /// Merged, in order; to be published next.
    merged: Vec<Delta>,
    turn: u32,
    /// What was published.
    so_far: WholeText,
}

impl DeltaPublisher {
    /// Returns the publisher, and the handle through which a model sends deltas to it.
    pub(crate) fn new(queue: &Queue, tenant: &str, of: (TaskId, u32), secrets: Secrets) -> (Watchers, Self) {
        let (task, attempt) = of;
        let (sender, receiver) = mpsc::channel(CAPACITY);
        // A full channel means that the model writes faster than NATS takes it. Where what follows belongs is not known then.
        let is_behind = Arc::new(AtomicBool::new(false));
        let watchers = Watchers::new(move |delta| {
            if !is_behind.load(Ordering::Relaxed) && sender.try_send(delta).is_err() {
                is_behind.store(true, Ordering::Relaxed);
            }
        });
        let publisher = Self {
            queue: queue.clone(),
            subject: subjects::task_deltas(tenant, task),
            attempt,
            secrets,
            receiver,
            merged: Vec::new(),
            turn: 0,
            so_far: WholeText::default(),
        };
        (watchers, publisher)
    }

    /// Publishes deltas while an attempt runs, and the remaining ones when it has ended.
    pub(crate) async fn publish_during<T>(mut self, attempt: impl Future<Output = T>) -> T {
        let end = tokio::select! {
            end = attempt => end,
            never = self.publish() => match never {},
        };
        self.flush().await;
        end
    }

    async fn publish(&mut self) -> Infallible {
        let mut whole_at = Instant::now() + WHOLE;
        loop {
            let delta = tokio::select! {
                delta = self.receiver.recv() => delta,
                () = sleep_until(whole_at) => {
                    self.publish_whole().await;
                    whole_at = Instant::now() + WHOLE;
                    continue;
                }
            };
            match delta {
                Some(delta) => append(&mut self.merged, delta),
                None => std::future::pending().await,
            }
            tokio::time::sleep(INTERVAL).await;
            self.flush().await;
        }
    }

    async fn flush(&mut self) {
        while let Ok(delta) = self.receiver.try_recv() {
            append(&mut self.merged, delta);
        }
        while let Some(delta) = self.merged.first_mut() {
            delta.thought = self.secrets.redact(&delta.thought);
            delta.text = self.secrets.redact(&delta.text);
            delta.attempt = self.attempt;
            delta.after = Some(length(&self.so_far));
            // Counted and removed only after the publish: if this future is dropped meanwhile, it is published again.
            if let Err(error) = self.queue.publish(&self.subject, &*delta).await {
                tracing::debug!(%error, "Dropped a delta");
            }
            let delta = self.merged.remove(0);
            self.turn = delta.turn;
            self.so_far.thought.push_str(&delta.thought);
            self.so_far.text.push_str(&delta.text);
        }
    }

    async fn publish_whole(&self) {
        let DeltaPosition { text, thought } = length(&self.so_far);
        if !(1..=WHOLE_BYTES as u64).contains(&(text + thought)) {
            return;
        }
        let whole = Some(self.so_far.clone());
        let delta = Delta { turn: self.turn, attempt: self.attempt, whole, ..Delta::default() };
        if let Err(error) = self.queue.publish(&self.subject, &delta).await {
            tracing::debug!(%error, "Dropped the whole text so far");
        }
    }
}

fn length(text: &WholeText) -> DeltaPosition {
    DeltaPosition { text: text.text.len() as u64, thought: text.thought.len() as u64 }
}

/// Merges a delta into the last one, unless a thought would move before the text that it follows.
fn append(merged: &mut Vec<Delta>, delta: Delta) {
    match merged.last_mut() {
        Some(last) if last.turn == delta.turn && (last.text.is_empty() || delta.thought.is_empty()) => {
            last.thought.push_str(&delta.thought);
            last.text.push_str(&delta.text);
        }
        _ => merged.push(delta),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delta(turn: u32, thought: &str, text: &str) -> Delta {
        Delta { turn, thought: thought.to_owned(), text: text.to_owned(), ..Delta::default() }
    }

    #[test]
    fn deltas_are_merged_in_order() {
        let mut merged = Vec::new();
        let deltas =
            [(1, "a", ""), (1, "b", ""), (1, "c", "1"), (1, "", "2"), (1, "d", "3"), (1, "", "4"), (2, "", "5")];
        for (turn, thought, text) in deltas {
            append(&mut merged, delta(turn, thought, text));
        }
        assert_eq!(merged, [delta(1, "abc", "12"), delta(1, "d", "34"), delta(2, "", "5")]);
    }
}
