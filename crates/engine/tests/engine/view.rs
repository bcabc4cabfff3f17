//! What a model sees of a conversation: valid whatever is stored, within the limits, and as much as fits.

mod conversation;
mod properties;
mod reach;

use std::collections::BTreeSet;

use redial_engine::view::{Limits, READ_RESULT, read_result, read_result_offer, view};
use redial_proto::{Message, Role, StoredMessage};
use serde_json::Value;

use conversation::{assistant, calling, feedback, result, store, system, user};

const ROOMY: Limits = Limits { context_tokens: 32_000, result_bytes: 16_384, bytes: 900_000 };

fn seen(messages: &[StoredMessage], limits: Limits) -> String {
    let (messages, trimmed) = view(messages, &BTreeSet::new(), limits);
    let lines: Vec<String> = messages.iter().map(line).collect();
    format!("{}\n{trimmed:?}", lines.join("\n"))
}

fn line(message: &Message) -> String {
    let calls: Vec<String> = message.calls.iter().map(|c| format!(" [{} {}({})]", c.id, c.tool, c.arguments)).collect();
    let id = message.call_id.as_ref().map(|id| format!(" {id}")).unwrap_or_default();
    format!("{}{id}: {}{}", message.role, message.content, calls.concat())
}

#[test]
fn what_fits_is_shown_as_it_is() {
    let stored = store(vec![
        system("Be brief."),
        user("Weather in Paris?"),
        calling("Let me see.", &[("c3_1", r#"{"city":"Paris"}"#), ("c3_2", r#"{"city":"Rome"}"#)]),
        result("c3_1", r#"{"sky":"clear"}"#),
        result("c3_2", r#"{"sky":"grey"}"#),
        assistant("Clear."),
    ]);
    let (messages, trimmed) = view(&stored, &BTreeSet::new(), ROOMY);
    let whole: Vec<Message> = stored.into_iter().map(|stored| stored.message).collect();
    assert_eq!(messages, whole);
    assert_eq!((trimmed.shortened, trimmed.left_out), (0, 0));
}

#[test]
fn what_a_provider_would_refuse_is_put_right() {
    let stored = store(vec![
        system("Old instructions."),
        user("Hello"),
        result("nobody", "an answer to nothing"),
        calling("", &[("c1", "{\"city\": \"Par"), ("c2", "[1]"), ("c3", "{}")]),
        result("c2", "second"),
        result("c1", "first"),
        result("c1", "first again"),
        system("New instructions."),
        calling("", &[("c4", "{}")]),
        calling("Thinking aloud.", &[("c5", "{}")]),
    ]);
    insta::assert_snapshot!(seen(&stored, ROOMY), @r"
    system: New instructions.
    user: Hello
    assistant:  [c1 get_weather({})] [c2 get_weather({})]
    tool c1: first
    tool c2: second
    assistant: Thinking aloud.
    Trimmed { tokens: 132, shortened: 0, left_out: 0 }
    ");
}

#[test]
fn pruned_calls_vanish_with_their_results() {
    let stored = store(vec![
        user("A haiku"),
        calling("", &[("c1", "{}")]),
        result("c1", "wrong"),
        calling("Again.", &[("c2", "{}"), ("c3", "{}")]),
        result("c2", "wrong"),
        result("c3", "right"),
        calling("And again.", &[("c4", "{}")]),
        result("c4", "wrong"),
    ]);
    let pruned = ["c1", "c2", "c4"].map(str::to_owned).into();
    let (messages, trimmed) = view(&stored, &pruned, ROOMY);
    let lines: Vec<String> = messages.iter().map(line).collect();
    insta::assert_snapshot!(lines.join("\n"), @r"
    user: A haiku
    assistant: Again. [c3 get_weather({})]
    tool c3: right
    assistant: And again.
    ");
    assert_eq!(trimmed.left_out, 0);
}

#[test]
fn a_huge_result_keeps_its_head_and_tail_and_says_how_to_read_on() {
    let huge = format!("[\"the first\",{}\"the last\"]", "\"another\",".repeat(5_000));
    let of = |question: &str| store(vec![user(question), calling("", &[("c2_1", "{}")]), result("c2_1", &huge)]);
    let limits = Limits { result_bytes: 300, ..ROOMY };
    insta::assert_snapshot!(seen(&of("List them"), limits));
    insta::assert_snapshot!(seen(&of("请列出来"), limits));
    let (messages, _) = view(&of("List them"), &BTreeSet::new(), limits);
    assert!(messages[2].content.len() <= 300);
}

#[test]
fn old_results_are_shortened_before_messages_are_left_out() {
    let mut messages = vec![system("Be brief."), user("Look at everything")];
    for n in 0..4 {
        messages.push(calling("", &[(&format!("c{n}"), "{}")]));
        messages.push(result(&format!("c{n}"), &format!("{n} {}", "and so on ".repeat(100))));
    }
    let stored = store(messages);
    let limits = Limits { context_tokens: 1_000, ..ROOMY };
    insta::assert_snapshot!(seen(&stored, limits));
    let limits = Limits { context_tokens: 500, ..ROOMY };
    insta::assert_snapshot!(seen(&stored, limits));
}

#[test]
fn the_question_outlives_a_long_search_for_its_answer() {
    let mut messages = vec![user("An older question"), assistant("An older answer"), user("怎么办？")];
    for n in 0..50 {
        messages.push(calling("", &[(&format!("c{n}"), "{}")]));
        messages.push(result(&format!("c{n}"), "nothing here"));
    }
    messages.push(Message { by_redial: true, ..user("Answer now.") });
    let limits = Limits { context_tokens: 200, ..ROOMY };
    insta::assert_snapshot!(seen(&store(messages), limits));
}

#[test]
fn what_can_not_be_left_out_is_shortened() {
    let stored = store(vec![
        system(&"Rule. ".repeat(1_000)),
        user(&"问题".repeat(1_000)),
        Message {
            thought: Some("Hm. ".repeat(1_000)),
            ..calling(&"I say. ".repeat(1_000), &[("c1", &format!("{{\"text\":\"{}\"}}", "x".repeat(5_000)))])
        },
        result("c1", &"0123456789".repeat(1_000)),
    ]);
    let limits = Limits { context_tokens: 500, ..ROOMY };
    insta::assert_snapshot!(seen(&stored, limits));
}

#[test]
fn a_long_result_can_be_read_piece_by_piece() {
    let text = "\"好\"\n".repeat(1_000);
    let (mut read, mut next) = (String::new(), Some(0));
    while let Some(offset) = next {
        let json = read_result("c1", Some(&text), offset, 300).unwrap();
        assert!(json.len() <= 300, "{json}");
        let piece: Value = serde_json::from_str(&json).unwrap();
        assert_eq!(piece["offset"], read.len());
        read.push_str(piece["content"].as_str().unwrap());
        next = piece.get("next_offset").map(|next| next.as_u64().unwrap());
    }
    assert_eq!(read, text);
}

#[test]
fn reading_says_what_cannot_be_read() {
    let result = |id| (id == "c1").then_some("好的");
    let read = |id, offset| read_result(id, result(id), offset, 1_000).unwrap_or_else(|error| error);
    let lines = [read("c1", 1), read("c1", 6), read("c1", 7), read("c9", 0), read("c1", u64::MAX)];
    insta::assert_snapshot!(lines.join("\n"), @r#"
    {"call_id":"c1","offset":0,"total_bytes":6,"content":"好的"}
    {"call_id":"c1","offset":6,"total_bytes":6,"content":""}
    offset is 7; the result of c1 has 6 bytes
    no result of a call "c9" is in this conversation
    offset is 18446744073709551615; the result of c1 has 6 bytes
    "#);
    assert_eq!(read_result_offer().name, READ_RESULT);
}

#[test]
fn the_newest_feedback_stays_whole() {
    let told = format!("{{\"status\":\"error\",\"message\":\"{}\",\"guidance\":\"Call again.\"}}", "x".repeat(400));
    let mut messages = vec![system(&"Be brief. ".repeat(400)), user(&"Weather in Paris? ".repeat(400))];
    for n in 0..5 {
        messages.push(calling("", &[(&format!("c{n}"), r#"{"city":"Paris"}"#), (&format!("r{n}"), "{}")]));
        messages.push(feedback(&format!("c{n}"), &told));
        messages.push(result(&format!("r{n}"), &told));
    }
    let limits = Limits { context_tokens: 1_000, result_bytes: 256, bytes: 10_000 };
    let (seen, trimmed) = view(&store(messages), &BTreeSet::new(), limits);
    assert!(trimmed.tokens <= 1_000, "{trimmed:?}");
    let of = |id: &str| seen.iter().find(|message| message.call_id.as_deref() == Some(id)).unwrap().content.clone();
    assert_eq!(of("c4"), told);
    assert!(of("r4").len() <= 256 && of("r4").contains("left out"), "{}", of("r4"));
    for message in seen.iter().filter(|message| message.role == Role::Tool && message.content.len() < told.len()) {
        assert!(message.content.contains("bytes left out"), "a cut without its notice: {}", message.content);
    }
}
