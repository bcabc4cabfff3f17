//! Replies that end at the model's limit of tokens, and what providers do not tell.

use redial_proto::{AgentSpec, Budgets, CutOff, TaskCode, TaskState};
use serde_json::json;

use super::fixture::{Fixture, agent, answer, book_tool, calls, cut_off, feedback, says};

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

#[tokio::test]
async fn half_a_call_does_not_run_and_is_told_as_cut_off() {
    let fixture = Fixture::open(vec![book_tool()]).await;
    for half in ["", r#"{"departure_city":"Rome","#] {
        let function = json!({"name": "book", "arguments": half});
        let call = json!([{"id": "1", "type": "function", "function": function}]);
        let asked = fixture.asked();
        fixture.small([
            cut_off(&json!({"role": "assistant", "content": null, "tool_calls": call})),
            calls(&[("book", r#"{"departure_city":"Rome","seats":1}"#)]),
            says("booked"),
        ]);
        let report = fixture.run("go").await;
        assert_eq!(answer(&report), "booked");
        let told = feedback(&fixture.seen(asked + 1));
        assert_eq!(told["class"], "malformed_arguments");
        assert!(told["message"].as_str().unwrap().contains("cut off at the limit of tokens"), "{told}");
        assert!(told["guidance"].as_str().unwrap().contains("shorter"), "{told}");
        let states: Vec<String> = fixture.calls_of(report.task.task).await.into_iter().map(|call| call.2).collect();
        assert_eq!(states, ["refused", "succeeded"]);
    }
    fixture.close().await;
}

#[tokio::test]
async fn what_a_provider_does_not_tell_is_estimated_and_counts() {
    let fixture = Fixture::open(vec![book_tool()]).await;
    let book = json!({"name": "book", "arguments": r#"{"departure_city":"Rome","seats":1}"#});
    let silent = json!({"role": "assistant", "tool_calls": [{"id": "1", "type": "function", "function": book}]});
    fixture.small([cut_off(&silent), says("Enough.")]);
    let budgets = Budgets { tokens: Some(40), ..Budgets::default() };
    let report = fixture.run_as("go", AgentSpec { budgets, ..agent() }).await;
    assert_eq!((report.task.state, report.task.code), (TaskState::Failed, Some(TaskCode::TokensExhausted)));
    let usage = report.task.usage;
    assert!(usage.estimated_input_tokens > 40 && usage.estimated_output_tokens > 10, "{usage:?}");
    // The last answer told what it cost: 100 and 20.
    assert_eq!(usage.input_tokens, usage.estimated_input_tokens + 100);
    assert_eq!(usage.output_tokens, usage.estimated_output_tokens + 20);
    let estimated = usage.estimated_input_tokens + 10 * usage.estimated_output_tokens;
    assert_eq!(usage.estimated_cost_micros, estimated, "one dollar and ten dollars for a million");
    assert_eq!((usage.cost_micros, usage.turns_without_price), (Some(estimated + 300), 0));
    fixture.close().await;
}
