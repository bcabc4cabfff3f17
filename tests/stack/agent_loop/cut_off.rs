//! Replies that end at the model's limit of tokens, and what providers do not tell.

use redial_proto::{AgentSpec, CutOff, TaskCode};
use serde_json::json;

use super::fixture::{Fixture, agent, answer, book_tool, cut_off, says};

const BEGINNING: &str = "The trips that can be booked today leave from Rome, from Oslo and from Turin";

#[tokio::test]
async fn an_answer_that_is_cut_off_is_never_taken_for_a_whole_one() {
    let fixture = Fixture::open(vec![book_tool()]).await;
    let cut = || cut_off(&json!({"role": "assistant", "content": BEGINNING}));
    let with = |cut_off| AgentSpec { cut_off, ..agent() };

    fixture.small([cut(), says("From three cities.")]);
    let report = fixture.run_as("go", with(CutOff::Shorter)).await;
    assert_eq!((answer(&report), report.task.code), ("From three cities.", Some(TaskCode::Answered)));
    assert_eq!(report.task.corrections, 1);

    fixture.small([cut(), says("from Oslo and from Turin, and nowhere else.")]);
    let report = fixture.run_as("go", with(CutOff::Continue)).await;
    assert_eq!(answer(&report), format!("{BEGINNING}, and nowhere else."));
    assert!(fixture.body(3)["tools"].is_null(), "the rest needs no tools");

    fixture.small([cut()]);
    for policy in [CutOff::Accept, CutOff::Shorter] {
        let report = fixture.run_as("go", with(policy)).await;
        assert_eq!((answer(&report), report.task.code), (BEGINNING, Some(TaskCode::AnswerCutOff)));
        assert!(report.task.message.unwrap().contains("cut off at the model's limit of tokens"));
    }
    fixture.close().await;
}
