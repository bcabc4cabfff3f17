//! A message of the job stream, which may hold several jobs: it is acknowledged once all of them are claimed or given back.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
    },
    time::Duration,
};

use redial_queue::Delivery;

/// A message, shared by its jobs. What becomes of it is decided by the job that fared worst, once all have said how they fared.
#[derive(Clone)]
pub(crate) struct PulledMessage(Arc<Shared>);

struct Shared {
    delivery: Delivery,
    /// The worst [`Fate`] of its jobs so far.
    worst: AtomicU8,
}

/// What became of one job of a message.
#[repr(u8)]
enum Fate {
    /// A dispatcher has answered for it: acknowledged.
    Claimed,
    /// It can run elsewhere: delivered again at once.
    HandedBack,
    /// No dispatcher answers: delivered again when NATS misses the acknowledgement.
    Unclaimed,
}

impl PulledMessage {
    pub(crate) fn new(delivery: Delivery) -> Self {
        Self(Arc::new(Shared { delivery, worst: AtomicU8::new(Fate::Claimed as u8) }))
    }

    /// A dispatcher has answered for this job, and its lease guards it from here on.
    pub(crate) async fn claimed(self) {
        self.end(Fate::Claimed).await;
    }

    /// This job can run elsewhere.
    pub(crate) async fn hand_back(self) {
        self.end(Fate::HandedBack).await;
    }

    /// No dispatcher has answered for this job, and asking again at once would not help.
    pub(crate) async fn unclaimed(self) {
        self.end(Fate::Unclaimed).await;
    }

    async fn end(self, fate: Fate) {
        self.0.worst.fetch_max(fate as u8, Ordering::Relaxed);
        if let Some(Shared { delivery, worst }) = Arc::into_inner(self.0) {
            let worst = worst.into_inner();
            if worst == Fate::Claimed as u8 {
                delivery.ack().await;
            } else if worst == Fate::HandedBack as u8 {
                delivery.nak(Duration::ZERO).await;
            }
        }
    }
}
