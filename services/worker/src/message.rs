//! A message of the job stream, which may hold several jobs: it is acknowledged once all of them are claimed or given back.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use redial_queue::Delivery;

/// A message, shared by its jobs.
#[derive(Clone)]
pub(crate) struct PulledMessage(Arc<Shared>);

struct Shared {
    delivery: Delivery,
    /// Some of its jobs were not claimed, and not given back either.
    unclaimed: AtomicBool,
}

impl PulledMessage {
    pub(crate) fn new(delivery: Delivery) -> Self {
        Self(Arc::new(Shared { delivery, unclaimed: AtomicBool::new(false) }))
    }

    /// A dispatcher has answered for this job, and its lease guards it from here on. The last job of the message acknowledges it,
    /// unless another one of it was not claimed: then it is delivered again.
    pub(crate) async fn claimed(self) {
        if let Some(Shared { delivery, unclaimed }) = Arc::into_inner(self.0)
            && !unclaimed.into_inner()
        {
            delivery.ack().await;
        }
    }

    /// No dispatcher has answered for this job. NATS delivers the message again; at once if `hand_back`.
    pub(crate) async fn unclaimed(self, hand_back: bool) {
        self.0.unclaimed.store(true, Ordering::Relaxed);
        if hand_back && let Some(Shared { delivery, .. }) = Arc::into_inner(self.0) {
            delivery.nak(Duration::ZERO).await;
        }
    }
}
