//! Deltas: lets watchers of a task see a model's answer grow. Lossy by design: whole is only what the report carries.

use std::{convert::Infallible, time::Duration};

use redial_proto::{Delta, TaskId, subjects};
use redial_queue::Queue;
use redial_tools::Watchers;
use tokio::sync::mpsc;

/// What is written within this time is published together: a fast model would flood NATS otherwise.
const GATHER: Duration = Duration::from_millis(50);
/// Pieces that may wait; what is written beyond that is not shown.
const ROOM: usize = 1024;

/// Pieces of one attempt's answer, on their way to the watchers of its task.
pub(crate) struct Deltas {
    queue: Queue,
    subject: String,
    receiver: mpsc::Receiver<Delta>,
    /// To be published, in this order.
    gathered: Vec<Delta>,
}

impl Deltas {
    /// The two ends: where pieces are handed in, and what publishes them.
    pub(crate) fn of(queue: &Queue, task: TaskId) -> (Watchers, Self) {
        let (sender, receiver) = mpsc::channel(ROOM);
        // A full channel is the sign of a flood.
        let watchers = Watchers::new(move |delta| drop(sender.try_send(delta)));
        let subject = subjects::task_deltas(task);
        (watchers, Self { queue: queue.clone(), subject, receiver, gathered: Vec::new() })
    }

    /// Publishes while an attempt runs, and what is left at its end.
    pub(crate) async fn during<T>(mut self, attempt: impl Future<Output = T>) -> T {
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
                Some(delta) => append(&mut self.gathered, delta),
                None => std::future::pending().await,
            }
            tokio::time::sleep(GATHER).await;
            self.flush().await;
        }
    }

    async fn flush(&mut self) {
        while let Ok(delta) = self.receiver.try_recv() {
            append(&mut self.gathered, delta);
        }
        while let Some(delta) = self.gathered.first() {
            // Dropped in the middle, nothing was sent; so it is forgotten only afterwards.
            if let Err(error) = self.queue.publish(&self.subject, delta).await {
                tracing::debug!("a piece of an answer is not shown: {error}");
            }
            self.gathered.remove(0);
        }
    }
}

/// Adds a piece to the last one, unless that would put a thought before the text that it followed.
fn append(gathered: &mut Vec<Delta>, delta: Delta) {
    match gathered.last_mut() {
        Some(last) if last.turn == delta.turn && (last.text.is_empty() || delta.thought.is_empty()) => {
            last.thought.push_str(&delta.thought);
            last.text.push_str(&delta.text);
        }
        _ => gathered.push(delta),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delta(turn: u32, thought: &str, text: &str) -> Delta {
        Delta { turn, thought: thought.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn pieces_are_put_together_in_their_order() {
        let mut gathered = Vec::new();
        let pieces =
            [(1, "a", ""), (1, "b", ""), (1, "c", "1"), (1, "", "2"), (1, "d", "3"), (1, "", "4"), (2, "", "5")];
        for (turn, thought, text) in pieces {
            append(&mut gathered, delta(turn, thought, text));
        }
        assert_eq!(gathered, [delta(1, "abc", "12"), delta(1, "d", "34"), delta(2, "", "5")]);
    }
}
