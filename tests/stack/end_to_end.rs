//! Calls on real servers: a fresh database and a nats-server for each test, with dispatchers and workers in this process.
//! Tests that kill processes are in `chaos.rs`, `outages.rs` and `processes.rs`.

mod actions;
mod audit;
pub(crate) mod by_hand;
mod cancelling;
mod checker;
mod claims;
mod dead_letters;
pub(crate) mod erasing;
pub(crate) mod fixture;
mod identities;
mod intake;
mod lists;
mod newer;
mod outputs;
mod payloads;
mod pending;
mod pinning;
mod redrives;
mod redriving;
mod registering;
mod reports;
mod retention;
mod retries;
mod returned;
mod schemas;
mod sets_of_tools;
mod submitting;
mod tenants;
mod tokens;
