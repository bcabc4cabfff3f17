//! Mutation tests: the simulation detects each mutation of the protocol.

use redial_simulation::{Mutation, Run, find};

/// Each mutation is detected within this number of histories; most of them within a hundred.
const HISTORIES: u64 = 200_000;

#[test]
fn every_mutation_is_detected() {
    let mut missed = Vec::new();
    for mutation in Mutation::ALL {
        let run = Run { seed: 1, histories: HISTORIES, threads: 1, mutation: Some(mutation) };
        match find(&run) {
            Some((n, violation)) => println!("{mutation:?}: history {n}: {violation}"),
            None => missed.push(mutation),
        }
    }
    assert!(missed.is_empty(), "not detected within {HISTORIES} histories: {missed:?}");
}
