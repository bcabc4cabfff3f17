//! What holds for every conversation and every limit.

use std::collections::{BTreeSet, HashSet};

use proptest::prelude::*;
use redial_engine::view::{Limits, view};
use redial_proto::{Message, Role, StoredMessage};
use serde_json::{Map, Value};

use super::conversation::{assistant, calling, feedback, result, store, system, user};

/// What can be stored: mostly as it should be, sometimes not.
#[derive(Clone, Debug)]
enum Part {
    One(Message),
    /// Text, calls with arguments and results; none: never answered.
    Exchange(String, Vec<(String, Option<String>)>),
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[a-z\"\\\\\n ]{0,30}",
        2 => "[明天去北京。]{0,30}",
        1 => Just(String::new()),
        1 => (1..3_000_usize).prop_map(|n| "word \u{1f600}语\n".repeat(n / 10)),
    ]
}

fn arguments() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => Just("{\"city\":\"巴黎\"}".to_owned()),
        1 => Just("{}".to_owned()),
        1 => "[\\[\\]{}:,\"a0 ]{0,12}",
        1 => (0..2_000_usize).prop_map(|n| format!("{{\"t\":\"{}\"}}", "x".repeat(n))),
    ]
}

fn part() -> impl Strategy<Value = Part> {
    let calls = prop::collection::vec((arguments(), prop::option::weighted(0.9, text())), 1..4);
    prop_oneof![
        1 => text().prop_map(|text| Part::One(system(&text))),
        3 => text().prop_map(|text| Part::One(user(&text))),
        1 => text().prop_map(|text| Part::One(Message { by_redial: true, ..user(&text) })),
        2 => (text(), prop::option::of(text()))
            .prop_map(|(text, thought)| Part::One(Message { thought, ..assistant(&text) })),
        1 => text().prop_map(|text| Part::One(result("nobody", &text))),
        6 => (text(), calls).prop_map(|(text, calls)| Part::Exchange(text, calls)),
    ]
}

/// A conversation, and some of its calls.
fn conversation() -> impl Strategy<Value = (Vec<StoredMessage>, BTreeSet<String>)> {
    (prop::collection::vec(part(), 0..12), any::<u64>()).prop_map(|(parts, prune)| {
        let (mut messages, mut pruned) = (vec![user("begin")], BTreeSet::new());
        let mut n = 0_u32;
        for part in parts {
            let (text, calls) = match part {
                Part::One(message) => {
                    messages.push(message);
                    continue;
                }
                Part::Exchange(text, calls) => (text, calls),
            };
            let ids: Vec<String> = calls.iter().enumerate().map(|(i, _)| format!("c{n}_{i}")).collect();
            let asked: Vec<(&str, &str)> =
                ids.iter().zip(&calls).map(|(id, (arguments, _))| (id.as_str(), arguments.as_str())).collect();
            messages.push(calling(&text, &asked));
            for (id, (_, answer)) in ids.iter().zip(&calls) {
                let answered = if n.is_multiple_of(2) { result } else { feedback };
                messages.extend(answer.as_ref().map(|text| answered(id, text)));
                if prune >> (n % 64) & 1 == 1 && n.is_multiple_of(3) {
                    pruned.insert(id.clone());
                }
            }
            n += 1;
        }
        (store(messages), pruned)
    })
}

fn limits() -> impl Strategy<Value = Limits> {
    (prop_oneof![0..600_u32, 600..20_000_u32], 0..3_000_u32, prop_oneof![0..3_000_usize, 3_000..100_000_usize])
        .prop_map(|(context_tokens, result_bytes, bytes)| Limits { context_tokens, result_bytes, bytes })
}

const ENDLESS: Limits = Limits { context_tokens: u32::MAX, result_bytes: u32::MAX, bytes: usize::MAX };

/// The rules that every provider has in common.
fn check_roles(messages: &[Message]) -> Result<(), TestCaseError> {
    let mut expected: Vec<&str> = Vec::new();
    let mut ids = HashSet::new();
    for (n, message) in messages.iter().enumerate() {
        if message.role == Role::Tool {
            prop_assert!(!expected.is_empty(), "a result of no call");
            prop_assert_eq!(message.call_id.as_deref(), Some(expected.remove(0)));
            continue;
        }
        prop_assert!(expected.is_empty(), "{:?} are not answered", expected);
        match message.role {
            Role::System => prop_assert_eq!(n, 0),
            Role::Assistant => {
                prop_assert!(!message.calls.is_empty() || !message.content.trim().is_empty());
                for call in &message.calls {
                    prop_assert!(ids.insert(call.id.as_str()));
                    prop_assert!(serde_json::from_str::<Map<String, Value>>(&call.arguments).is_ok());
                    expected.push(&call.id);
                }
            }
            Role::User | Role::Tool => prop_assert!(message.calls.is_empty()),
        }
    }
    prop_assert!(expected.is_empty(), "{:?} are not answered", expected);
    Ok(())
}

