//! Responses.

use serde_json::json;

use super::fixture::{calls, says, seen};

#[tokio::test]
async fn a_response_streams_is_read_again_and_continues_on_another_gateway() {
    let book = || calls("I book it.", &[("book", json!({"city": "Rome"}))]);
    let replies = [book(), says("Booked."), book(), says("Booked again."), says("Hello."), says("In the background.")];
    let Some(seen) = seen("responses.py", replies).await else { return };
    let last = seen[4]["messages"].as_array().unwrap();
    assert_eq!(last[0]["content"], "You book trips.\n\nAnswer in one word.", "{last:?}");
    assert!(last.iter().any(|message| message["content"] == "Booked again."), "the conversation goes on: {last:?}");
}

#[tokio::test]
async fn functions_of_the_client_are_called_and_answered() {
    let ask = |question: &str| ("ask_user", json!({"question": question}));
    let replies = [
        calls("", &[ask("Where?"), ("book", json!({"city": "Rome"})), ask("When?")]),
        calls("", &[ask("Sure?")]),
        says("Done."),
        calls("", &[ask("Where?")]),
        says("Stateless."),
    ];
    let Some(seen) = seen("functions.py", replies).await else { return };
    let results: Vec<_> = seen[1]["messages"].as_array().unwrap().iter().filter(|one| one["role"] == "tool").collect();
    assert_eq!(results.len(), 3, "{results:?}");
    assert_eq!(results[0]["content"], "\"Rome\"");
    assert_eq!(results[2]["content"], r#"{"day":"Monday"}"#);
}

#[tokio::test]
async fn a_conversation_is_continued_by_its_name() {
    let replies = ["Hello Ada.", "You are Ada.", "Welcome.", "I do not know."].map(says);
    let Some(seen) = seen("conversation.py", replies).await else { return };
    let holds =
        |n: usize, text: &str| seen[n]["messages"].as_array().unwrap().iter().any(|message| message["content"] == text);
    assert!(holds(1, "Hello Ada.") && holds(2, "Hello Ada.") && !holds(3, "Hello Ada."), "{seen:?}");
}

#[tokio::test]
async fn a_tool_that_failed_and_a_function_that_nobody_answers_are_told() {
    let replies = [
        calls("", &[("book", json!({"city": "Atlantis"}))]),
        says("There is no flight."),
        calls("", &[("ask_user", json!({"question": "Where?"}))]),
        says("Nobody answered."),
    ];
    seen("failures.py", replies).await;
}
