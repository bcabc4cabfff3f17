//! One history: tables, streams, processes and a network, all in memory and by plan.
//!
//! ItemKind decides is the engine itself. ItemKind surrounds it is modelled as small as its promises: a transaction of Postgres
//! happens whole or not at all, and its guards are those of `crates/store/sql`; NATS loses, doubles, reorders and
//! forgets; workers and dispatchers die anywhere between two steps.

mod advance;
mod check;
mod claim;
mod clock;
mod database;
mod dispatcher;
mod drain;
mod effects;
mod event;
mod ids;
mod ingest;
mod invent;
mod lease;
mod ledger;
mod messages;
mod moves;
mod network;
mod report;
mod run;
mod shutdown;
mod state;
mod sweep;
mod tables;
mod transaction;
mod worker;

pub(crate) use self::{run::Ended, state::World};
