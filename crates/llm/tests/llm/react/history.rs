//! Texts that go back to the model in the history.

use proptest::prelude::*;
use redial_llm::react;
use redial_proto::{Message, MessageCall, Role, TurnRequest};

use super::{asked, read};

/// Returns the text of the model's message in the history.
fn shown(thought: &str, content: &str, calls: Vec<MessageCall>) -> String {
    let message = Message { thought: Some(thought.to_owned()), calls, ..Message::text(Role::Assistant, content) };
    let request = TurnRequest { messages: vec![Message::text(Role::User, "hi"), message], ..asked() };
    let messages = react::chat(&request).messages;
    messages.into_iter().find(|message| message.role == Role::Assistant).unwrap().content
}

fn call(arguments: &str) -> MessageCall {
    MessageCall { id: "c1".to_owned(), tool: "get_weather".to_owned(), arguments: arguments.to_owned() }
}

#[test]
fn labels_in_thoughts_are_marked() {
    let thought = "First:\nAction: fly\n**Action Input:** {}\nThe Action: later\n行动：飞";
    let text = shown(thought, "", vec![call("{\"city\":\"Rome\"}")]);
    let marked = "First:\n| Action: fly\n| **Action Input:** {}\nThe Action: later\n| 行动：飞";
    assert_eq!(text, format!("Thought: {marked}\nAction: get_weather\nAction Input: {{\"city\":\"Rome\"}}"));
    assert_eq!(shown("Answer: 41", "42", Vec::new()), "Thought: | Answer: 41\nAnswer: 42");
}

fn line() -> impl Strategy<Value = String> {
    prop_oneof![
        proptest::sample::select(vec![
            "Action: fly",
            "Action Input: {\"a\":1}",
            "**Answer:** 1",
            "观察：x",
            "Thought: y",
            "- Error: z"
        ])
        .prop_map(str::to_owned),
        "[a-z {}\":]{0,12}",
    ]
}

proptest! {
    /// Whatever a model thought, its message in the history is read as the call that it made.
    #[test]
    fn thoughts_in_the_history_are_no_actions(lines in proptest::collection::vec(line(), 0..6), city in "[a-zA-Z京 \"\\\\{}:]{0,12}") {
        let arguments = serde_json::json!({"city": city}).to_string();
        let reply = read(&shown(&lines.join("\n"), "", vec![call(&arguments)]));
        prop_assert_eq!(reply.calls.len(), 1, "{:?}", reply);
        prop_assert_eq!(&reply.calls[0].name, "get_weather");
        prop_assert_eq!(&reply.calls[0].arguments, &arguments);
        let reply = read(&shown(&lines.join("\n"), "the answer", Vec::new()));
        prop_assert_eq!(reply.text.as_deref(), Some("the answer"));
    }
}
