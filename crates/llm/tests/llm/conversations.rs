//! A conversation can never become invalid. Random histories of tasks with faults run through the real state machine, the
//! real view and the real mapping to every provider; everything else is simulated in memory.

mod decisions;
mod invent;
mod promises;
mod providers;
mod record;
mod tally;
mod world;

use std::{panic::AssertUnwindSafe, thread};

use redial_engine::task::Step;
use redial_proto::{ErrorClass, Message, Role, TaskCode, TaskState};
use tally::Tally;
use world::{Mutation, history};

/// Conversations, of one to three tasks each.
const HISTORIES: u64 = 10_000;
/// Threads that share them.
const THREADS: u64 = 4;

#[test]
fn ten_thousand_random_histories_are_valid() {
    let part = |part: u64| {
        move || {
            let mut tally = Tally::default();
            (0..HISTORIES).filter(|seed| seed % THREADS == part).for_each(|seed| tally.add(checked(seed)));
            tally
        }
    };
    let threads: Vec<_> = (0..THREADS).map(|n| thread::spawn(part(n))).collect();
    let mut tally = Tally::default();
    for thread in threads {
        tally.add(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
    }
    println!("{HISTORIES} histories:\n{}", tally.lines());
    for what in reached() {
        assert!(tally.times(&what) >= 100, "too few histories reach {what:?}:\n{}", tally.lines());
    }
}

/// Everything that the histories must reach often.
fn reached() -> Vec<String> {
    let decisions = "message turn run answered nudged accepted fallback returned last_answer stopping ended";
    let mut all: Vec<String> = decisions.split(' ').map(|kind| format!("decision {kind}")).collect();
    // A dispatcher that cannot continue decides this, not the engine.
    let codes = TaskCode::ALL.into_iter().filter(|code| *code != TaskCode::Internal);
    all.extend(codes.map(|code| format!("code {code}")));
    all.extend(ErrorClass::ALL.map(|class| format!("ran with {class}")));
    let not_run = ["malformed_arguments", "unknown_tool", "invalid_arguments", "repeated_call", "budget_exhausted"];
    all.extend(not_run.map(|class| format!("did not run with {class}")));
    all.extend(["Answer", "Form", "Shorter", "Rest"].map(|asked| format!("asked for {asked}")));
    all.extend(["view pruned", "view shortened", "view left out", "crash before the commit"].map(str::to_owned));
    all
}

/// One history; panics with its seed.
fn checked(seed: u64) -> Tally {
    let outcome = std::panic::catch_unwind(AssertUnwindSafe(|| history(seed, None)));
    let problem = match outcome {
        Ok(Ok(tally)) => return tally,
        Ok(Err(problem)) => problem,
        Err(_) => "panicked, see above".to_owned(),
    };
    panic!("history {seed}: {problem}")
}

/// Mutations of a step; the checks must find each of them.
const MUTATIONS: [(&str, Mutation); 12] = [
    ("a tool message is lost", |step| step.messages.retain(|(_, message)| message.role != Role::Tool)),
    ("a message is written twice", |step| step.messages.extend(step.messages.first().cloned())),
    ("two answers are swapped", |step| {
        let tools = step.messages.iter_mut().filter(|(_, message)| message.role == Role::Tool);
        let mut messages: Vec<&mut Message> = tools.map(|(_, message)| message).collect();
        if let [first, .., last] = messages.as_mut_slice() {
            std::mem::swap(*first, *last);
        }
    }),
    ("a position stays empty", |step| step.messages.iter_mut().for_each(|(seq, _)| *seq += u32::from(*seq > 5))),
    ("an id is used twice", |step| {
        step.messages
            .iter_mut()
            .flat_map(|(_, message)| &mut message.calls)
            .for_each(|call| "c1".clone_into(&mut call.id));
    }),
    ("a result becomes a user message", |step| {
        for (_, message) in step.messages.iter_mut().filter(|(_, message)| message.role == Role::Tool) {
            *message = Message::text(Role::User, message.content.clone());
        }
    }),
    ("the calls are lost", |step| step.calls.clear()),
    ("a call starts twice", |step| step.calls.extend(step.calls.first().cloned())),
    ("a turn number is used twice", |step| step.turn.iter_mut().for_each(|turn| turn.turn = turn.turn.max(2) - 1)),
    ("no model is asked", |step| step.turn = None),
    ("the task has no wake time", |step| step.wake_at = None),
    ("a failure is recorded as a success", |step| {
        step.ended.iter_mut().for_each(|ended| ended.state = TaskState::Succeeded);
    }),
];

#[test]
fn mutations_are_found() {
    for (name, mutation) in MUTATIONS {
        let found = (0..50).filter(|seed| history(*seed, Some(mutation)).is_err()).count();
        assert!(found > 0, "not found: {name}");
    }
    let none: Mutation = |_: &mut Step| {};
    assert!((0..50).all(|seed| history(seed, Some(none)).is_ok()));
}
