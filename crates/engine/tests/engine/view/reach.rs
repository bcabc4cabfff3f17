//! A view of the part of a conversation that was read is the view of the whole.

use std::collections::BTreeSet;

use proptest::prelude::*;
use redial_engine::view::{Limits, reach, read, view, view_of};
use redial_proto::{Message, StoredMessage};

use super::conversation::{assistant, calling, result, store, system, turn, user, written};

fn bytes() -> BoxedStrategy<usize> {
    prop_oneof![4 => 0..100_usize, 4 => 100..3_000_usize, 2 => 3_000..40_000_usize, 1 => 40_000..120_000_usize].boxed()
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
        turns in prop::collection::vec(turn(bytes()), 0..40),
        limits in limits(),
        less in 4_000..260_000_usize,
    ) {
        let (stored, pruned) = (store(written(turns)), BTreeSet::new());
        let read = read(&stored, &reach(&pruned, limits));
        let limits = Limits { bytes: limits.bytes.min(less), ..limits };
        prop_assert_eq!(view_of(&read, &pruned, limits), view(&stored, &pruned, limits));
    }

    #[test]
    fn pruned_calls_stay_hidden_and_make_no_difference(
        turns in prop::collection::vec(turn(bytes()), 1..40),
        limits in limits(),
        which in 2..5_usize,
    ) {
        let mut stored = store(written(turns));
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
