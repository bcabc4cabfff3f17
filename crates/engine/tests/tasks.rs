//! The state machine of tasks: events, and what is decided and written.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking, too")]

#[path = "tasks/cut_off.rs"]
mod cut_off;
#[path = "tasks/play.rs"]
mod play;
#[path = "tasks/spending.rs"]
mod spending;

use chrono::TimeDelta;
use play::{Play, agent, failure, refused, refused_by, runs};
use redial_engine::task::{Event, Reply, Verdict};
use redial_proto::{
    AgentSpec, Budgets, ErrorClass, Nudged as Asked, Policy, TaskCode,
    TaskDecision::{Accepted, Nudged},
    TaskState,
};

#[test]
fn a_wrong_call_is_corrected_and_answered() {
    let mut play = Play::new(agent());
    play.start("book a flight");
    play.replies(vec![refused("book", "{\"to\":1}", failure(ErrorClass::InvalidArguments, "no"))]);
    play.replies(vec![runs("book", "{\"to\":\"X\"}")]);
    play.ends(1, Ok("{\"ok\":true}"));
    play.says("booked");
    assert_eq!(
        play.log(),
        "1 user book a flight\n\
         2 assistant [c2_1 book]\n\
         3 tool c2_1 invalid_arguments left 3\n\
         4 assistant [c4_1 book]\n\
         5 tool c4_1 {\"ok\":true}\n\
         6 assistant booked\n\
         succeeded answered"
    );
    assert_eq!((play.task.turns(), play.task.tool_calls(), play.task.corrections()), (3, 1, 1));
}

