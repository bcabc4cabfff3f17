//! Statistics on a real Postgres: what is rolled up equals what the calls say, whatever happens meanwhile.

#![expect(clippy::unwrap_used, reason = "a test may fail anywhere")]

mod expected;
mod fixture;
mod made;
mod models;
mod rolling;
mod unknown;
