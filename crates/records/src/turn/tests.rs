//! What is put together again is what was sent.

use chrono::DateTime;
use redial_proto::{Role, StoredMessage, TaskId};
use serde_json::json;

use super::*;
use crate::Cut;

fn stored(seq: u32, role: Role, content: &str) -> StoredMessage {
    let at = DateTime::UNIX_EPOCH;
    StoredMessage { seq, task: TaskId::generate(), at, message: Message::text(role, content) }
}

fn request(messages: Vec<Message>) -> TurnRequest {
    let rest = json!({
        "task": TaskId::generate(), "turn": 3, "messages": [], "language": "zh", "max_tokens": 7,
        "tools": [{"name": "echo", "parameters": {"type": "object"}, "version": "1"}],
        "trimmed": {"tokens": 9, "shortened": 1, "left_out": 2},
    });
    TurnRequest { messages, ..serde_json::from_value(rest).unwrap() }
}

/// Returns the messages of a turn as the tables give them: of what was cut as many characters as bytes are needed, and
/// some `more`.
fn found(turn: &TurnOnRecord, whole: &[StoredMessage], more: usize) -> HashMap<(u32, u32), ReadMessage> {
    let read = |part: Part, stored: &StoredMessage| {
        let Some(Ends { head, tail }) = part.ends else { return ReadMessage::whole(stored.clone()) };
        let (content, mut stored) = (&stored.message.content, stored.clone());
        let count = content.chars().count();
        stored.message.content = content.chars().take(head as usize + more).collect();
        let tail = content.chars().skip(count.saturating_sub(tail as usize + more)).collect();
        ReadMessage { stored, cut: Some(Cut { bytes: content.len(), tail }) }
    };
    let of = |part: Part| {
        let is_in = move |stored: &&StoredMessage| (part.first..=part.last).contains(&stored.seq);
        whole.iter().filter(is_in).map(move |stored| ((part.part, stored.seq), read(part, stored)))
    };
    turn.parts().flat_map(of).collect()
}

#[test]
fn what_is_put_together_is_what_was_sent() {
    let long = format!("{}好{}", "a".repeat(5_000), "z".repeat(5_000));
    let whole: Vec<StoredMessage> = vec![
        stored(1, Role::System, "system"),
        stored(2, Role::User, "question"),
        stored(3, Role::Assistant, "answer"),
        stored(4, Role::User, &long),
        stored(5, Role::User, "nul \0"),
        stored(6, Role::User, &long),
    ];
    let mut read = ReadConversation::whole(whole.clone());
    // Of the last one only the beginning and the end were read.
    let last = &mut read.messages[5];
    last.stored.message.content = "a".repeat(400);
    last.cut = Some(Cut { bytes: long.len(), tail: "z".repeat(300) });
    let with = |seq: usize, content: &str| Message { content: content.to_owned(), ..whole[seq - 1].message.clone() };
    let cut = with(4, &format!("{} … {}", &long[..900], &long[long.len() - 200..]));
    let part = with(6, &format!("{} cut {}", &long[..400], &long[long.len() - 300..]));
    let changed = Message { by_redial: true, ..with(3, "answer") };
    let note = Message::text(Role::User, "a note");
    let messages = vec![
        with(1, "system"),
        note,
        with(2, "question"),
        with(3, "answer"),
        changed,
        cut,
        with(4, &long[..100]),
        with(5, "nul \0"),
        part,
    ];
    let request = request(messages);
    let text = serde_json::to_string(&request).unwrap();
    let seqs = [1, 0, 2, 3, 3, 4, 4, 5, 6];
    let (turn, tools) = TurnOnRecord::new(request.clone(), &seqs, &text, &read);
    let tools = tools.unwrap();
    let json = turn.to_json();
    assert!(json.len() < 1_200, "{json}");
    assert_eq!(TurnOnRecord::bytes_of(&json), Some(turn.bytes()));
    assert_eq!(TurnOnRecord::bytes_of(&text), None);
    let again = TurnOnRecord::read(&json).unwrap();
    assert_eq!(*again, turn);
    assert!(TurnOnRecord::read(&text).is_err());
    let parts: Vec<_> = again.parts().map(|one| (one.part, one.first, one.last, one.ends.is_some())).collect();
    let expected = [(0, 1, 1, false), (2, 2, 3, false), (4, 4, 4, true), (5, 4, 4, true), (7, 6, 6, true)];
    assert_eq!(parts, expected);
    let mut known = whole;
    for more in [0, 1, 1_000, 100_000] {
        let expanded = again.expand(found(&again, &known, more), Some(&tools.tools)).unwrap();
        assert_eq!(expanded, Expanded { request: text.clone(), is_exact: true }, "{more} more characters");
    }
    let without: TurnRequest = serde_json::from_str(&again.without_messages(Some(&tools.tools)).unwrap()).unwrap();
    assert_eq!(without, TurnRequest { messages: Vec::new(), ..request });
    known[1].message.content.push('!');
    let expand = |known: &[StoredMessage], tools| again.expand(found(&again, known, 0), tools);
    assert!(!expand(&known, Some(&tools.tools)).unwrap().is_exact, "somebody changed it");
    known[3].message.content.truncate(99);
    let missing = |what: &str| Err(Missing(what.to_owned()));
    assert_eq!(expand(&known, Some(&tools.tools)), missing("a part of message 4"));
    known.remove(1);
    assert_eq!(expand(&known, Some(&tools.tools)), missing("message 2"));
    assert!(expand(&known, None).is_err());
}

#[test]
fn a_text_that_repeats_itself_is_cut_in_the_right_place() {
    let whole = vec![stored(1, Role::Tool, &"ab".repeat(100))];
    let read = ReadConversation::whole(whole.clone());
    for content in ["ab", "abab…abab", "", "ba", &"ab".repeat(99), &"ab".repeat(101)] {
        let request = request(vec![Message { content: (*content).to_owned(), ..whole[0].message.clone() }]);
        let text = serde_json::to_string(&request).unwrap();
        let (turn, tools) = TurnOnRecord::new(request, &[1], &text, &read);
        for more in [0, 3, 1_000] {
            let known = found(&turn, &whole, more);
            assert_eq!(turn.expand(known, tools.as_ref().map(|tools| tools.tools.as_str())).unwrap().request, text);
        }
    }
}

#[test]
fn fields_of_a_newer_version_are_ignored() {
    let long = format!("{}{}", "a".repeat(5_000), "z".repeat(5_000));
    let whole = vec![stored(1, Role::User, &long), stored(2, Role::User, "question")];
    let messages = vec![
        Message::text(Role::User, format!("{} … {}", &long[..900], &long[9_800..])),
        whole[1].message.clone(),
        Message::text(Role::User, "a note"),
    ];
    let request = request(messages);
    let text = serde_json::to_string(&request).unwrap();
    let (turn, _) = TurnOnRecord::new(request, &[1, 2, 0], &text, &ReadConversation::whole(whole));
    let mut newer: serde_json::Value = serde_json::from_str(&turn.to_json()).unwrap();
    assert!(newer["view"][0].get("head").is_some() && newer["view"][1].is_array(), "{newer}");
    for path in ["", "/view/0", "/view/2", "/request"] {
        newer.pointer_mut(path).unwrap()["mood"] = json!("calm");
    }
    assert_eq!(*TurnOnRecord::read(&newer.to_string()).unwrap(), turn);
}
