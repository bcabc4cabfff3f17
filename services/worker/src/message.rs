//! A message of the job stream, which may hold several jobs: it is acknowledged once all of them are claimed or given back.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use redial_queue::Delivery;

/// A message that goes back is delivered again after this: a claim that is refused at once must not go round in circles.
const AGAIN: Duration = Duration::from_secs(1);

/// A message, shared by its jobs. It is answered once all of them have said how they fared.
#[derive(Clone)]
pub(crate) struct PulledMessage(Arc<Shared>);

struct Shared {
    delivery: Delivery,
    goes_back: AtomicBool,
}

impl PulledMessage {
    pub(crate) fn new(delivery: Delivery) -> Self {
        Self(Arc::new(Shared { delivery, goes_back: AtomicBool::new(false) }))
    }

    /// Takes note that a dispatcher has answered for this job: its lease guards it from here on.
    pub(crate) async fn claimed(self) {
        self.end().await;
    }

    /// Gives the message back to the stream: no dispatcher has answered for this job.
    pub(crate) async fn hand_back(self) {
        self.0.goes_back.store(true, Ordering::Relaxed);
        self.end().await;
    }

    async fn end(self) {
        if let Some(Shared { delivery, goes_back }) = Arc::into_inner(self.0) {
            if goes_back.into_inner() { delivery.nak(AGAIN).await } else { delivery.ack().await }
        }
    }
}
