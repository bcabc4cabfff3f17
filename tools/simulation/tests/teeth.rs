//! The simulation finds each bug of the protocol that is let in.

use redial_simulation::{Bug, Run, find};

/// Each bug is found within so many histories; most of them within a hundred.
const HISTORIES: u64 = 200_000;

#[test]
fn every_bug_is_found() {
    let mut missed = Vec::new();
    for bug in Bug::ALL {
        let run = Run { seed: 1, histories: HISTORIES, threads: 1, bug: Some(bug) };
        match find(&run) {
            Some((n, violation)) => println!("{bug:?}: history {n}: {violation}"),
            None => missed.push(bug),
        }
    }
    assert!(missed.is_empty(), "not found within {HISTORIES} histories: {missed:?}");
}
