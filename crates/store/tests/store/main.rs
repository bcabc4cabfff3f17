//! The store on a real Postgres: a database of its own for each test.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail anywhere")]

mod fixture;
mod guards;
#[path = "../../../../tests/shared/new_task.rs"]
mod new_task;
mod tokens;

/// Tasks, and the calls that belong to them or to none.
mod tasks {
    mod advancing;
    mod calls;
    mod due;
    mod erasing;
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
}

/// Statistics: what is rolled up equals what the calls say, whatever happens meanwhile.
mod stats {
    mod fixture;
    mod made;
    mod models;
    mod rolling;
    mod unknown;
}
