//! The short queue: a tool that nobody has, a pool without workers, a long outage and a wiped store cost the others
//! nothing, and every call still ends.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking, too")]

#[path = "short_queue/ends.rs"]
mod ends;
#[path = "short_queue/fixture.rs"]
mod fixture;
#[path = "short_queue/packs.rs"]
mod packs;
#[path = "short_queue/recovery.rs"]
mod recovery;
#[path = "short_queue/serving.rs"]
mod serving;
#[path = "short_queue/stopping.rs"]
mod stopping;
#[path = "short_queue/window.rs"]
mod window;
