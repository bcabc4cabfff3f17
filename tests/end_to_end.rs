//! Calls on real servers: a fresh database and a nats-server for each test, with dispatchers and workers in this process.
//! Tests that kill processes are in `chaos.rs`, `outages.rs` and `processes.rs`.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests fail by panicking, too")]

#[path = "end_to_end/actions.rs"]
mod actions;
#[path = "end_to_end/audit.rs"]
mod audit;
#[path = "end_to_end/by_hand.rs"]
mod by_hand;
#[path = "end_to_end/cancelling.rs"]
mod cancelling;
#[path = "end_to_end/checker.rs"]
mod checker;
#[path = "end_to_end/claims.rs"]
mod claims;
#[path = "end_to_end/dead_letters.rs"]
mod dead_letters;
#[path = "end_to_end/erasing.rs"]
mod erasing;
#[path = "end_to_end/fixture.rs"]
mod fixture;
#[path = "end_to_end/identities.rs"]
mod identities;
#[path = "end_to_end/intake.rs"]
mod intake;
#[path = "end_to_end/lists.rs"]
mod lists;
#[path = "end_to_end/newer.rs"]
mod newer;
#[path = "end_to_end/outputs.rs"]
mod outputs;
#[path = "end_to_end/payloads.rs"]
mod payloads;
#[path = "end_to_end/pending.rs"]
mod pending;
#[path = "end_to_end/pinning.rs"]
mod pinning;
#[path = "end_to_end/redrives.rs"]
mod redrives;
#[path = "end_to_end/redriving.rs"]
mod redriving;
#[path = "end_to_end/registering.rs"]
mod registering;
#[path = "end_to_end/reports.rs"]
mod reports;
#[path = "end_to_end/retention.rs"]
mod retention;
#[path = "end_to_end/retries.rs"]
mod retries;
#[path = "end_to_end/returned.rs"]
mod returned;
#[path = "end_to_end/schemas.rs"]
mod schemas;
#[path = "end_to_end/sets_of_tools.rs"]
mod sets_of_tools;
#[path = "end_to_end/statistics.rs"]
mod statistics;
#[path = "end_to_end/submitting.rs"]
mod submitting;
#[path = "end_to_end/tenants.rs"]
mod tenants;
#[path = "end_to_end/tokens.rs"]
mod tokens;
