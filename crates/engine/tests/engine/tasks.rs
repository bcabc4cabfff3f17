//! The state machine of tasks: histories of events, and what follows from each.

mod play;
mod random;
mod record;

use play::Play;

#[test]
fn every_history_goes_as_it_is_told() {
    let told: Vec<String> = include_str!("tasks/histories.txt").split("\n\n").map(Play::of).collect();
    insta::assert_snapshot!(told.join("\n\n"));
}
