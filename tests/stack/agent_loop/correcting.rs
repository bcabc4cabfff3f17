//! The model gets feedback on wrong calls, except where a repair suffices.

use redial_proto::{AgentSpec, ErrorClass, Policy, TaskCode, TaskDecision, TaskState, ToolEffect};
use redial_testkit::{Reply, ScriptedHttp};
use redial_worker::Tool;
use serde_json::{Value, json};

use super::fixture::{BIG, Fixture, agent, answer, book_tool, calls, feedback, http_tools, roles, says};

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

#[tokio::test]
async fn a_tool_can_switch_repairs_off() {
    let fixture = Fixture::open(vec![book_tool().effect(ToolEffect::Unsafe).exact_arguments()]).await;
    fixture.small([
        calls(&[("book", r#"{"departure_city":"Rome","seats":"2"}"#)]),
        calls(&[("book", r#"{"departure_city":"Rome","seats":2}"#)]),
        says("Booked."),
    ]);
    let report = fixture.run("go").await;
    assert_eq!(answer(&report), "Booked.");
    assert_eq!(feedback(&fixture.seen(1))["details"][0]["path"], "/seats");
    fixture.close().await;
}

#[tokio::test]
async fn an_outage_of_a_service_costs_no_correction() {
    let server = ScriptedHttp::start().await;
    let down = Reply::status(503).body("upstream db-7.internal.example is down, token=canary-4711");
    server.script("/stock", [down.clone(), down.clone(), Reply::json("{\"left\":3}")]);
    server.script("/broken", [down]);
    let lines = "effect = \"read\"\nretry = { initial = \"1ms\", cap = \"1ms\", max_attempts = 3 }";
    let fixture = Fixture::open(http_tools(&server, &["stock", "broken"], lines)).await;
    fixture.small([calls(&[("stock", "{}")]), calls(&[("broken", "{}")]), says("3 left.")]);
    let report = fixture.run("how many?").await;
    assert_eq!(answer(&report), "3 left.");
    assert_eq!(feedback(&fixture.seen(1)), json!({"left": 3}));
    let calls: Vec<_> = fixture.calls_of(report.task.task).await.into_iter().map(|(.., state, n)| (state, n)).collect();
    assert_eq!(calls, [("succeeded".to_owned(), 3), ("failed".to_owned(), 3)]);
    let error = feedback(&fixture.seen(2));
    assert_eq!(error["class"], "unavailable");
    assert_eq!(report.task.corrections, 0);
    let seen = fixture.everything_seen();
    for secret in ["canary-4711", "db-7", "internal.example", "127.0.0.1"] {
        assert!(!seen.contains(secret), "{secret} reached the model");
    }
    let retries = report.steps.iter().filter(|step| matches!(step.input, redial_proto::TaskInput::Retrying { .. }));
    assert_eq!(retries.count(), 4, "each retry is on record with its time");
    fixture.close().await;
}

#[tokio::test]
async fn the_fallback_model_does_not_see_the_failed_calls() {
    let fixture = Fixture::open(vec![book_tool()]).await;
    fixture.small([calls(&[("book", r#"{"departure_city":"Mars","seats":2}"#)]), says("Booked by the big one.")]);
    fixture.server.script(BIG, [calls(&[("book", r#"{"departure_city":"Rome","seats":2}"#)])]);
    let agent =
        AgentSpec { policy: Policy::Fallback, fallback_model: Some("big".into()), fallback_after: 0, ..agent() };
    let report = fixture.run_as("go", agent).await;
    assert_eq!(answer(&report), "Booked by the big one.");
    let paths: Vec<String> = fixture.server.requests().into_iter().map(|request| request.path).collect();
    assert_eq!(paths, [super::fixture::SMALL, BIG, super::fixture::SMALL]);
    assert_eq!(roles(&fixture.seen(1)), ["system", "user"], "the failed call is hidden");
    let on_record = fixture.calls_of(report.task.task).await;
    assert_eq!(on_record[0].2, "failed");
    assert!(report.messages.iter().any(|message| message.message.class == Some(ErrorClass::InvalidArguments)));
    fixture.close().await;
}

#[tokio::test]
async fn a_repeated_failing_call_does_not_run_even_in_the_next_task() {
    let fixture = Fixture::open(vec![book_tool()]).await;
    let mars = [("book", r#"{"departure_city":"Mars","seats":2}"#)];
    let again = [("book", r#"{"seats":2, "departure_city":"Mars"}"#)];
    fixture.small([calls(&mars), calls(&again), says("no"), calls(&again), says("still no")]);
    let mut first = super::fixture::task("go", agent());
    first.conversation = Some("c".into());
    let id = fixture.stack.task(&first).await;
    fixture.stack.task_ended(id).await;
    let error = feedback(&fixture.seen(2));
    assert_eq!(error["class"], "repeated_call");
    assert!(error["message"].as_str().unwrap().contains("a city on Earth"), "the earlier error is quoted: {error}");
    first.input = "try again".into();
    let id = fixture.stack.task(&first).await;
    assert_eq!(answer(&fixture.stack.task_ended(id).await), "still no");
    assert_eq!(feedback(&fixture.seen(4))["class"], "repeated_call");
    let attempts: i64 =
        sqlx::query_scalar("SELECT count(*) FROM attempts a JOIN calls c ON c.id = a.call_id WHERE tool = 'book'")
            .fetch_one(fixture.stack.db())
            .await
            .unwrap();
    assert_eq!(attempts, 1);
    fixture.close().await;
}

#[tokio::test]
async fn a_polling_tool_may_repeat_its_call() {
    let look = |_: serde_json::Map<String, Value>| async { "pending" };
    let fixture = Fixture::open(vec![Tool::new("look", look).effect(ToolEffect::Read).polling()]).await;
    let one = || calls(&[("look", "{}")]);
    fixture.small([one(), one(), one(), one(), one(), says("done")]);
    let report = fixture.run("wait for it").await;
    assert_eq!((answer(&report), report.task.tool_calls), ("done", 5));
    fixture.close().await;
}

#[tokio::test]
async fn without_corrections_left_the_model_gives_a_last_answer() {
    let fixture = Fixture::open(vec![book_tool()]).await;
    let wrong = |n: u32| calls(&[("book", &format!(r#"{{"departure_city":"Rome","seats":{n}}}"#))]);
    fixture.small([wrong(6), wrong(7), wrong(8), wrong(9), says("I could not book it.")]);
    let report = fixture.run("go").await;
    assert_eq!((report.task.state, report.task.code), (TaskState::Failed, Some(TaskCode::CorrectionsExhausted)));
    assert_eq!(report.task.answer.as_deref(), Some("I could not book it."));
    let last = fixture.body(4);
    assert!(last.get("tools").is_none(), "the last turn has no tools");
    assert_eq!(roles(&fixture.seen(4)).last(), Some(&"user"));
    assert_eq!(fixture.asked(), 5);
    fixture.close().await;
}