#[test]
fn refused_arguments_are_shown_with_help_also_the_second_time() {
    let schema = serde_json::json!({
        "properties": {"to": {"type": "string"}, "day": {"type": "string", "format": "date"}}, "required": ["to", "day"]
    });
    let mut play = Play::new(agent());
    play.start("book a flight");
    let content = |play: &Play, seq| serde_json::from_str::<serde_json::Value>(&play.messages[&seq].content).unwrap();
    for (seq, class) in [(3, "malformed_arguments"), (5, "repeated_call")] {
        play.replies(vec![refused_by(&schema, "book", r#"{"to": "Rome", "day": tomorrow}"#)]);
        let told = content(&play, seq);
        assert_eq!(told["class"], class);
        assert_eq!(told["sent"], r#"{"to": "Rome", "day": <<<HERE>>>tomorrow}"#);
        assert_eq!(told["example"], serde_json::json!({"to": "Rome", "day": "2026-05-01"}));
    }
    for seq in [7, 9] {
        play.replies(vec![refused_by(&schema, "book", r#"{"to": "Rome", "day": "tomorrow"}"#)]);
        let message = content(&play, seq)["message"].as_str().unwrap().to_owned();
        assert_eq!(message.matches("/day").count(), 1, "a broken rule is named once: {message}");
        assert_eq!(message.contains("failed before"), seq == 9, "{message}");
    }
}

#[test]
fn parallel_results_keep_the_order_of_their_calls() {
    let mut play = Play::new(agent());
    play.start("go");
    play.replies(vec![runs("a", "{}"), runs("b", "{}"), runs("c", "{}")]);
    play.ends(3, Ok("3"));
    play.ends(3, Ok("late copy"));
    play.ends(1, Err(failure(ErrorClass::Unavailable, "down")));
    assert!(play.step.turn.is_none());
    play.ends(2, Ok("2"));
    assert_eq!(play.step.turn.as_ref().unwrap().turn, 2);
    play.says("done");
    assert!(
        play.log().contains("3 tool c2_1 unavailable\n4 tool c2_2 2\n5 tool c2_3 3\n6 assistant done"),
        "{}",
        play.log()
    );
}

#[test]
fn the_second_identical_failure_costs_no_tool_run() {
    let mut play = Play::new(agent());
    play.start("go");
    play.replies(vec![runs("book", "{\"a\":1, \"b\":2}")]);
    play.ends(1, Err(failure(ErrorClass::BusinessRule, "sold out")));
    play.replies(vec![runs("book", "{\"b\":2,\"a\":1}")]);
    assert_eq!((play.task.tool_calls(), play.runs), (1, 1));
    assert!(play.log().contains("tool c4_1 repeated_call left 2"), "{}", play.log());
    assert!(play.messages[&5].content.contains("sold out"));
    // In the conversation's next task, too; until it expires.
    play.says("sorry");
    play.follow_up("again");
    play.replies(vec![runs("book", "{\"b\":2,\"a\":1}")]);
    assert_eq!(play.runs, 1);
    play.now += TimeDelta::hours(2);
    play.replies(vec![runs("book", "{\"b\":2,\"a\":1}")]);
    assert_eq!(play.runs, 2);
}

#[test]
fn a_refusal_by_another_tool_may_have_passed_after_a_change() {
    let mut play = Play::new(agent());
    play.start("go");
    play.replies(vec![runs("read_file", "{}")]);
    play.ends(1, Err(failure(ErrorClass::BusinessRule, "not found")));
    play.replies(vec![runs("write_file", "{}")]);
    play.ends(1, Ok("1"));
    play.replies(vec![runs("read_file", "{}")]);
    assert_eq!(play.runs, 3);
}

#[test]
fn a_failure_without_a_reason_is_a_correction_and_passes_sooner_than_a_refusal() {
    let mut play = Play::new(agent());
    play.start("go");
    play.replies(vec![runs("report", "{}")]);
    play.ends(1, Err(failure(ErrorClass::ToolFailed, "exit code 1")));
    assert!(play.log().contains("tool c2_1 tool_failed left 3"), "{}", play.log());
    play.replies(vec![runs("report", "{}")]);
    assert_eq!(play.runs, 1, "the same call at once");
    play.replies(vec![runs("install", "{}")]);
    play.ends(1, Ok("1"));
    play.replies(vec![runs("report", "{}")]);
    assert_eq!(play.runs, 3, "another tool may have changed the world");
    play.ends(1, Err(failure(ErrorClass::ToolFailed, "exit code 1")));
    play.now += TimeDelta::minutes(2);
    play.replies(vec![runs("report", "{}")]);
    assert_eq!(play.runs, 4, "what it needs may be there again");
}

#[test]
fn a_new_version_of_a_tool_and_polling_tools_are_not_repetitions() {
    let mut play = Play::new(agent());
    play.start("go");
    play.replies(vec![play::run(|call| call.version = "1".into()), play::run(|call| call.polling = true)]);
    play.ends(1, Err(failure(ErrorClass::BusinessRule, "no")));
    play.ends(2, Err(failure(ErrorClass::BusinessRule, "no")));
    play.replies(vec![play::run(|call| call.version = "2".into()), play::run(|call| call.polling = true)]);
    assert_eq!(play.runs, 4);
}

#[test]
fn the_same_error_three_turns_in_a_row_blocks_the_tool() {
    let mut play = Play::new(AgentSpec { max_corrections: 9, ..agent() });
    play.start("go");
    for n in 0..3 {
        play.replies(vec![runs("find", &format!("{{\"q\":{n}}}"))]);
        play.ends(1, Err(failure(ErrorClass::BusinessRule, "no index")));
    }
    play.replies(vec![runs("find", "{\"q\":99}"), runs("other", "{}")]);
    assert_eq!(play.runs, 4, "find is blocked, the other tool runs");
}

#[test]
fn results_that_do_not_change_end_a_loop() {
    let mut play = Play::new(agent());
    play.start("go");
    for _ in 0..3 {
        play.replies(vec![runs("look", "{}")]);
        play.ends(1, Ok("nothing new"));
    }
    play.replies(vec![runs("look", "{}")]);
    assert_eq!(play.runs, 3);
    let mut play = Play::new(agent());
    play.start("go");
    for tool in ["a", "b", "a", "b"] {
        play.replies(vec![runs(tool, "{}")]);
        play.ends(1, Ok("same"));
    }
    play.replies(vec![runs("a", "{}")]);
    assert_eq!(play.runs, 4);
    assert!(play.log().contains("repeated_call"), "{}", play.log());
}

#[test]
fn corrections_run_out_and_the_model_answers_without_tools() {
    let mut play = Play::new(agent());
    play.start("go");
    for n in 0..4 {
        play.replies(vec![runs("book", &format!("{{\"n\":{n}}}"))]);
        play.ends(1, Err(failure(ErrorClass::InvalidArguments, &format!("wrong {n}"))));
    }
    assert!(!play.step.turn.as_ref().unwrap().tools, "the last answer has no tools");
    assert!(play.log().contains("tool c8_1 invalid_arguments left 0\n10 user by redial"), "{}", play.log());
    play.says("I could not book it.");
    assert_eq!(play.end(), (TaskState::Failed, TaskCode::CorrectionsExhausted));
    assert_eq!(play.task.corrections(), 3);
}

#[test]
fn a_repeated_call_of_an_unknown_tool_is_one_correction() {
    let mut play = Play::new(agent());
    play.start("go");
    let unknown = || {
        let mut call = refused("bock", "{}", failure(ErrorClass::UnknownTool, "no such tool"));
        if let Verdict::Refused { tool, version, .. } = &mut call.verdict {
            (*tool, *version) = (None, String::new());
        }
        call
    };
    for left in (0..4).rev() {
        play.replies(vec![unknown()]);
        assert!(play.log().lines().last().unwrap().ends_with(&format!("left {left}")) || left == 0, "{}", play.log());
    }
    play.says("There is no such tool.");
    assert_eq!((play.end(), play.task.corrections()), ((TaskState::Failed, TaskCode::CorrectionsExhausted), 3));
}

#[test]
fn the_fallback_model_takes_over_without_seeing_what_failed_and_hands_back() {
    let spec = AgentSpec { policy: Policy::Fallback, fallback_model: Some("big".into()), fallback_after: 0, ..agent() };
    let mut play = Play::new(spec);
    play.start("haiku");
    play.replies(vec![refused("haiku", "[1]", failure(ErrorClass::InvalidArguments, "3 topics")), runs("time", "{}")]);
    play.ends(2, Ok("12:00"));
    assert_eq!(play.step.turn.as_ref().unwrap().model, "big");
    assert_eq!(play.task.pruned().iter().collect::<Vec<_>>(), ["c2_1"]);
    play.replies(vec![runs("haiku", "[1,2,3]")]);
    play.ends(1, Ok("old pond"));
    assert_eq!(play.step.turn.as_ref().unwrap().model, "small");
    play.says("old pond");
    assert_eq!(play.end(), (TaskState::Succeeded, TaskCode::Answered));
}

#[test]
fn a_model_that_cannot_be_asked_is_replaced_once() {
    let mut play = Play::new(AgentSpec { fallback_model: Some("big".into()), ..agent() });
    play.start("go");
    play.turn_fails(failure(ErrorClass::Unavailable, "529"));
    assert_eq!(play.step.turn.as_ref().unwrap().model, "big");
    play.turn_fails(failure(ErrorClass::Auth, "401"));
    assert_eq!(play.end(), (TaskState::Failed, TaskCode::ModelFailed));
}

/// Sets a limit, and the code that it leads to.
type Limit = (fn(&mut Budgets), TaskCode);

#[test]
fn every_budget_leads_to_one_last_answer() {
    let budgets: [Limit; 4] = [
        (|b| b.turns = 1, TaskCode::TurnsExhausted),
        (|b| b.tokens = Some(10), TaskCode::TokensExhausted),
        (|b| b.cost_usd = Some(0.000_01), TaskCode::CostExhausted),
        (|b| b.tool_calls = 1, TaskCode::ToolCallsExhausted),
    ];
    for (limit, code) in budgets {
        let mut spec = agent();
        limit(&mut spec.budgets);
        let mut play = Play::new(spec);
        play.start("go");
        play.replies(vec![runs("a", "{}"), runs("b", "{}")]);
        play.ends(2, Ok("2"));
        play.ends(1, Ok("1"));
        assert!(!play.step.turn.as_ref().unwrap().tools, "{code}");
        play.replies(vec![runs("c", "{}")]);
        assert_eq!(play.end(), (TaskState::Failed, code), "a last turn that still calls is over");
    }
}

#[test]
fn time_over_stops_what_runs_and_asks_for_a_last_answer() {
    let mut spec = agent();
    spec.budgets.seconds = 60;
    let mut play = Play::new(spec);
    play.start("go");
    play.replies(vec![
        runs("slow", "{}"),
        play::run(|call| call.sequential = true),
        play::run(|call| call.sequential = true),
    ]);
    assert_eq!(play.runs, 2, "the second sequential call waits for the first");
    play.now += TimeDelta::seconds(61);
    play.event(Event::Woken);
    assert_eq!(play.cancelled(), [(1, 1), (1, 2)]);
    play.event(Event::Woken);
    assert_eq!(play.cancelled(), [(1, 1), (1, 2)], "again, should the first try have been lost");
    play.ends(1, Err(failure(ErrorClass::Cancelled, "stopped")));
    play.ends(2, Ok("was faster"));
    assert!(play.log().contains("5 tool c2_3 budget_exhausted"), "{}", play.log());
    play.says("no time left");
    assert_eq!(play.end(), (TaskState::Failed, TaskCode::TimeExhausted));
}

#[test]
fn sequential_calls_run_one_after_the_other() {
    let mut play = Play::new(agent());
    play.start("go");
    play.replies((0..3).map(|_| play::run(|call| call.sequential = true)).collect());
    for n in 1..=3 {
        assert_eq!(play.runs, n);
        play.ends(u32::try_from(n).unwrap(), Ok("1"));
    }
    assert_eq!(play.step.turn.as_ref().unwrap().turn, 2);
}

#[test]
fn a_cancel_waits_for_what_runs_and_leaves_a_valid_conversation() {
    let mut play = Play::new(agent());
    play.start("go");
    play.replies(vec![runs("a", "{}"), runs("b", "{}")]);
    play.ends(1, Ok("1"));
    play.event(Event::CancelRequested);
    assert_eq!(play.cancelled(), [(1, 2)]);
    assert!(play.step.ended.is_none());
    play.ends(2, Err(failure(ErrorClass::Cancelled, "stopped")));
    assert_eq!(play.end(), (TaskState::Cancelled, TaskCode::Cancelled));
    play.event(Event::CancelRequested);
    assert_eq!(play.step, redial_engine::task::Step::default());
}

#[test]
fn answers_without_form_are_asked_for_again_and_then_taken() {
    let mut play = Play::new(agent());
    play.start("go");
    let odd = |text: &str| Reply { text: Some(text.into()), problem: Some("no Action".into()), ..Reply::default() };
    play.reply(odd("hm"));
    play.reply(Reply::default());
    play.reply(odd("the answer"));
    assert_eq!(play.end(), (TaskState::Succeeded, TaskCode::Answered));
    let problem = "no Action".to_owned();
    let told: Vec<_> = play.decisions.iter().filter(|told| matches!(told, Nudged { .. } | Accepted { .. })).collect();
    assert_eq!(
        told,
        [
            &Nudged { problem: problem.clone(), asked: Some(Asked::Form), time: Some(1) },
            &Nudged { problem: "the answer was empty".to_owned(), asked: Some(Asked::Answer), time: Some(2) },
            &Accepted { problem, refused: 2 },
        ]
    );
    let mut play = Play::new(agent());
    play.start("go");
    for _ in 0..3 {
        play.reply(Reply::default());
    }
    assert_eq!(play.end(), (TaskState::Failed, TaskCode::NoAnswer));
}

#[test]
fn an_unsafe_call_with_an_unknown_end_is_never_tried_again_on_a_guess() {
    let mut play = Play::new(agent());
    play.start("pay");
    play.replies(vec![runs("pay", "{}")]);
    let lost = redial_proto::Failure { effect_possible: true, ..failure(ErrorClass::Lost, "gone") };
    play.ends(1, Err(lost));
    play.now += TimeDelta::minutes(10);
    play.replies(vec![runs("pay", "{}")]);
    assert_eq!(play.runs, 1);
}
