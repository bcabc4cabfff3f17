//! A view of the part of a conversation that was read is the view of the whole.

use std::collections::BTreeSet;

use proptest::prelude::*;
use redial_engine::view::{Limits, reach, read, view, view_of};
use redial_proto::{Message, Role, StoredMessage};

use super::conversation::{assistant, calling, feedback, result, store, system, user};

/// What a task adds to its conversation.
#[derive(Clone, Debug)]
enum Turn {
    Question(usize),
    Nudge,
    Answer(usize),
    /// Bytes of the arguments, of the text beside the calls, and of the result of each.
    Exchange(usize, usize, Vec<usize>),
}

fn bytes() -> impl Strategy<Value = usize> {
    prop_oneof![4 => 0..100_usize, 4 => 100..3_000_usize, 2 => 3_000..40_000_usize, 1 => 40_000..120_000_usize]
}

fn turn() -> impl Strategy<Value = Turn> {
    prop_oneof![
        1 => bytes().prop_map(Turn::Question),
        1 => Just(Turn::Nudge),
        1 => bytes().prop_map(Turn::Answer),
        4 => (bytes(), prop_oneof![Just(0_usize), bytes()], prop::collection::vec(bytes(), 1..4))
            .prop_map(|(arguments, text, results)| Turn::Exchange(arguments, text, results)),
    ]
}

fn text(bytes: usize) -> String {
    "once 好 \"more\"\n".chars().cycle().take(bytes * 13 / 16).collect()
}

/// A conversation as the state machine writes it, before a model turn.
fn conversation(turns: Vec<Turn>) -> Vec<StoredMessage> {
    let mut messages = vec![system("Be brief."), user("Begin.")];
    for (n, turn) in turns.into_iter().enumerate() {
        match turn {
            Turn::Question(bytes) => messages.push(user(&format!("{}?", text(bytes)))),
            Turn::Nudge => messages.push(Message { by_redial: true, ..user("Go on.") }),
            Turn::Answer(bytes) => messages.push(assistant(&format!("{}.", text(bytes)))),
            Turn::Exchange(arguments, beside, results) => {
                let ids: Vec<String> = (0..results.len()).map(|call| format!("c{n}_{call}")).collect();
                let arguments = serde_json::json!({"text": text(arguments)}).to_string();
                let asked: Vec<(&str, &str)> = ids.iter().map(|id| (id.as_str(), arguments.as_str())).collect();
                messages.push(calling(&text(beside), &asked));
                let answered = if n.is_multiple_of(2) { result } else { feedback };
                messages.extend(ids.iter().zip(results).map(|(id, bytes)| answered(id, &text(bytes))));
            }
        }
    }
    store(messages)
}

fn limits() -> impl Strategy<Value = Limits> {
    (
        prop_oneof![300..3_000_u32, 3_000..40_000_u32],
        prop_oneof![256..3_000_u32, 3_000..60_000_u32],
        4_000..260_000_usize,
    )
        .prop_map(|(context_tokens, result_bytes, bytes)| Limits { context_tokens, result_bytes, bytes })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// A request for a turn leaves less room to the view than was assumed when the conversation was read.
    #[test]
    fn what_was_not_read_and_more_than_needed_make_no_difference(
        turns in prop::collection::vec(turn(), 0..40),
        limits in limits(),
        less in 4_000..260_000_usize,
    ) {
        let (stored, pruned) = (conversation(turns), BTreeSet::new());
        let read = read(&stored, &reach(&pruned, limits));
        let limits = Limits { bytes: limits.bytes.min(less), ..limits };
        prop_assert_eq!(view_of(&read, &pruned, limits), view(&stored, &pruned, limits));
    }

    #[test]
    fn pruned_calls_stay_hidden_and_make_no_difference(
        turns in prop::collection::vec(turn(), 1..40),
        limits in limits(),
        which in 2..5_usize,
    ) {
        let mut stored = conversation(turns);
        let after = stored.last().unwrap().seq + 1;
        stored.push(StoredMessage { seq: after, message: user("And?"), ..stored[0].clone() });
        let ids = stored.iter().filter_map(|stored| stored.message.call_id.clone());
        let pruned: BTreeSet<String> = ids.step_by(which).collect();
        let read = read(&stored, &reach(&pruned, limits));
        let ((seen, trimmed), (expected, of_whole)) = (view_of(&read, &pruned, limits), view(&stored, &pruned, limits));
        // What was not read is counted, whether it would be in the view or not.
        prop_assert!(trimmed.left_out >= of_whole.left_out);
        prop_assert_eq!((trimmed.tokens, trimmed.shortened), (of_whole.tokens, of_whole.shortened));
        prop_assert_eq!(seen, expected);
    }
}

