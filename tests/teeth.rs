//! Teeth: would the checker notice? Each of these bugs breaks the protocol in one place, and the checker must accuse it
//! by the invariant that it breaks; the same scenario without the bug must be clean.
//!
//! The bugs are not in the programs. A bug of the store is a guard that is taken out of a statement on its way to
//! Postgres; a bug of a dispatcher or a worker is a message that is changed on its way to or from NATS. So what runs
//! here is what is shipped, there is no switch that a shipped program could have on, and a bug that stands in no
//! statement any more is an error of this test.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests fail by panicking, too")]

#[path = "teeth/bugs.rs"]
mod bugs;
#[path = "end_to_end/by_hand.rs"]
#[expect(dead_code, reason = "other tests need more of it")]
mod by_hand;
#[path = "teeth/calls.rs"]
mod calls;
#[path = "teeth/messages.rs"]
mod messages;
#[path = "teeth/stage.rs"]
mod stage;
#[path = "teeth/statements.rs"]
mod statements;
#[path = "teeth/tasks.rs"]
mod tasks;
#[path = "teeth/wire.rs"]
mod wire;

use std::{collections::BTreeSet, panic::AssertUnwindSafe};

use futures_util::{FutureExt, StreamExt, stream};
use redial_testkit::Invariant;

use crate::bugs::{BUGS, Bug};

/// Scenarios played at once: most of the time they wait.
const AT_ONCE: usize = 6;

#[tokio::test(flavor = "multi_thread")]
async fn the_checker_catches_every_seeded_bug() {
    let runs = BUGS.iter().flat_map(|bug| [(bug, false), (bug, true)]);
    let caught: Vec<(&Bug, BTreeSet<Invariant>)> = stream::iter(runs)
        .map(async |(bug, seeded)| {
            let played = AssertUnwindSafe(bug.play(seeded)).catch_unwind().await;
            let order = if seeded { "with the bug" } else { "in good order" };
            let accusations = played.unwrap_or_else(|_| panic!("{}: the scenario failed {order}", bug.name));
            seeded.then(|| (bug, accusations.into_iter().map(|accusation| accusation.invariant).collect()))
        })
        .buffered(AT_ONCE)
        .filter_map(async |caught| caught)
        .collect()
        .await;
    println!("{}", table(&caught));
    let missed: Vec<&str> =
        caught.iter().filter(|(bug, by)| !by.contains(&bug.caught_by)).map(|(bug, _)| bug.name).collect();
    assert!(missed.is_empty(), "not caught as they should be: {missed:#?}");
}

fn table(caught: &[(&Bug, BTreeSet<Invariant>)]) -> String {
    let width = caught.iter().map(|(bug, _)| bug.name.len()).max().unwrap_or_default();
    let mut table = format!("{:<width$}  caught by", "seeded bug");
    for (bug, by) in caught {
        let by: Vec<String> = by.iter().map(|invariant| format!("{invariant:?}")).collect();
        table.push_str(&format!("\n{:<width$}  {}", bug.name, by.join(", ")));
    }
    table
}
