//! The model gets feedback on wrong calls, except where a repair suffices.

use redial_proto::TaskDecision;
use serde_json::{Value, json};

use super::fixture::{Fixture, answer, book_tool, calls, feedback, roles, says};

#[tokio::test]
async fn a_wrong_call_is_corrected_after_feedback() {
    let fixture = Fixture::open(vec![book_tool()]).await;
    fixture.small([
        calls(&[("book", r#"{"departure_city":"Mars","seats":2}"#)]),
        calls(&[("book", r#"{"departure_city":"Rome","seats":2}"#)]),
        says("Booked."),
    ]);
    let report = fixture.run("two seats from Mars").await;
    assert_eq!(answer(&report), "Booked.");
    let error = feedback(&fixture.seen(1));
    assert_eq!((&error["status"], &error["class"]), (&json!("error"), &json!("invalid_arguments")));
    assert_eq!(error["details"][0]["path"], "/departure_city");
    assert_eq!(error["details"][0]["sent"], "Mars");
    assert_eq!(error["details"][0]["allowed"], "a city on Earth");
    assert_eq!(error["corrections_left"], 3);
    assert_eq!(roles(&fixture.seen(2)), ["system", "user", "assistant", "tool", "assistant", "tool"]);
    let calls: Vec<_> =
        fixture.calls_of(report.task.task).await.into_iter().map(|(_, _, state, n)| (state, n)).collect();
    assert_eq!(calls, [("failed".to_owned(), 1), ("succeeded".to_owned(), 1)]);
    assert_eq!((report.task.turns, report.task.tool_calls, report.task.corrections), (3, 2, 1));
    let usage = report.task.usage;
    assert_eq!((usage.input_tokens, usage.output_tokens, usage.cost_micros), (300, 60, Some(3 * (100 + 200))));
    fixture.close().await;
}

#[tokio::test]
async fn invalid_arguments_unknown_tools_and_malformed_text_are_refused() {
    let fixture = Fixture::open(vec![book_tool()]).await;
    fixture.small([
        calls(&[("book", r#"{"departure_city":["Rome"],"seats":9}"#)]),
        calls(&[("bok", r#"{"departure_city":"Rome","seats":1}"#)]),
        calls(&[("book", r#"{"departure_city":"Rome","seats":1"#)]),
        calls(&[("book", r#"{"departure_city":"Rome","seats":1}"#)]),
        says("Booked."),
    ]);
    let report = fixture.run("go").await;
    assert_eq!(answer(&report), "Booked.");
    let first = feedback(&fixture.seen(1));
    assert_eq!(first["details"].as_array().unwrap().len(), 2, "all field errors at once: {first}");
    let second = feedback(&fixture.seen(2));
    assert_eq!(second["class"], "unknown_tool");
    assert!(second["message"].as_str().unwrap().contains("did you mean \"book\"?"), "{second}");
    let third = feedback(&fixture.seen(3));
    assert_eq!(third["class"], "malformed_arguments");
    assert_eq!(third["sent"], r#"{"departure_city":"Rome","seats":1<<<HERE>>>"#);
    assert_eq!(third["example"]["departure_city"], "Rome", "{third}");
    // Text that is not JSON is never sent back to a provider.
    for message in fixture.seen(3).iter().filter(|message| message["role"] == "assistant") {
        let arguments = message["tool_calls"][0]["function"]["arguments"].as_str().unwrap();
        assert!(serde_json::from_str::<Value>(arguments).unwrap().is_object(), "{arguments}");
    }
    let states: Vec<_> =
        fixture.calls_of(report.task.task).await.into_iter().map(|(.., state, n)| (state, n)).collect();
    let refused = ("refused".to_owned(), 0);
    assert_eq!(states, [refused.clone(), refused.clone(), refused, ("succeeded".to_owned(), 1)]);
    fixture.close().await;
}

#[tokio::test]
async fn a_repair_costs_no_turn_and_is_recorded() {
    let fixture = Fixture::open(vec![book_tool()]).await;
    fixture.small([calls(&[("Book", "```json\n{'departureCity': 'Rome', 'seats': \"2\",}\n```")]), says("Booked.")]);
    let report = fixture.run("go").await;
    assert_eq!(answer(&report), "Booked.");
    assert_eq!(feedback(&fixture.seen(1)), json!({"booked": "Rome", "seats": 2}));
    let repairs: Vec<String> = report
        .steps
        .iter()
        .flat_map(|step| &step.decisions)
        .filter_map(|decision| match decision {
            TaskDecision::Run { repairs, .. } => Some(repairs),
            _ => None,
        })
        .flatten()
        .map(|repair| repair.kind.to_string())
        .collect();
    for kind in ["tool_name", "code_fence", "quotes", "trailing_comma", "key_name", "type"] {
        assert!(repairs.iter().any(|repair| repair == kind), "{kind} is not in {repairs:?}");
    }
    let stored: String = sqlx::query_scalar("SELECT repairs::text FROM calls WHERE task_id = $1 AND call_index = 1")
        .bind(report.task.task.0)
        .fetch_one(fixture.stack.db())
        .await
        .unwrap();
    assert!(stored.contains("departureCity"), "{stored}");
    fixture.close().await;
}
