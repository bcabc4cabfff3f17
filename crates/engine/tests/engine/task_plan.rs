//! Plans of tasks whose tools and models come and go: histories, and what is planned in each.

mod play;

use play::Play;

#[test]
fn every_history_goes_as_it_is_told() {
    let told: Vec<String> = include_str!("task_plan/histories.txt").split("\n\n").map(Play::of).collect();
    insta::assert_snapshot!(told.join("\n\n"));
}
