//! Deltas: shows the watchers of a task a model's answer while the model writes it.
//!
//! Deltas may get lost; only the report carries the whole answer. A secret that the model writes in one interval is removed; one
//! that comes in two is not recognised here, only in the report.

use std::{convert::Infallible, time::Duration};

use redial_proto::{Delta, TaskId, subjects};
use redial_queue::Queue;
use redial_tools::{Secrets, Watchers};
use tokio::sync::mpsc;

/// Deltas of this interval are published together: otherwise a fast model would flood NATS.
const INTERVAL: Duration = Duration::from_millis(50);
/// Deltas that may wait to be published; more than that are dropped.
const CAPACITY: usize = 1024;

/// Publishes the deltas of one attempt to the watchers of its task.
pub(crate) struct DeltaPublisher {
    queue: Queue,
    subject: String,
    secrets: Secrets,
    receiver: mpsc::Receiver<Delta>,
    /// Merged, in order; to be published next.
    merged: Vec<Delta>,
}

impl DeltaPublisher {
    /// The publisher, and the handle through which a model sends deltas to it.
    pub(crate) fn new(queue: &Queue, tenant: &str, task: TaskId, secrets: Secrets) -> (Watchers, Self) {
        let (sender, receiver) = mpsc::channel(CAPACITY);
        // A full channel means that the model writes faster than NATS takes it.
        let watchers = Watchers::new(move |delta| drop(sender.try_send(delta)));
        let subject = subjects::task_deltas(tenant, task);
        (watchers, Self { queue: queue.clone(), subject, secrets, receiver, merged: Vec::new() })
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
        loop {
            match self.receiver.recv().await {
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
            // Removed only after the publish: if this future is dropped meanwhile, nothing was sent.
            if let Err(error) = self.queue.publish(&self.subject, &*delta).await {
                tracing::debug!(%error, "Dropped a delta");
            }
            self.merged.remove(0);
        }
    }
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
        Delta { turn, thought: thought.to_owned(), text: text.to_owned() }
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