const LIMITS: Limits = Limits { context_tokens: 32_000, result_bytes: 16_384, bytes: 250_000 };

fn read_bytes(stored: &[StoredMessage]) -> (usize, u64) {
    let read = read(stored, &reach(&BTreeSet::new(), LIMITS));
    (read.messages.len(), read.bytes())
}

#[test]
fn a_long_conversation_is_read_as_far_as_a_short_one() {
    let long = "x".repeat(50_000);
    let texts: Vec<Message> = (0..5_000).map(|_| assistant(&long)).collect();
    let exchange = |n: usize| [calling("", &[(&format!("c{n}"), "{}")]), result(&format!("c{n}"), &long)];
    let results: Vec<Message> = (0..2_500).flat_map(exchange).collect();
    for messages in [texts, results] {
        let stored = store(messages);
        let (short, long) = (read_bytes(&stored[..20]), read_bytes(&stored));
        assert!(2 * long.0 <= 3 * short.0 && 2 * long.1 <= 3 * short.1, "{short:?} and {long:?}");
    }
}

#[test]
fn one_huge_exchange_is_read_as_far_as_it_can_be_shown() {
    let huge = "x".repeat(500_000);
    let ids: Vec<String> = (0..100).map(|n| format!("c{n}")).collect();
    let asked: Vec<(&str, &str)> = ids.iter().map(|id| (id.as_str(), "{}")).collect();
    let mut messages = vec![system("Be brief."), user("Look."), calling("", &asked)];
    messages.extend(ids.iter().map(|id| result(id, &huge)));
    let stored = store(messages);
    let (count, bytes) = read_bytes(&stored);
    assert_eq!(count, 103, "an exchange is not divided, and the question stays");
    assert!(bytes < 100 * 22_000, "{bytes}");
    let read = read(&stored, &reach(&BTreeSet::new(), LIMITS));
    assert_eq!(view_of(&read, &BTreeSet::new(), LIMITS), view(&stored, &BTreeSet::new(), LIMITS));
}

#[test]
fn what_is_older_than_the_newest_half_mebibyte_is_left_out_and_the_question_stays() {
    let exchange = |n: usize| {
        let id = format!("c{n}");
        [calling("", &[(&id, "{}")]), result(&id, &"x".repeat(60_000))]
    };
    let mut messages = vec![system("Be brief."), user("An old one"), assistant("Yes."), user("怎么办？")];
    messages.extend((0..30).flat_map(exchange));
    let stored = store(messages);
    let read = read(&stored, &reach(&BTreeSet::new(), LIMITS));
    let (seen, trimmed) = view_of(&read, &BTreeSet::new(), LIMITS);
    assert_eq!((&seen, trimmed), (&view(&stored, &BTreeSet::new(), LIMITS).0, trimmed));
    let shown: Vec<(Role, usize)> = seen.iter().map(|message| (message.role, message.content.len())).take(4).collect();
    assert_eq!((shown[0].0, shown[2]), (Role::System, (Role::User, "怎么办？".len())), "{shown:?}");
    assert!(seen[1].content.starts_with("[对话过长"), "{:?}", seen[1]);
    // Eight exchanges, the last one longer than the others.
    assert_eq!((seen.len(), trimmed.left_out), (3 + 16, 2 + 2 * 22));
    let (last, others) = seen[3..].split_last().unwrap();
    assert!(others.iter().all(|message| message.content.len() <= 400) && last.content.len() > 16_000);
}
