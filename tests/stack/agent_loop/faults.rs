//! Restarts, lost streams, and faulty providers.

use std::time::Duration;

use redial_proto::{AgentSpec, CallId, TaskCode, TaskInput, TaskState};
use redial_store::Purpose;
use redial_testkit::{Reply, ScriptedHttp, Stack, unique_path, until};
use redial_worker::Tool;

use super::fixture::{BIG, Fixture, LEASE, agent, answer, book_tool, calls, feedback, http_tools, roles, says, task};

/// A tool over HTTP that takes a second. The requests to its server show how often it ran.
async fn slow_tool() -> (ScriptedHttp, Vec<Tool>) {
    let server = ScriptedHttp::start().await;
    server.script("/slow", [Reply::json("{\"done\":true}").after(Duration::from_secs(1))]);
    let tools = http_tools(&server, &["slow"], "effect = \"unsafe\"");
    (server, tools)
}

#[tokio::test]
async fn a_task_survives_the_restart_of_every_dispatcher() {
    let (server, tools) = slow_tool().await;
    let mut fixture = Fixture::open(tools).await;
    fixture.small([calls(&[("slow", "{}")]), says("done")]);
    let id = fixture.stack.task(&task("go", agent())).await;
    server.arrived(1).await;
    fixture.stack.stop_dispatchers().await;
    fixture.stack.dispatch().await;
    let report = fixture.stack.task_ended(id).await;
    assert_eq!(answer(&report), "done");
    assert_eq!((server.requests().len(), fixture.asked()), (1, 2), "each tool and each turn ran once");
    fixture.close().await;
}

/// A task as a dispatcher leaves it that dies between the commit of a submission and the first step.
fn left_behind(conversation: &str) -> redial_records::NewTask {
    redial_records::NewTask {
        submitted_by: None,
        id: redial_proto::TaskId::generate(),
        tenant: "default".into(),
        conversation: conversation.into(),
        key: None,
        content: None,
        agent: None,
        model: "small".into(),
        language: redial_proto::Language::En,
        spec: serde_json::to_string(&agent()).unwrap(),
        input: "go".into(),
        metadata: std::collections::BTreeMap::new(),
        traceparent: None,
    }
}

#[tokio::test]
async fn a_submitted_task_without_a_first_step_is_started_by_the_next_dispatcher() {
    let mut fixture = Fixture::open(vec![book_tool()]).await;
    fixture.small([says("done")]);
    fixture.stack.stop_dispatchers().await;
    let store = fixture.stack.store(redial_store::Purpose::Dispatch).await;
    let new = left_behind("left");
    store.submit_tasks(std::slice::from_ref(&new)).await.unwrap();
    fixture.stack.dispatch().await;
    assert_eq!(answer(&fixture.stack.task_ended(new.id).await), "done");
    fixture.close().await;
}

#[tokio::test]
async fn a_task_that_postgres_refuses_does_not_hold_up_the_others() {
    let mut fixture = Fixture::open(vec![book_tool()]).await;
    fixture.small([says("done")]);
    fixture.stack.stop_dispatchers().await;
    let refuse = "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no'; END $$;
                  CREATE TRIGGER refuse BEFORE INSERT ON messages
                      FOR EACH ROW WHEN (NEW.conversation = 'bad') EXECUTE FUNCTION refuse()";
    sqlx::raw_sql(refuse).execute(fixture.stack.db()).await.unwrap();
    let store = fixture.stack.store(redial_store::Purpose::Dispatch).await;
    let tasks = ["good", "bad", "other"].map(left_behind);
    store.submit_tasks(&tasks).await.unwrap();
    fixture.stack.dispatch().await;
    assert_eq!(answer(&fixture.stack.task_ended(tasks[0].id).await), "done");
    assert_eq!(answer(&fixture.stack.task_ended(tasks[2].id).await), "done");
    // It stays due, and continues as soon as Postgres accepts it.
    sqlx::raw_sql("DROP TRIGGER refuse ON messages").execute(fixture.stack.db()).await.unwrap();
    assert_eq!(answer(&fixture.stack.task_ended(tasks[1].id).await), "done");
    fixture.close().await;
}

#[tokio::test]
async fn two_dispatchers_share_the_work_on_many_tasks() {
    let mut fixture = Fixture::open(vec![book_tool()]).await;
    fixture.stack.dispatch().await;
    fixture.small([says("done")]);
    let mut ids = Vec::new();
    for n in 0..40 {
        ids.push(fixture.stack.task(&task(&format!("task {n}"), agent())).await);
    }
    for id in ids {
        assert_eq!(answer(&fixture.stack.task_ended(id).await), "done");
    }
    assert_eq!(fixture.asked(), 40, "no turn ran twice");
    fixture.close().await;
}

#[tokio::test]
async fn a_wiped_nats_store_costs_no_turn_and_no_call() {
    let (server, tools) = slow_tool().await;
    let mut stack = Stack::start_own().await;
    stack.lease = LEASE;
    stack.stop_dispatchers().await;
    stack.dispatch().await;
    let mut fixture = Fixture::over(stack, tools).await;
    fixture.stack.redeliver_after(Duration::from_secs(2)).await;
    fixture.small([calls(&[("slow", "{}")]), says("done")]);
    let id = fixture.stack.task(&task("go", agent())).await;
    server.arrived(1).await;
    fixture.stack.servers.kill_nats().await;
    fixture.stack.servers.wipe_nats();
    fixture.stack.servers.start_nats().await;
    let report = fixture.stack.task_ended(id).await;
    assert_eq!(answer(&report), "done");
    assert_eq!((server.requests().len(), fixture.asked()), (1, 2));
    fixture.close().await;
}

