//! Every invariant holds in random histories, and every mutation of the protocol violates one.

use redial_simulation::{Invariant, Mutation, Plan, Run, describe, play, size_of};

/// Fewer in a debug build; `./dev simulate` plays a million.
const HISTORIES: u64 = if cfg!(debug_assertions) { 50_000 } else { 1_000_000 };
/// Each mutation is detected within this number of histories; most of them within a hundred.
const ENOUGH: u64 = 200_000;

#[test]
fn every_invariant_holds_in_every_history() {
    let tally =
        play(&Run { seed: 1, histories: HISTORIES, mutation: None }).unwrap_or_else(|failed| panic!("{failed}"));
    println!("{tally}");
    // A state that is never reached is not tested.
    assert!(tally.calls[4..8].iter().all(|count| *count > HISTORIES / 50), "too few calls end in some state: {tally}");
    assert!(tally.tasks[2..].iter().all(|count| *count > HISTORIES / 200), "too few tasks end in some state: {tally}");
    assert!(tally.with_tasks > HISTORIES / 20 && tally.calm > HISTORIES / 4, "{tally}");
}

#[test]
fn a_history_that_fails_is_shrunk_to_a_few_moves_and_logged() {
    let mutation = Some(Mutation::CancelNotGuardedAtIngest);
    let failed = play(&Run { seed: 2_000, histories: 10_000, mutation }).unwrap_err();
    let (whole, small) = (Plan::new(failed.seed, size_of(failed.seed)), &failed.shortest);
    assert_eq!(failed.violation.invariant, Invariant::NothingAfterCancel);
    assert!(small.moves.len() < 30 && small.moves.len() * 2 < whole.moves.len(), "{} moves", small.moves.len());
    let log = &failed.log;
    assert!(log.last().unwrap().contains("NothingAfterCancel"), "{}", log.join("\n"));
    assert_eq!(describe(small, mutation), *log, "a plan always gives the same history");
}

#[test]
fn every_mutation_is_detected() {
    let mut missed = Vec::new();
    for mutation in Mutation::ALL {
        match play(&Run { seed: 1, histories: ENOUGH, mutation: Some(*mutation) }) {
            Err(failed) => println!("{mutation:?}: seed {}: {}", failed.seed, failed.violation),
            Ok(_) => missed.push(mutation),
        }
    }
    assert!(missed.is_empty(), "not detected within {ENOUGH} histories: {missed:?}");
}
