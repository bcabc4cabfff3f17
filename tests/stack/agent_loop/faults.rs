//! Restarts, replays and notices.

use std::time::Duration;

use redial_proto::TaskState;
use redial_test_stack::{Reply, ScriptedHttp, file, until};
use serde_json::{Value, json};

use super::fixture::{Fixture, agent, answer, book_tool, calls, http_tools, says, task};

#[tokio::test]
async fn a_task_survives_the_restart_of_every_dispatcher() {
    let server = ScriptedHttp::start().await;
    server.script("/slow", [Reply::json("{\"done\":true}").after(Duration::from_secs(1))]);
    let mut fixture = Fixture::open(http_tools(&server, &["slow"], "effect = \"unsafe\"")).await;
    fixture.small([calls("", &[("slow", "{}")]), says("done")]);
    let id = fixture.stack.task(&task("go", agent())).await;
    server.arrived(1).await;
    fixture.stack.stop_dispatchers().await;
    fixture.stack.dispatch().await;
    let report = fixture.stack.task_ended(id).await;
    assert_eq!(answer(&report), "done");
    assert_eq!((server.requests().len(), fixture.asked()), (1, 2), "each tool and each turn ran once");
    fixture.close().await;
}

#[tokio::test]
async fn wrong_calls_are_corrected_and_the_saved_record_replays_until_it_is_changed() {
    let fixture = Fixture::open(vec![book_tool()]).await;
    fixture.small([
        calls("", &[("book", r#"{"departure_city":"Mars","seats":2}"#), ("nope", "{}")]),
        calls("", &[("book", "{'departureCity':'Rome','seats':'2'}")]),
        says("Booked."),
    ]);
    let report = fixture.run("go").await;
    assert_eq!((answer(&report), report.task.turns, report.task.tool_calls), ("Booked.", 3, 2));
    let usage = report.task.usage;
    assert_eq!((usage.input_tokens, usage.output_tokens, usage.cost_micros), (300, 60, Some(3 * (100 + 200))));
    let seen = fixture.seen(2);
    let told = seen.iter().filter(|message| message["role"] == "tool").map(|message| &message["content"]);
    let told: Vec<Value> = told.map(|text| serde_json::from_str(text.as_str().unwrap()).unwrap()).collect();
    let by_tool = &told[0]["details"][0];
    assert_eq!((&by_tool["path"], &by_tool["allowed"]), (&json!("/departure_city"), &json!("a city on Earth")));
    assert_eq!((&told[1]["class"], &told[2]), (&json!("unknown_tool"), &json!({"booked": "Rome", "seats": 2})));
    let ended = fixture.calls_of(report.task.task).await.into_iter().map(|(.., state, attempts)| (state, attempts));
    let wanted = [("failed", 1), ("refused", 0), ("succeeded", 1)];
    assert_eq!(ended.collect::<Vec<_>>(), wanted.map(|(state, attempts)| (state.to_owned(), attempts)));
    // By it they are checked again, should the tool be registered with another schema before an attempt.
    assert_eq!(fixture.stack.count("calls WHERE (tool_version IS NULL) = (tool = 'book')").await, 0);
    let repairs = "SELECT repairs::text FROM calls WHERE turn = 2 AND call_index = 1";
    assert!(fixture.stack.value::<String>(repairs).await.contains("departureCity"));
    let run = |arguments: &[&str]| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_redial"));
        command.args(arguments).env("REDIAL_DATABASE_URL", fixture.stack.servers.database_url());
        let output = command.env("REDIAL_NATS_URL", fixture.stack.servers.nats_url()).output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    let (_, record) = run(&["show", &report.task.task.to_string(), "--json"]);
    let changed = ["\"corrections_left\":3", "\"corrections_left\": 3"]
        .iter()
        .fold(record.clone(), |record, left| record.replacen(left, &left.replace('3', "1"), 1));
    for (record, code) in [(record, 0), (changed, 1)] {
        let (exit, told) = run(&["replay", "--file", file("record", &record).to_str().unwrap()]);
        assert_eq!(exit, Some(code), "{told}");
    }
    fixture.close().await;
}

#[tokio::test]
async fn watchers_get_notices() {
    let fixture = Fixture::open(vec![book_tool()]).await;
    fixture.small([says("done").after(Duration::from_millis(300))]);
    let id = fixture.stack.task(&task("go", agent())).await;
    let mut notices =
        fixture.stack.queue().subscribe(&redial_proto::subjects::task_events("default", id)).await.unwrap();
    fixture.stack.task_ended(id).await;
    until("the notice of the end", async || {
        let notice = notices.next().await;
        let notice: redial_proto::TaskNotice = serde_json::from_slice(&notice).unwrap();
        (notice.state == TaskState::Succeeded).then_some(())
    })
    .await;
    fixture.close().await;
}
