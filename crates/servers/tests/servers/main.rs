//! Servers as processes: start, crash, restart, refusals, and what is left of them.

#![expect(clippy::unwrap_used, reason = "a test")]

mod nats;
mod orphans;
mod postgres;
