//! Corrections, and what is not known: names, usage, columns of older rows.

use chrono::TimeDelta;
use redial_engine::route::{Route, route};
use redial_proto::ErrorClass;
use redial_store::stats::{By, Group, GroupSums};
use uuid::Uuid;

use super::{fixture::Fixture, made::Made};

fn of<'a>(groups: &'a [(Group, GroupSums)], name: &str) -> &'a GroupSums {
    let wanted = Group::Name(name.to_owned());
    &groups.iter().find(|(group, _)| *group == wanted).unwrap().1
}

#[tokio::test]
async fn a_call_after_feedback_is_a_correction_once_for_each_turn_and_tool() {
    use ErrorClass::{BusinessRule, InvalidArguments, Unavailable, UnknownTool};
    let fixture = Fixture::empty().await;
    let (task, other) = (Uuid::now_v7(), Uuid::now_v7());
    let at = fixture.begin;
    let call = |tool: &str, turn, call_index| Made::new(tool, at).in_task(task, turn, call_index);
    let refused =
        |tool: &str, turn, index, class| Made::new(tool, at).failed("refused", class).in_task(task, turn, index);
    let failed =
        |tool: &str, turn, index, class| Made::new(tool, at).failed("failed", class).in_task(task, turn, index);
    for made in [
        call("model-m", 1, 0),
        refused("book", 1, 1, InvalidArguments),
        failed("pay", 1, 2, Unavailable),
        refused("find", 1, 3, InvalidArguments),
        call("model-m", 2, 0),
        // A correction of book that fails again, and another call of it in the same turn: one correction.
        failed("book", 2, 1, BusinessRule),
        call("book", 2, 2),
        // What was not the model's to correct.
        call("pay", 2, 3),
        // The tool was not called in turn 2: still a correction; after a success it is none. A name is corrected by the next
        // call of any tool, here the first one.
        call("find", 3, 1),
        refused("no_such", 3, 2, UnknownTool),
        call("find", 4, 1),
        call("pay", 4, 2),
        // Another task's failures have nothing to do with it.
        Made::new("book", at).in_task(other, 2, 1),
        // A bare call, and one of a model.
        Made::new("book", at),
    ] {
        fixture.add(made).await;
    }
    fixture.roll_up(100).await;
    let groups = fixture.ask(&fixture.question(By::Tool)).await.groups;
    let corrections = |tool| of(&groups, tool).calls.corrections;
    assert_eq!(["book", "find", "pay", "model-m", "(unknown tool)"].map(corrections), [1, 2, 0, 0, 0]);
}

#[test]
fn the_classes_that_models_can_correct_are_those_of_the_engine() {
    for class in ErrorClass::ALL.iter().copied() {
        let feedback = matches!(route(class), Route::Feedback | Route::Unexplained);
        assert_eq!(redial_store::stats::is_correctable(class), feedback, "{class}");
    }
}

#[tokio::test]
async fn an_answer_that_is_too_long_to_be_read_has_an_unknown_price() {
    let fixture = Fixture::empty().await;
    let usage = r#""usage": {"input_tokens": 1, "output_tokens": 2, "cost_micros": 3}"#;
    let (long, huge) = ("x".repeat(200_000), "y".repeat(300_000));
    for text in ["short", &long, &huge] {
        let reply = Some(format!("{{\"text\": \"{text}\", {usage}}}"));
        fixture.add(Made { reply, ..Made::new("model-m", fixture.begin) }).await;
    }
    let groups = fixture.ask(&fixture.question(By::Model)).await.groups;
    let usage = of(&groups, "m").calls.usage;
    assert_eq!((usage.answers, usage.cost_micros, usage.cost_unknown, usage.tokens_unknown), (3, 6, 1, 1));
}

#[tokio::test]
async fn invented_names_do_not_fill_the_tables() {
    let fixture = Fixture::empty().await;
    for n in 0..1_200 {
        let at = fixture.begin + TimeDelta::milliseconds(n);
        let unknown = Made::new(&format!("invented_{n}"), at).failed("refused", ErrorClass::UnknownTool);
        fixture.add(unknown).await;
        fixture.add(Made { tenant: format!("tenant {n}"), ..Made::new("book", at) }).await;
    }
    assert_eq!(fixture.roll_up(500).await, 2_400);
    let rows = "SELECT count(*) FROM stats WHERE kind IN ('call', 'attempt')";
    let rows = fixture.count(rows).await;
    assert!((2_000..=2_010).contains(&rows), "{rows} rows");
    let groups = fixture.ask(&fixture.question(By::Tool)).await.groups;
    let calls = ["(unknown tool)", "book", "(other)"].map(|name| of(&groups, name).calls.calls);
    assert_eq!((calls[0], calls[1] + calls[2]), (1_200, 1_200));
}
