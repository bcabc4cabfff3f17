//! How often models were right, and which places in arguments are corrected: the same live and rolled up.

use chrono::{DurationRound as _, TimeDelta};
use redial_proto::ErrorClass;
use redial_store::{
    Pass, Time,
    stats::{ModelStats, ModelSums, ModelsBy, ModelsQuestion, Places, RolledUp, What},
};
use uuid::Uuid;

use super::{fixture::Fixture, made::Made};

fn question(by: ModelsBy, since: Time) -> ModelsQuestion {
    ModelsQuestion { by, since, until: None, model: None, tool: None, agent: None }
}

async fn models(fixture: &Fixture, question: &ModelsQuestion) -> ModelStats {
    fixture.own().model_stats(question).await.unwrap()
}

async fn places(fixture: &Fixture, tool: &str, since: Time) -> Places {
    fixture.own().places(tool, since, None).await.unwrap()
}

/// Returns the counts of calls: all, right at once, repaired, wrong, corrected in one, two and three or more turns.
const fn figures(sums: &ModelSums) -> [u64; 7] {
    let [one, two, three] = sums.corrected;
    [sums.calls, sums.right_at_once, sums.repaired, sums.wrong, one, two, three]
}

fn wrong(tool: &str, at: Time) -> Made {
    Made::new(tool, at).failed("refused", ErrorClass::InvalidArguments)
}

#[tokio::test]
async fn a_correction_counts_once_it_succeeds_under_the_turns_that_it_took() {
    let fixture = Fixture::empty().await;
    let at = fixture.begin;
    let call = |tool: &str, task, turn| Made::new(tool, at).in_task(task, turn, 1);
    let wrong = |tool: &str, task, turn| wrong(tool, at).in_task(task, turn, 1);
    // Right at the first, second, third, fourth and fifth time, and never.
    for turns in 0..5 {
        let task = Uuid::now_v7();
        for turn in 1..=turns {
            fixture.add(wrong("book", task, turn)).await;
        }
        fixture.add(call("book", task, turns + 1)).await;
    }
    let gave_up = Uuid::now_v7();
    for turn in 1..=3 {
        fixture.add(wrong("book", gave_up, turn)).await;
    }
    // Repaired in code; down, which says nothing of the arguments; without a task.
    let repaired = || Made::new("find", at).repaired_at("/city", "key_name");
    fixture.add(repaired().in_task(Uuid::now_v7(), 1, 1)).await;
    let down = Made::new("find", at).failed("failed", ErrorClass::Unavailable);
    fixture.add(down.in_task(Uuid::now_v7(), 1, 1)).await;
    fixture.add(repaired()).await;
    // Calls of a turn correct those of the turn before, one each: then nothing is left that another one could correct.
    let task = Uuid::now_v7();
    for (turn, index) in [(1, 1), (1, 2), (2, 1), (2, 2), (2, 3), (3, 1)] {
        let made = if turn == 1 { wrong("rent", task, turn) } else { call("rent", task, turn) };
        fixture.add(made.in_task(task, turn, index)).await;
    }
    // A name that does not exist is corrected under the name that comes next.
    let task = Uuid::now_v7();
    let unknown = Made::new("no_such", at).failed("refused", ErrorClass::UnknownTool);
    fixture.add(unknown.in_task(task, 1, 1)).await;
    fixture.add(call("pay", task, 2)).await;
    let expected = [
        ("(unknown tool)", [1, 0, 0, 1, 0, 0, 0]),
        ("book", [18, 1, 0, 5, 1, 1, 2]),
        ("find", [2, 0, 1, 0, 0, 0, 0]),
        ("pay", [1, 0, 0, 0, 1, 0, 0]),
        ("rent", [6, 2, 0, 2, 2, 0, 0]),
    ];
    let asked = question(ModelsBy::Tool, at);
    let live = models(&fixture, &asked).await.groups;
    fixture.roll_up(3).await;
    let rolled = models(&fixture, &asked).await.groups;
    assert_eq!(live, rolled);
    let found = rolled.iter().map(|(group, sums)| (group.tool.as_deref().unwrap(), figures(sums)));
    assert_eq!(found.collect::<Vec<_>>(), expected);
}

