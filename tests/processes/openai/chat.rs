//! Chat completions, and errors.

use serde_json::json;

use super::fixture::{calls, says, seen};

#[tokio::test]
async fn completions_run_to_the_end_or_to_functions_of_the_client() {
    let replies = [
        calls("I book it.", &[("book", json!({"city": "Rome"}))]),
        says("Booked."),
        says("Streamed."),
        says("Later."),
        calls("", &[("ask_user", json!({"question": "Where?"}))]),
        calls("", &[("ask_user", json!({"question": "When?"}))]),
        says("Done."),
        says("On."),
    ];
    let Some(seen) = seen("chat.py", replies).await else { return };
    let last = seen[3]["messages"].as_array().unwrap();
    assert!(last.iter().any(|message| message["content"] == "Streamed."), "the conversation goes on: {last:?}");
    let moved = seen[7]["messages"].as_array().unwrap().last().unwrap()["content"].as_str().unwrap().to_owned();
    assert!(moved.contains("Assistant: Hi.") && moved.ends_with("Go on."), "{moved}");
}

/// What cannot be carried out is said in OpenAI's form.
#[tokio::test]
async fn every_bad_request_names_the_parameter_and_what_is_allowed() {
    seen("errors.py", [says("Hello.")]).await;
}
