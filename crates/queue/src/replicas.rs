//! What a connection knows of the replicas of streams; `streams/replicas.rs` gives them their streams.

use std::sync::atomic::{AtomicBool, AtomicU32};

/// The setting, and what was said about it.
#[derive(Default)]
pub(crate) struct Replicas {
    /// 0: streams stay as they are, and new ones have one replica.
    pub(crate) wanted: AtomicU32,
    /// A stream could not get them, which is logged once.
    pub(crate) refused: AtomicBool,
}
