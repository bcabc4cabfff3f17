//! Random histories, in the words of the others.

use proptest::{collection::vec, prelude::*, sample::select};
use redial_proto::ErrorClass;
use serde_json::json;

use super::Play;

/// Generates an agent with limits that are small enough to be reached.
fn agent() -> impl Strategy<Value = String> {
    let budgets = (1..8_u32, 0..5_u32, 0..9_u32, prop::option::of(1..400_u32), 1..300_u32);
    let rest = (prop::option::of(any::<bool>()), 0..4_u32, 0..3_u32, select(&["shorter", "continue", "accept"][..]));
    (budgets, rest).prop_map(|((turns, corrections, tool_calls, tokens, seconds), (fallback, most, after, cut_off))| {
        let policy = if fallback == Some(true) { "fallback" } else { "feedback" };
        let agent = json!({
            "fallback_model": fallback.map(|_| "big"), "policy": policy, "max_corrections": most,
            "fallback_after": after, "cut_off": cut_off,
            "budgets": {"turns": turns, "corrections": corrections, "tool_calls": tool_calls, "tokens": tokens, "seconds": seconds},
        });
        format!("agent {agent}")
    })
}

fn failure() -> impl Strategy<Value = String> {
    (select(&ErrorClass::ALL[..]), prop::bool::weighted(0.1))
        .prop_map(|(class, unknown)| format!("{class}{} no", if unknown { "?" } else { "" }))
}

/// Generates something that happens to a task. Much of it is late, early or a duplicate.
fn event() -> impl Strategy<Value = String> {
    let calls = &[
        "look {}",
        "look {\"n\":1}",
        "look {\"n\":2}",
        "look {} !version 2",
        "poll {} !polling",
        "move {} !sequential",
        "move_on {} !sequential",
        "look {\"n\":\"x\"} !invalid_arguments n is wrong",
        "look [1] !malformed_arguments no object",
        "nope {} !unknown_tool no such tool",
    ][..];
    let reply = (prop::option::of("[a-z ]{0,6}"), any::<bool>(), any::<bool>(), any::<bool>());
    prop_oneof![
        8 => vec(select(calls), 1..4).prop_map(|calls| format!("asks {}", calls.join(" + "))),
        9 => (1..5_u32, 0..3_u32).prop_map(|(index, result)| format!("ended {index} ok {result}")),
        4 => (1..5_u32, failure()).prop_map(|(index, failure)| format!("ended {index} {failure}")),
        2 => "says [a-z ]{1,9}",
        1 => "cut [a-z ]{1,9}",
        2 => reply.prop_map(|(text, thinks, problem, cut)| {
            let (thought, problem) = (thinks.then_some("hm"), problem.then_some("no form"));
            format!("reply {}", json!({"text": text, "thought": thought, "problem": problem, "cut": cut}))
        }),
        1 => failure().prop_map(|failure| format!("fails {failure}")),
        2 => (0..9_usize).prop_map(|nth| format!("again {nth}")),
        2 => (0..60_u32).prop_map(|seconds| format!("later {seconds}")),
        2 => Just("woken".to_owned()),
        1 => Just("cancel".to_owned()),
        1 => Just("start go on".to_owned()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn every_step_of_every_history_keeps_the_rules(agent in agent(), events in vec(event(), 0..40)) {
        let mut play = Play::new();
        play.take_line(&agent);
        play.take_line("start go");
        for event in &events {
            if play.is_over() || !event.starts_with("start") {
                play.take_line(event);
            }
        }
        // Whatever has happened, the limits end it.
        let last = ["ended 1 ok 1", "ended 2 ok 1", "ended 3 ok 1", "asks look {}", "later 9", "woken"];
        for line in last.iter().cycle().take(600) {
            if !play.is_over() {
                play.take_line(line);
            }
        }
        prop_assert!(play.is_over());
    }
}
