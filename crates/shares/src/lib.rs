//! What is finite is shared by those who ask for it, by tenants above all, so that nobody takes what another one needs.
//!
//! [`Shares`] are permits, of which nobody has more than half. A [`FairQueue`] holds what waits to be worked on. Both serve those
//! who ask in turn.

mod fair_queue;
mod shares;
mod turns;

pub use self::{
    fair_queue::FairQueue,
    shares::{Share, Shares},
};
