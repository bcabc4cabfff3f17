//! Background loops of a role. A panic in one of them is a bug that nobody would notice: the process would run on without
//! its sweeper, say. So it stops the role with an error, and a supervisor starts the process again.
//!
//! A panic in a user's tool is no such bug; it is a failed attempt, and `redial-tools` catches it.

use std::{
    any::Any,
    panic::AssertUnwindSafe,
    sync::{Arc, OnceLock},
};

use futures_util::FutureExt;
use tokio::task::JoinHandle;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// Loops that are tracked together. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Loops {
    tracker: TaskTracker,
    alarm: Arc<Alarm>,
}

/// A loop that panicked: a bug in Redial.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the loop {name:?} panicked: {message}")]
pub struct LoopPanic {
    pub name: &'static str,
    pub message: String,
}

#[derive(Debug, Default)]
struct Alarm {
    first: OnceLock<LoopPanic>,
    raised: CancellationToken,
}

impl Loops {
    /// Returns loops that are tracked apart from these; a panic in one of them stops the same role.
    #[must_use]
    pub fn group(&self) -> Self {
        Self { tracker: TaskTracker::new(), alarm: Arc::clone(&self.alarm) }
    }

    /// Starts a loop, or a piece of its work.
    pub fn spawn(&self, name: &'static str, run: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
        let alarm = Arc::clone(&self.alarm);
        self.tracker.spawn(async move {
            // What the loop shares with others is behind locks that survive a panic, and the role stops.
            if let Err(panic) = AssertUnwindSafe(run).catch_unwind().await {
                alarm.raise(LoopPanic { name, message: message(&*panic) });
            }
        })
    }

    /// Returns the tracker for work whose panic must not stop the role, because somebody outside may cause it: the
    /// answer to one request.
    pub const fn tracker(&self) -> &TaskTracker {
        &self.tracker
    }

    /// Returns the first loop that panicked, of this group or of another one of the role.
    pub fn panic(&self) -> Option<LoopPanic> {
        self.alarm.first.get().cloned()
    }

    /// Waits until a loop panics, of this group or of another one of the role.
    pub async fn panicked(&self) -> LoopPanic {
        loop {
            self.alarm.raised.cancelled().await;
            if let Some(panic) = self.panic() {
                return panic;
            }
        }
    }

    /// Lets [`Loops::wait`] return once the loops of this group have ended.
    pub fn close(&self) {
        self.tracker.close();
    }

    /// Waits until the loops of this group have ended, after [`Loops::close`].
    pub async fn wait(&self) {
        self.tracker.wait().await;
    }
}

impl Alarm {
    fn raise(&self, panic: LoopPanic) {
        tracing::error!(name = panic.name, message = panic.message, "A background loop panicked; stopping");
        let _ = self.first.set(panic);
        self.raised.cancel();
    }
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_first_loop_that_panics_is_named_and_the_others_end_by_themselves() {
        let loops = Loops::default();
        let (other, stop) = (loops.group(), CancellationToken::new());
        let stopped = stop.clone();
        other.spawn("sweep", async move { stopped.cancelled().await });
        other.spawn("watch", async {}).await.unwrap();
        assert_eq!(loops.panic(), None, "a loop that ends is no panic");

        let number = 7;
        other.spawn("ingest", async move { panic!("number {number}") }).await.unwrap();
        other.spawn("retention", async { panic!("second") }).await.unwrap();
        let panic = loops.panicked().await;
        assert_eq!(panic, LoopPanic { name: "ingest", message: "number 7".to_owned() });
        assert_eq!(panic.to_string(), "the loop \"ingest\" panicked: number 7");
        assert_eq!(other.panic(), Some(panic));
        stop.cancel();
        other.close();
        other.wait().await;
    }

    #[tokio::test]
    async fn an_aborted_loop_and_a_request_that_panics_stop_nothing() {
        let loops = Loops::default();
        let aborted = loops.spawn("sweep", std::future::pending());
        aborted.abort();
        assert!(aborted.await.unwrap_err().is_cancelled());
        assert!(loops.tracker().spawn(async { panic!("on purpose") }).await.unwrap_err().is_panic());
        assert_eq!(loops.panic(), None);
    }
}
