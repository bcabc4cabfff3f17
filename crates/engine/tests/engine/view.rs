//! What a model sees of a conversation: valid whatever is stored, within the limits, and as much as fits.

mod conversation;
mod properties;
mod reach;

use std::collections::BTreeSet;

use redial_engine::view::{Limits, READ_RESULT, read_result, read_result_offer, view};
use redial_proto::{Message, Role};
use serde_json::Value;

use conversation::{assistant, calling, feedback, result, store, system, user};

const ROOMY: Limits = Limits { context_tokens: 32_000, result_bytes: 16_384, bytes: 900_000 };

/// Returns a line, or what it stands for if it begins with `3 times`: `#` is the number.
fn repeated(line: &str) -> Vec<String> {
    let Some((times, lines)) = line.split_once(" times ") else { return vec![line.to_owned()] };
    let of = |n: u32| lines.split("; ").map(move |line| line.replace('#', &n.to_string()));
    (0..times.parse().unwrap()).flat_map(of).collect()
}

/// Expands a text: `«a×3»` to `aaa`.
fn whole(text: &str) -> String {
    let Some((before, rest)) = text.split_once('«') else { return text.to_owned() };
    let (part, after) = rest.split_once('»').unwrap();
    let (part, count) = part.rsplit_once('×').unwrap();
    format!("{before}{}{}", part.repeat(count.parse().unwrap()), whole(after))
}

fn message(word: &str, rest: &str) -> Message {
    match word {
        "system" => system(rest),
        "user" => user(rest),
        "nudge" => Message { by_redial: true, ..user(rest) },
        "assistant" => assistant(rest),
        "tool" => {
            let (id, text) = rest.split_once(' ').unwrap();
            result(id, text)
        }
        "calls" => {
            let (text, calls) = rest.strip_prefix('[').and_then(|rest| rest.split_once("] ")).unwrap_or(("", rest));
            calling(text, &calls.split(" + ").map(|call| call.split_once(' ').unwrap()).collect::<Vec<_>>())
        }
        other => panic!("{other} is no message"),
    }
}

/// Tells what is seen of a conversation that is told line by line.
fn told(history: &str) -> String {
    let (name, lines) = history.trim().split_once('\n').unwrap();
    let (mut messages, mut pruned, mut told) = (Vec::new(), BTreeSet::new(), vec![name.to_owned()]);
    for line in lines.lines().flat_map(repeated).map(|line| whole(&line)) {
        let (word, rest) = line.split_once(' ').unwrap_or((&line, ""));
        match word {
            "pruned" => pruned = rest.split(' ').map(str::to_owned).collect(),
            "view" => {
                let limit = |name: &str| Some(rest.strip_prefix(name)?.parse::<u32>().unwrap());
                let limits = Limits {
                    context_tokens: limit("context=").unwrap_or(ROOMY.context_tokens),
                    result_bytes: limit("result=").unwrap_or(ROOMY.result_bytes),
                    ..ROOMY
                };
                let (seen, trimmed) = view(&store(messages.clone()), &pruned, limits);
                assert!(
                    seen.iter()
                        .all(|message| message.call_id.is_none()
                            || message.content.len() <= limits.result_bytes as usize)
                );
                told.extend(seen.iter().map(shown));
                told.push(format!("{trimmed:?}"));
            }
            word => messages.push(message(word, rest)),
        }
    }
    told.join("\n")
}

fn shown(message: &Message) -> String {
    let calls: Vec<String> = message.calls.iter().map(|c| format!(" [{} {}({})]", c.id, c.tool, c.arguments)).collect();
    let id = message.call_id.as_ref().map(|id| format!(" {id}")).unwrap_or_default();
    format!("{}{id}: {}{}", message.role, message.content, calls.concat())
}

#[test]
fn every_conversation_is_seen_as_it_is_told() {
    let all: Vec<String> = include_str!("view/histories.txt").split("\n\n").map(told).collect();
    insta::assert_snapshot!(all.join("\n\n"));
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
