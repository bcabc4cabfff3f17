//! Tools that tests can observe and control.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use redial_proto::JobRef;
use redial_worker::{Context, Tool};
use serde_json::{Map, Value};
use tokio::sync::{Semaphore, mpsc};

use crate::{
    dispatcher::{Dispatcher, RunningWorker},
    within,
};

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Started,
    /// The tool's future was dropped, before or after its end.
    Dropped,
}

struct DropGuard(mpsc::UnboundedSender<Event>);

impl Drop for DropGuard {
    fn drop(&mut self) {
        let _ = self.0.send(Event::Dropped);
    }
}

/// Makes a tool that never ends, and sends an event when it starts and when it is dropped.
pub(crate) fn stuck() -> (Tool, mpsc::UnboundedReceiver<Event>) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let tool = Tool::new("stuck", move |_: Map<String, Value>| {
        let sender = sender.clone();
        async move {
            sender.send(Event::Started).unwrap();
            let _guard = DropGuard(sender);
            std::future::pending::<()>().await;
        }
    });
    (tool, receiver)
}

/// A running call of the tool [`stuck`].
pub(crate) struct StuckCall {
    pub(crate) worker: RunningWorker,
    pub(crate) job: JobRef,
    pub(crate) events: mpsc::UnboundedReceiver<Event>,
}

/// Starts a worker and a call, and waits until the call runs.
pub(crate) async fn start_stuck(dispatcher: &mut Dispatcher) -> StuckCall {
    let (stuck, mut events) = stuck();
    let worker = dispatcher.worker(4, [stuck]).await;
    let job = dispatcher.submit("stuck").await;
    assert_eq!(within(5, events.recv()).await, Some(Event::Started));
    StuckCall { worker, job, events }
}

/// Counts the running calls of a tool, and lets a test end them.
#[derive(Clone)]
pub(crate) struct Gate {
    running: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
    open: Arc<Semaphore>,
}

/// Makes a tool that waits at a gate before it ends.
pub(crate) fn gated(name: &str) -> (Tool, Gate) {
    let gate = Gate { running: Arc::default(), most: Arc::default(), open: Arc::new(Semaphore::new(0)) };
    let inner = gate.clone();
    let tool = Tool::new(name, move |_: Map<String, Value>| {
        let gate = inner.clone();
        async move { gate.pass().await }
    });
    (tool, gate)
}

impl Gate {
    /// Waits until the gate is opened for one more call.
    pub(crate) async fn pass(&self) {
        self.most.fetch_max(self.running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        self.open.acquire().await.unwrap().forget();
        self.running.fetch_sub(1, Ordering::SeqCst);
    }

    pub(crate) fn open(&self, calls: usize) {
        self.open.add_permits(calls);
    }

    pub(crate) fn running(&self) -> usize {
        self.running.load(Ordering::SeqCst)
    }

    pub(crate) fn most(&self) -> usize {
        self.most.load(Ordering::SeqCst)
    }

    pub(crate) async fn until_running(&self, calls: usize) {
        while self.running() != calls {
            tokio::task::yield_now().await;
        }
    }
}

/// Makes a tool that returns its arguments and its context.
pub(crate) fn echo_context() -> Tool {
    Tool::new("echo_context", async |context: Context, arguments: Map<String, Value>| {
        serde_json::json!({
            "arguments": arguments,
            "attempt": context.attempt,
            "key": context.idempotency_key,
            "traceparent": context.traceparent,
            "timeout_ms": context.timeout.as_millis(),
        })
    })
}

/// Makes a tool with an output of the given size.
pub(crate) fn with_output_of(bytes: usize) -> Tool {
    Tool::new("with_output_of", move |_: Map<String, Value>| async move { "x".repeat(bytes - 2) })
}
