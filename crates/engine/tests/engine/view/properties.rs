//! What holds for every conversation and every limit.

use std::collections::{BTreeSet, HashSet};

use proptest::{
    prelude::*,
    sample::{Index, select},
};
use redial_engine::view::{Limits, view};
use redial_proto::{Message, Role, StoredMessage};
use serde_json::{Map, Value};

use super::conversation::{result, store, system, turn, written};

/// Generates what can be stored: mostly as the state machine writes it, sometimes not; and some of its calls.
fn conversation() -> impl Strategy<Value = (Vec<StoredMessage>, BTreeSet<String>)> {
    let bytes = prop_oneof![8 => 0..40_usize, 1 => 40..9_000_usize].boxed();
    let damages = &["remove", "remove", "empty", "orphan", "system", "arguments"][..];
    let damages = prop::collection::vec((any::<Index>(), select(damages)), 0..5);
    let pruned = prop::collection::vec(any::<Index>(), 0..3);
    (prop::collection::vec(turn(bytes), 0..12), damages, pruned).prop_map(|(turns, damages, pruned)| {
        let mut messages = written(turns);
        for (at, damage) in damages {
            let at = at.index(messages.len());
            match damage {
                "remove" if messages.len() > 1 => drop(messages.remove(at)),
                "orphan" => messages.insert(at, result("nobody", "an answer")),
                "system" => messages.insert(at, system("Be long.")),
                "arguments" => messages[at].calls.iter_mut().for_each(|call| call.arguments.truncate(5)),
                _ => messages[at].content.clear(),
            }
        }
        let ids: Vec<String> = messages.iter().flat_map(|message| &message.calls).map(|call| call.id.clone()).collect();
        let pruned = pruned.into_iter().filter(|_| !ids.is_empty()).map(|at| at.get(&ids).clone()).collect();
        (store(messages), pruned)
    })
}

fn limits() -> impl Strategy<Value = Limits> {
    (prop_oneof![0..600_u32, 600..20_000_u32], 0..3_000_u32, prop_oneof![0..3_000_usize, 3_000..100_000_usize])
        .prop_map(|(context_tokens, result_bytes, bytes)| Limits { context_tokens, result_bytes, bytes })
}

const ENDLESS: Limits = Limits { context_tokens: u32::MAX, result_bytes: u32::MAX, bytes: usize::MAX };

/// Checks the rules that every provider has in common.
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

/// Returns what has to be there: the system message, the user's last one, and the end of the conversation.
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