#[tokio::test]
async fn figures_belong_to_the_model_and_the_agent_of_the_turn_and_to_its_tenant() {
    let fixture = Fixture::empty().await;
    let (at, task) = (fixture.begin, Uuid::now_v7());
    let usage = r#"{"usage": {"input_tokens": 10, "output_tokens": 2, "cost_micros": 7}}"#;
    let turn = |tool: &str, turn| Made { reply: Some(usage.to_owned()), ..Made::new(tool, at) }.in_task(task, turn, 0);
    fixture.add(turn("model-small", 1)).await;
    fixture.add(Made::new("book", at).in_task(task, 1, 1)).await;
    fixture.add(turn("model-large", 2)).await;
    fixture.add(wrong("book", at + TimeDelta::hours(1)).in_task(task, 2, 1)).await;
    let elsewhere = Made { tenant: "acme".to_owned(), ..Made::new("book", at) };
    fixture.add(elsewhere.in_task(Uuid::now_v7(), 1, 1)).await;

    fixture.roll_up(100).await;
    let by_model = models(&fixture, &question(ModelsBy::Model, fixture.begin)).await.groups;
    let line = |(group, sums): &(redial_store::stats::ModelGroup, ModelSums)| {
        (group.model.clone().unwrap(), sums.right_at_once, sums.wrong, sums.usage.answers, sums.usage.cost_micros)
    };
    let seen: Vec<_> = by_model.iter().map(line).collect();
    assert_eq!(seen, [("large".to_owned(), 0, 1, 1, 7), ("small".to_owned(), 1, 0, 1, 7)]);
    let only = ModelsQuestion { model: Some("large".to_owned()), ..question(ModelsBy::Hour, fixture.begin) };
    let hours = models(&fixture, &only).await.groups;
    assert_eq!(hours.iter().map(|(_, sums)| sums.wrong).collect::<Vec<_>>(), [0, 1]);
}

#[tokio::test]
async fn a_place_counts_once_for_each_call_with_any_index() {
    let fixture = Fixture::empty().await;
    let at = fixture.begin;
    let broken = |pointers: &[&str]| wrong("book", at).broken_at(pointers, "type");
    fixture.add(broken(&["/guests/0/name", "/guests/12/name", "/date"])).await;
    fixture.add(broken(&["/guests/1/name"])).await;
    fixture.add(Made::new("book", at).repaired_at("/date", "key_name")).await;
    fixture.add(Made { tenant: "acme".to_owned(), ..broken(&["/date"]) }).await;
    fixture.add(wrong("other", at).broken_at(&["/date"], "type")).await;
    // Too long to be read, and not what this version can read: they are calls, and no places.
    fixture.add(broken(&[&"/x".repeat(9_000)])).await;
    fixture.add(Made { details: Some("{}".to_owned()), ..wrong("book", at) }).await;

    let live = places(&fixture, "book", fixture.begin).await.places;
    fixture.roll_up(2).await;
    let rolled = places(&fixture, "book", fixture.begin).await.places;
    assert_eq!(live, rolled);
    let lines: Vec<_> =
        rolled.iter().map(|line| (line.what, line.pointer.as_str(), line.rule.as_str(), line.calls)).collect();
    assert_eq!(
        lines,
        [
            (What::Error, "/guests/*/name", "type", 2),
            (What::Error, "/date", "type", 1),
            (What::Repair, "/date", "key_name", 1)
        ]
    );
}

#[tokio::test]
async fn days_are_sums_of_hours_whatever_was_rolled_up() {
    let fixture = Fixture::empty().await;
    let midnight = fixture.begin.duration_trunc(TimeDelta::days(1)).unwrap();
    let first = midnight - TimeDelta::days(40);
    // The first day begins at noon; most of these days are empty.
    for (index, hours) in [12, 23, 24, 30, 47, 48, 25 * 24, 26 * 24 - 1, 39 * 24 + 7].into_iter().enumerate() {
        let tool = ["book", "search"][index % 2];
        fixture.add(wrong(tool, first + TimeDelta::hours(hours)).in_task(Uuid::now_v7(), 1, 1)).await;
    }
    let questions = || {
        let times = [(0, 0), (6, 40 * 24), (24, 30 * 24), (29, 40), (36, 26 * 24), (26 * 24, 0)];
        let bys = [ModelsBy::Tool, ModelsBy::Day, ModelsBy::Hour, ModelsBy::Agent];
        bys.into_iter().flat_map(move |by| {
            times.map(|(since, until)| ModelsQuestion {
                until: (until > 0).then(|| first + TimeDelta::hours(until)),
                ..question(by, first + TimeDelta::hours(since))
            })
        })
    };
    let answers = async || {
        let mut answers = Vec::new();
        for question in questions() {
            answers.push(models(&fixture, &question).await.groups);
        }
        answers
    };
    let live = answers().await;
    let whole: [u64; 3] =
        [live[0].iter().map(|(_, sums)| sums.wrong).sum(), live[2].len() as u64, live[6].len() as u64];
    assert_eq!(whole, [9, 2, 5], "nine calls of two tools on five days");
    // The days of what is in the queue are read of what was counted.
    let mut pass = Pass::default();
    while fixture.store.roll_up(&mut pass, 2).await.unwrap() != RolledUp::Done {
        assert_eq!(answers().await, live);
    }
    // A call is counted late.
    fixture.add(wrong("book", first + TimeDelta::hours(26 * 24 + 1)).in_task(Uuid::now_v7(), 1, 1)).await;
    let live = answers().await;
    assert_eq!(live[6].len(), 6);
    fixture.roll_up(2).await;
    assert_eq!(answers().await, live);
}