#[tokio::test]
async fn a_busy_provider_costs_a_retry_and_no_correction() {
    let fixture = Fixture::open(vec![book_tool()]).await;
    fixture.small([Reply::status(429).header("retry-after-ms", "20"), Reply::status(529), says("done")]);
    let report = fixture.run("go").await;
    assert_eq!(answer(&report), "done");
    assert_eq!((report.task.turns, report.task.corrections, fixture.asked()), (1, 0, 3));
    let retries =
        report.steps.iter().filter(|step| matches!(step.input, TaskInput::Retrying { call_index: 0, .. })).count();
    assert_eq!(retries, 2);
    fixture.close().await;
}

#[tokio::test]
async fn a_refused_model_request_is_a_recorded_internal_error() {
    let fixture = Fixture::open(vec![book_tool()]).await;
    let error = r#"{"error":{"message":"messages.1: bad","type":"invalid_request_error","code":null}}"#;
    fixture.small([Reply::status(400).header("content-type", "application/json").body(error)]);
    let report = fixture.run("remember me").await;
    assert_eq!((report.task.state, report.task.code), (TaskState::Failed, Some(TaskCode::ModelFailed)));
    let turn = sqlx::query_scalar("SELECT id FROM calls WHERE task_id = $1 AND call_index = 0");
    let turn = CallId(turn.bind(report.task.task.0).fetch_one(fixture.stack.db()).await.unwrap());
    let record = fixture.stack.store(Purpose::Audit).await.record(turn).await.unwrap().unwrap();
    assert_eq!(record.line.class.as_deref(), Some("internal"));
    assert!(record.arguments.get().contains("remember me"));
    assert_eq!(fixture.asked(), 1, "a retry would not help");
    fixture.close().await;
}

#[tokio::test]
async fn the_fallback_model_replaces_one_that_cannot_be_reached() {
    let fixture = Fixture::open(vec![book_tool()]).await;
    fixture.small([Reply::status(503)]);
    fixture.server.script(BIG, [says("here")]);
    let report = fixture.run_as("go", AgentSpec { fallback_model: Some("big".into()), ..agent() }).await;
    assert_eq!(answer(&report), "here");
    fixture.close().await;
}

#[tokio::test]
async fn odd_answers_of_a_provider_are_handled() {
    let fixture = Fixture::open(vec![book_tool()]).await;
    let odd = [
        Reply::json("{}"),
        Reply::json(r#"{"choices":[{"message":{"role":"assistant","content":""},"finish_reason":"stop"}]}"#),
        // Two calls with the same id and one without: Redial gives them its own ids.
        Reply::json(
            r#"{"choices":[{"message":{"tool_calls":[
                {"id":"x","function":{"name":"book","arguments":"{\"departure_city\":\"Rome\",\"seats\":1}"}},
                {"id":"x","function":{"name":"book","arguments":"{\"departure_city\":\"Oslo\",\"seats\":1}"}},
                {"function":{"name":"book","arguments":""}}]}}]}"#,
        ),
        says("done"),
    ];
    fixture.small(odd);
    let report = fixture.run("go").await;
    assert_eq!(answer(&report), "done");
    let seen = fixture.seen(3);
    assert_eq!(roles(&seen)[seen.len() - 3..], ["tool", "tool", "tool"]);
    let ids: std::collections::BTreeSet<_> =
        seen.iter().filter_map(|message| message["tool_call_id"].as_str()).collect();
    assert_eq!(ids.len(), 3);
    assert_eq!(feedback(&seen)["class"], "malformed_arguments");
    fixture.close().await;
}

#[tokio::test]
async fn a_recorded_task_replays_without_a_difference() {
    let fixture = Fixture::open(vec![book_tool()]).await;
    fixture.small([
        calls(&[("book", r#"{"departure_city":"Mars","seats":2}"#), ("nope", "{}")]),
        calls(&[("book", "{'departureCity':'Rome','seats':'2'}")]),
        says("Booked."),
    ]);
    let report = fixture.run("go").await;
    assert_eq!(answer(&report), "Booked.");
    let program = env!("CARGO_BIN_EXE_redial");
    let id = report.task.task.to_string();
    let run = |arguments: &[&str]| {
        let output = std::process::Command::new(program)
            .args(arguments)
            .env("REDIAL_NATS_URL", fixture.stack.servers.nats_url())
            .env("REDIAL_DATABASE_URL", fixture.stack.servers.database_url())
            .output()
            .unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, _, stderr) = run(&["replay", &id]);
    assert_eq!(code, Some(0), "{stderr}");
    // A saved record is a regression test: it replays without a difference, and a changed one does not.
    let (_, record, _) = run(&["show", &id, "--json"]);
    let path = unique_path("record");
    std::fs::write(&path, &record).unwrap();
    let file = path.to_str().unwrap();
    let (code, _, stderr) = run(&["replay", "--file", file]);
    assert_eq!(code, Some(0), "{stderr}");
    std::fs::write(&path, record.replace("a city on Earth", "a city on Venus")).unwrap();
    assert_eq!(run(&["replay", "--file", file]).0, Some(0), "the same change everywhere is not a difference");
    std::fs::write(
        &path,
        record.replacen("\"corrections_left\":3", "\"corrections_left\":1", 1).replacen(
            "\"corrections_left\": 3",
            "\"corrections_left\": 1",
            1,
        ),
    )
    .unwrap();
    let (code, stdout, _) = run(&["replay", "--file", file]);
    assert_eq!(code, Some(1), "{stdout}");
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
        let notice = notices.next().await?;
        let notice: redial_proto::TaskNotice = serde_json::from_slice(&notice).unwrap();
        (notice.state == TaskState::Succeeded).then_some(())
    })
    .await;
    fixture.close().await;
}
