//! Conversations: one task at a time, each sees those before it; long results, and contexts that do not fit into a message.

use redial_proto::{AgentSpec, Role, TaskState, ToolEffect, estimate};
use redial_worker::Tool;
use serde_json::Value;

use super::fixture::{Fixture, agent, answer, book_tool, calls, roles, says, task};

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
    let order = "SELECT content FROM messages WHERE conversation = 'busy' AND role = 'user' ORDER BY seq";
    let order: Vec<String> = fixture.stack.values(order).await;
    assert_eq!(order, (0..6).map(|n| format!("number {n}")).collect::<Vec<_>>());
    let last = fixture.seen(5);
    assert_eq!(last.len(), 1 + 6 + 5, "each task saw all earlier ones with their answers: {last:?}");
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
        calls("", &[("huge", "{}")]),
        calls("", &[("read_result", r#"{"call_id":"c3_1","offset":5000}"#)]),
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

/// A text of at least so many bytes, of which no part is like another.
fn novel(name: &str, bytes: usize) -> String {
    let mut text = String::with_capacity(bytes + 32);
    for n in 0.. {
        if text.len() >= bytes {
            break;
        }
        text.push_str(&format!("{name}, sentence {n}.\n"));
    }
    text
}

#[tokio::test]
async fn a_context_of_a_million_tokens_reaches_the_model_to_the_letter() {
    let fixture = Fixture::open(vec![book_tool()]).await;
    let reader = AgentSpec { context_tokens: 1_100_000, ..agent() };
    let novels = [novel("one", 1_800_000), novel("two", 1_800_000)];
    fixture.small([says("I have read it."), says("I have read both.")]);
    for (input, says) in novels.iter().zip(["I have read it.", "I have read both."]) {
        let mut read = task(input, reader.clone());
        read.conversation = Some("library".into());
        let id = fixture.stack.task(&read).await;
        fixture.stack.task_is(id, TaskState::is_terminal).await;
        // A report of the task is several messages.
        assert_eq!(fixture.stack.value::<String>(&format!("SELECT answer FROM tasks WHERE id = '{id}'")).await, says);
    }
    let seen = fixture.seen(1);
    let contents: Vec<&str> = seen.iter().map(|message| message["content"].as_str().unwrap()).collect();
    assert_eq!(roles(&seen), ["system", "user", "assistant", "user"]);
    assert!(contents[1] == novels[0] && contents[3] == novels[1], "something was cut");
    assert!(contents.iter().map(|text| estimate::tokens(text)).sum::<usize>() >= 1_000_000);
    // Checks that each turn can be put together again to the letter.
    fixture.close().await;
}