fn json(messages: &[Message]) -> usize {
    serde_json::to_string(messages).unwrap().len()
}

/// What has to be there: the system message, the user's last one, and the end of the conversation.
fn must_stay(all: &[Message]) -> Vec<&Message> {
    let is_from_user = |message: &&Message| message.role == Role::User && !message.by_redial;
    let end = all.iter().rposition(|message| message.role != Role::Tool).unwrap_or_default();
    let asked = all[..end].iter().rev().find(is_from_user).filter(|_| !is_from_user(&&all[end]));
    let system = all.iter().take(usize::from(end > 0)).find(|message| message.role == Role::System);
    system.into_iter().chain(asked).chain(&all[end..]).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn every_view_is_valid((stored, pruned) in conversation(), limits in limits()) {
        let (messages, trimmed) = view(&stored, &pruned, limits);
        check_roles(&messages)?;
        let gone = |id: &Option<String>| id.as_ref().is_some_and(|id| pruned.contains(id));
        prop_assert!(!messages.iter().any(|message| gone(&message.call_id)));
        let whole = view(&stored, &pruned, ENDLESS).0;
        let notes = usize::from(trimmed.left_out > 0);
        prop_assert_eq!(messages.len(), whole.len() - trimmed.left_out as usize + notes);
    }

    #[test]
    fn what_fits_loses_nothing((stored, pruned) in conversation()) {
        let (whole, trimmed) = view(&stored, &pruned, ENDLESS);
        let longest = whole.iter().filter(|m| m.role == Role::Tool).map(|m| m.content.len()).max().unwrap_or(0);
        let just = Limits {
            context_tokens: trimmed.tokens,
            result_bytes: u32::try_from(longest).unwrap(),
            bytes: json(&whole),
        };
        let (messages, again) = view(&stored, &pruned, just);
        prop_assert_eq!(messages, whole);
        prop_assert_eq!(again, trimmed);
        prop_assert_eq!((again.shortened, again.left_out), (0, 0));
    }

    #[test]
    fn the_limits_hold_where_they_can((stored, pruned) in conversation(), limits in limits()) {
        let whole = view(&stored, &pruned, ENDLESS).0;
        let (messages, trimmed) = view(&stored, &pruned, limits);
        for message in messages.iter().filter(|message| message.role == Role::Tool) {
            let feedback = if message.class.is_some() { 2 } else { 1 };
            prop_assert!(message.content.len() <= limits.result_bytes as usize * feedback);
        }
        // Every text can be cut to 200 bytes; the note about what is missing is a message, too.
        let stay = must_stay(&whole);
        let calls: usize = stay.iter().map(|message| message.calls.len()).sum();
        let tokens = (stay.len() + 1) * 130 + calls * 130;
        let bytes = (stay.len() + 1) * 560 + calls * 500;
        if limits.context_tokens as usize >= tokens && limits.bytes >= bytes {
            prop_assert!(json(&messages) <= limits.bytes, "{} bytes", json(&messages));
            prop_assert!(trimmed.tokens <= limits.context_tokens, "{trimmed:?}");
            // What comes out is what would come out of it.
            let again = view(&store(messages.clone()), &BTreeSet::new(), limits);
            prop_assert_eq!(again.0, messages);
        }
    }

    #[test]
    fn the_question_and_the_end_are_always_there((stored, pruned) in conversation(), limits in limits()) {
        let whole = view(&stored, &pruned, ENDLESS).0;
        let messages = view(&stored, &pruned, limits).0;
        let kept: Vec<_> = messages.iter().filter(|message| !message.by_redial).collect();
        for message in must_stay(&whole).into_iter().filter(|message| !message.by_redial) {
            let calls = |message: &Message| message.calls.iter().map(|call| call.id.clone()).collect::<Vec<_>>();
            let start: String = message.content.chars().take(20).collect();
            let there = kept.iter().any(|m| {
                m.role == message.role && m.call_id == message.call_id && calls(m) == calls(message)
                    && (m.content.starts_with(&start) || m.role == Role::Tool)
            });
            prop_assert!(there, "{:?}", message);
        }
    }
}
