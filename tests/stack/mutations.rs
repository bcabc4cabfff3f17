//! Mutation tests of the checker. Each mutation breaks the protocol in one place, and the checker must report the
//! invariant that it violates; the same scenario without the mutation must be clean.
//!
//! The programs are the shipped ones. A proxy takes a guard out of a statement on its way to Postgres, as a bug of the
//! store would, or changes a message on its way to or from NATS, as a bug of a dispatcher or a worker would. A mutation
//! that no statement or message matches fails the test.

mod calls;
mod fixture;
mod list;
mod messages;
pub(crate) mod statements;
mod tasks;
pub(crate) mod wire;

use std::{collections::BTreeSet, panic::AssertUnwindSafe};

use futures_util::{FutureExt, StreamExt, stream};
use redial_test_stack::{Invariant, Violation};

use self::{
    fixture::Fixture,
    list::{MUTATIONS, Mutation},
};

/// Scenarios run at once: they wait most of the time.
const AT_ONCE: usize = 6;

#[tokio::test(flavor = "multi_thread")]
#[ignore = "nightly: a run of the whole system for each mutation"]
async fn the_checker_catches_every_mutation() {
    let runs = MUTATIONS.iter().flat_map(|mutation| [(mutation, false), (mutation, true)]);
    let caught: Vec<(&Mutation, BTreeSet<Invariant>)> = stream::iter(runs)
        .map(async |(mutation, mutated)| {
            let played = AssertUnwindSafe(play(mutation, mutated)).catch_unwind().await;
            let order = if mutated { "with the mutation" } else { "without the mutation" };
            let violations = played.unwrap_or_else(|_| panic!("{}: the scenario failed {order}", mutation.name));
            mutated.then(|| (mutation, violations.into_iter().map(|violation| violation.invariant).collect()))
        })
        .buffered(AT_ONCE)
        .filter_map(async |caught| caught)
        .collect()
        .await;
    for (mutation, by) in &caught {
        println!("{}: caught by {by:?}", mutation.name);
    }
    let missed: Vec<&str> = caught
        .iter()
        .filter(|(mutation, by)| !by.contains(&mutation.caught_by))
        .map(|(mutation, _)| mutation.name)
        .collect();
    assert!(missed.is_empty(), "not caught by the invariant that they violate: {missed:#?}");
}

/// Runs a scenario; returns what the checker finds.
async fn play(mutation: &'static Mutation, mutated: bool) -> Vec<Violation> {
    let mut fixture = Fixture::new(mutation, mutated).await;
    (mutation.scenario)(&mut fixture).await;
    fixture.violations().await
}

/// What the mutations violate.
pub(crate) fn violated() -> impl Iterator<Item = Invariant> {
    MUTATIONS.iter().map(|mutation| mutation.caught_by)
}
