//! Conversations: follow-up tasks, one at a time; roles; parallel calls; long ones.

use redial_proto::{Role, ToolEffect};
use redial_test_stack::{Reply, ScriptedHttp};
use redial_worker::Tool;
use serde_json::{Value, json};

use super::fixture::{Fixture, agent, answer, book_tool, calls, http_tools, roles, says, task};

const QUICK_READ: &str = "effect = \"read\"\nretry = { initial = \"1ms\", cap = \"1ms\" }";

#[tokio::test]
async fn a_follow_up_sees_the_whole_conversation() {
    let fixture = Fixture::open(vec![book_tool()]).await;
    fixture.small([calls(&[("book", r#"{"departure_city":"Rome","seats":2}"#)]), says("Booked."), says("For two.")]);
    let mut first = task("book Rome", agent());
    first.conversation = Some("rome".into());
    let id = fixture.stack.task(&first).await;
    fixture.stack.task_ended(id).await;
    first.input = "for how many?".into();
    let id = fixture.stack.task(&first).await;
    let report = fixture.stack.task_ended(id).await;
    assert_eq!(answer(&report), "For two.");
    assert_eq!(roles(&fixture.seen(2)), ["system", "user", "assistant", "tool", "assistant", "user"]);
    let stored: Vec<(i32, String)> =
        sqlx::query_as("SELECT seq, role FROM messages WHERE conversation = 'rome' ORDER BY seq")
            .fetch_all(fixture.stack.db())
            .await
            .unwrap();
    let wanted = ["system", "user", "assistant", "tool", "assistant", "user", "assistant"];
    assert_eq!(stored, (1..).zip(wanted.map(str::to_owned)).collect::<Vec<_>>());
    fixture.close().await;
}

#[tokio::test]
async fn tasks_of_one_conversation_run_one_after_the_other() {
    let fixture = Fixture::open(vec![book_tool()]).await;
    fixture.small([says("done")]);
    let mut ids = Vec::new();
    for n in 0..6 {
        let mut one = task(&format!("number {n}"), agent());
        one.conversation = Some("busy".into());
        ids.push(fixture.stack.task(&one).await);
    }
    for id in &ids {
        assert_eq!(answer(&fixture.stack.task_ended(*id).await), "done");
    }
    let order: Vec<String> =
        sqlx::query_scalar("SELECT content FROM messages WHERE conversation = 'busy' AND role = 'user' ORDER BY seq")
            .fetch_all(fixture.stack.db())
            .await
            .unwrap();
    assert_eq!(order, (0..6).map(|n| format!("number {n}")).collect::<Vec<_>>());
    let last = fixture.seen(5);
    assert_eq!(last.len(), 1 + 6 + 5, "each task saw all earlier ones with their answers: {last:?}");
    fixture.close().await;
}

#[tokio::test]
async fn parallel_calls_are_answered_in_their_order() {
    let server = ScriptedHttp::start().await;
    let busy = Reply::status(503);
    server.script("/gone", [Reply::status(404).body("no such hotel")]);
    server.script("/flaky", [busy.clone(), busy, Reply::json("2")]);
    server.script("/fast", [Reply::json("3")]);
    let fixture = Fixture::open(http_tools(&server, &["gone", "flaky", "fast"], QUICK_READ)).await;
    fixture.small([calls(&[("gone", "{}"), ("flaky", "{}"), ("fast", "{}")]), says("all three")]);
    let report = fixture.run("go").await;
    assert_eq!(answer(&report), "all three");
    let seen = fixture.seen(1);
    let asked: Vec<_> = seen[2]["tool_calls"].as_array().unwrap().iter().map(|call| call["id"].clone()).collect();
    let answered: Vec<_> = seen[3..].iter().map(|message| message["tool_call_id"].clone()).collect();
    assert_eq!(asked, answered);
    assert_eq!((&seen[4]["content"], &seen[5]["content"]), (&json!("2"), &json!("3")));
    assert!(seen[3]["content"].as_str().unwrap().contains("business_rule"));
    let attempts: Vec<i32> = fixture.calls_of(report.task.task).await.into_iter().map(|call| call.3).collect();
    assert_eq!(attempts, [1, 3, 1]);
    fixture.close().await;
}

#[tokio::test]
async fn a_huge_result_is_cut_and_the_rest_can_be_read() {
    let text: String = (0..20_000).flat_map(|n: u32| [n.to_string(), " ".to_owned()]).collect();
    let huge = move |_: serde_json::Map<String, Value>| {
        let text = text.clone();
        async move { text }
    };
    let fixture = Fixture::open(vec![Tool::new("huge", huge).effect(ToolEffect::Read)]).await;
    fixture.small([
        calls(&[("huge", "{}")]),
        calls(&[("read_result", r#"{"call_id":"c3_1","offset":5000}"#)]),
        says("read"),
    ]);
    let report = fixture.run("go").await;
    assert_eq!(answer(&report), "read");
    let shown = fixture.seen(1).last().unwrap()["content"].as_str().unwrap().len();
    assert!((8_000..=16_384).contains(&shown), "{shown}");
    let offered: Vec<Value> = fixture.body(1)["tools"].as_array().unwrap().clone();
    assert!(offered.iter().any(|tool| tool["function"]["name"] == "read_result"), "{offered:?}");
    let piece = fixture.seen(2).last().unwrap()["content"].as_str().unwrap().to_owned();
    assert!(piece.contains("1250 1251"), "{}", &piece[..200]);
    let whole = report.messages.iter().find(|message| message.message.role == Role::Tool).unwrap();
    assert!(whole.message.content.len() > 100_000, "the record contains all of it");
    fixture.close().await;
}
