//! Contexts that do not fit into a message.

use redial_proto::{AgentSpec, TaskState, estimate};

use super::fixture::{Fixture, agent, book_tool, says, task};

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
        let answer: Option<String> = sqlx::query_scalar("SELECT answer FROM tasks WHERE id = $1")
            .bind(id.0)
            .fetch_one(fixture.stack.db())
            .await
            .unwrap();
        assert_eq!(answer.as_deref(), Some(says));
    }
    let seen = fixture.seen(1);
    let contents: Vec<&str> = seen.iter().map(|message| message["content"].as_str().unwrap()).collect();
    assert_eq!(super::fixture::roles(&seen), ["system", "user", "assistant", "user"]);
    assert!(contents[1] == novels[0] && contents[3] == novels[1], "something was cut");
    assert!(contents.iter().map(|text| estimate::tokens(text)).sum::<usize>() >= 1_000_000);
    // Checks that each turn can be put together again to the letter.
    fixture.close().await;
}
