//! Tasks in the tables, on a real Postgres: a fresh database for each test.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail anywhere")]

mod advancing;
mod calls;
mod due;
mod erasing;
mod fixture;
mod functions;
mod inbox;
mod naming;
mod pages;
mod partitions;
mod planning;
mod reading;
mod reporting;
mod retention;
mod rooms;
mod serialising;
mod submitting;
