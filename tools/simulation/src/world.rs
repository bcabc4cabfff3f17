//! One history: the tables, streams, processes and network that a plan runs in, all in memory.
//!
//! The engine decides, as it does in production. Everything around it is modelled only as far as its promises go: a
//! Postgres transaction happens completely or not at all, with the guards of `crates/store/sql`; NATS loses, duplicates
//! and reorders messages, and can lose its store; workers and dispatchers die between any two steps.

mod advance;
mod answers;
mod check;
mod claim;
mod clock;
mod database;
mod dispatcher;
mod drain;
mod effects;
mod event;
mod feed;
mod feeder;
mod ids;
mod ingest;
mod invent;
mod lease;
mod ledger;
mod messages;
mod moves;
mod network;
mod registry;
mod report;
mod run;
mod shutdown;
mod state;
mod sweep;
mod tables;
mod transaction;
mod worker;

pub(crate) use self::{run::Ended, state::World};
