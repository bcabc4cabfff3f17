//! Answers and replies that end at the model's limit of tokens.

use redial_engine::task::Reply;
use redial_proto::{CutOff, ErrorClass, Finish, Nudged, TaskCode, TaskDecision, TaskState};

use crate::play::{Play, agent, failure, runs};

const DONE: (TaskState, TaskCode) = (TaskState::Succeeded, TaskCode::Answered);
const CUT_OFF: (TaskState, TaskCode) = (TaskState::Succeeded, TaskCode::AnswerCutOff);
const POEM: &str = "The rain in Spain falls mainly, as everyone knows, on the plain, and on the hills";

fn play(cut_off: CutOff) -> Play {
    let mut agent = agent();
    agent.cut_off = cut_off;
    let mut play = Play::new(agent);
    play.start("write a poem");
    play
}

fn cut(text: &str) -> Reply {
    Reply { text: Some(text.to_owned()), finish: Finish::Length, ..Reply::default() }
}

fn answer(play: &Play) -> (&str, &str) {
    let outcome = play.outcome.as_ref().unwrap();
    (outcome.answer.as_deref().unwrap_or_default(), outcome.message.as_deref().unwrap_or_default())
}

fn asked(play: &Play) -> Vec<(Nudged, u32)> {
    let nudged = |decision: &TaskDecision| match decision {
        TaskDecision::Nudged { asked, time, .. } => Some(((*asked)?, (*time)?)),
        _ => None,
    };
    play.decisions.iter().filter_map(nudged).collect()
}

#[test]
fn a_shorter_answer_is_asked_for_as_a_correction() {
    let mut play = play(CutOff::Shorter);
    play.reply(cut(POEM));
    play.says("Rain.");
    assert_eq!(
        play.log(),
        format!("1 user write a poem\n2 assistant {POEM}\n3 user by redial\n4 assistant Rain.\nsucceeded answered")
    );
    assert!(play.messages[&3].content.contains("cut off"), "{}", play.messages[&3].content);
    assert_eq!((play.task.corrections(), asked(&play)), (1, vec![(Nudged::Shorter, 1)]));
}

#[test]
fn what_stays_too_long_is_taken_and_marked() {
    let mut play = play(CutOff::Shorter);
    for n in 1..=4 {
        play.reply(cut(&format!("{n} {POEM}")));
    }
    assert_eq!(play.end(), CUT_OFF);
    let message = "the answer is cut off at the model's limit of tokens; a shorter one was asked for 3 times";
    assert_eq!(answer(&play), (format!("4 {POEM}").as_str(), message));
    assert_eq!(asked(&play), [(Nudged::Shorter, 1), (Nudged::Shorter, 2), (Nudged::Shorter, 3)]);
    assert_eq!(play.task.corrections(), 3);
}

#[test]
fn an_answer_is_taken_as_it_is_if_nothing_more_may_be_asked() {
    let limits: [fn(&mut redial_proto::AgentSpec); 4] = [
        |agent| agent.cut_off = CutOff::Accept,
        |agent| agent.max_corrections = 0,
        |agent| agent.budgets.corrections = 0,
        |agent| (agent.budgets.turns, agent.cut_off) = (1, CutOff::Continue),
    ];
    for limit in limits {
        let mut agent = agent();
        limit(&mut agent);
        let mut play = Play::new(agent);
        play.start("write a poem");
        play.reply(cut(POEM));
        assert_eq!((play.end(), answer(&play).0), (CUT_OFF, POEM));
        assert_eq!(asked(&play), []);
    }
}

#[test]
fn the_rest_is_asked_for_and_the_parts_become_one_answer() {
    let mut play = play(CutOff::Continue);
    play.reply(cut(POEM));
    let turn = play.step.turn.as_ref().unwrap();
    assert!(!turn.tools, "the rest of an answer needs no tools");
    let ending = &POEM[POEM.len() - 40..];
    assert!(play.messages[&3].content.contains(ending), "{}", play.messages[&3].content);
    play.reply(cut("and on the hills, and on the mountains high"));
    play.says("the mountains high above.");
    assert_eq!(play.end(), DONE);
    assert_eq!(answer(&play), (format!("{POEM}, and on the mountains high above.").as_str(), ""));
    assert_eq!((play.task.turns(), play.task.corrections()), (3, 0));
    assert_eq!(asked(&play), [(Nudged::Rest, 1), (Nudged::Rest, 2)]);
    assert!(
        play.decisions.iter().any(|decision| matches!(decision, TaskDecision::Turn { turn: 2, continues: true, .. }))
    );
}

#[test]
fn an_answer_that_never_ends_is_asked_for_a_few_times() {
    let mut play = play(CutOff::Continue);
    for n in 0..6 {
        play.reply(cut(&format!("part {n} ")));
    }
    assert_eq!(play.end(), CUT_OFF);
    assert!(answer(&play).0.starts_with("part 0 part 1 part 2"), "{:?}", answer(&play));
    assert!(answer(&play).1.ends_with("its rest was asked for 5 times"), "{:?}", answer(&play));
}

#[test]
fn a_model_that_repeats_itself_is_not_asked_again() {
    for (rest, whole) in [(POEM, POEM), ("on the plain, and on the hills", POEM)] {
        let mut play = play(CutOff::Continue);
        play.reply(cut(POEM));
        play.reply(cut(rest));
        assert_eq!((play.end(), answer(&play).0), (CUT_OFF, whole));
        assert!(answer(&play).1.ends_with("repeated what it had said"), "{:?}", answer(&play));
    }
    let mut play = play(CutOff::Continue);
    play.reply(cut(POEM));
    play.says(&format!("{POEM}. The end."));
    assert_eq!((play.end(), answer(&play).0), (DONE, format!("{POEM}. The end.").as_str()));
}

#[test]
fn what_is_begun_again_and_comes_further_is_kept() {
    let mut play = play(CutOff::Continue);
    play.reply(cut("The rain in"));
    play.reply(cut("The rain in Spain falls mainly, as everyone knows,"));
    play.says(" on the plain.");
    let whole = "The rain in Spain falls mainly, as everyone knows, on the plain.";
    assert_eq!((play.end(), answer(&play).0), (DONE, whole));
}

#[test]
fn a_part_survives_whatever_happens_to_the_rest() {
    let mut failed = play(CutOff::Continue);
    failed.reply(cut(POEM));
    failed.turn_fails(failure(ErrorClass::Unavailable, "529"));
    assert_eq!((failed.end(), answer(&failed).0), (CUT_OFF, POEM));
    assert!(answer(&failed).1.contains("unavailable: 529"), "{:?}", answer(&failed));
    let mut empty = play(CutOff::Continue);
    empty.reply(cut(POEM));
    empty.reply(Reply::default());
    assert_eq!((empty.end(), answer(&empty).0), (CUT_OFF, POEM));
    let mut cancelled = play(CutOff::Continue);
    cancelled.reply(cut(POEM));
    cancelled.event(redial_engine::task::Event::CancelRequested);
    cancelled.turn_fails(failure(ErrorClass::Cancelled, "stopped"));
    assert_eq!(cancelled.end(), (TaskState::Cancelled, TaskCode::Cancelled));
}

#[test]
fn thoughts_without_an_answer_are_told_as_cut_off() {
    let mut play = play(CutOff::Accept);
    let thinks = || Reply { thought: Some("hm".to_owned()), finish: Finish::Length, ..Reply::default() };
    play.reply(thinks());
    assert!(play.messages[&2].content.contains("cut off"), "{}", play.messages[&2].content);
    play.reply(thinks());
    play.reply(thinks());
    assert_eq!(play.end(), (TaskState::Failed, TaskCode::NoAnswer));
    assert!(answer(&play).1.ends_with("the last one was cut off at its limit of tokens"), "{:?}", answer(&play));
}

#[test]
fn a_form_that_was_cut_off_is_marked_when_it_is_taken() {
    let mut play = play(CutOff::Shorter);
    for _ in 0..3 {
        play.reply(Reply { problem: Some("cut off before an action".to_owned()), ..cut("Thought: so") });
    }
    assert_eq!(play.end(), CUT_OFF);
    assert_eq!(asked(&play), [(Nudged::Shorter, 1), (Nudged::Shorter, 2)]);
}

#[test]
fn a_last_answer_that_is_cut_off_says_so() {
    let mut agent = agent();
    agent.budgets.tool_calls = 0;
    let mut play = Play::new(agent);
    play.start("go");
    play.replies(vec![runs("a", "{}")]);
    play.reply(cut(POEM));
    assert_eq!(play.end(), (TaskState::Failed, TaskCode::ToolCallsExhausted));
    assert!(
        answer(&play).1.ends_with("the last answer is cut off at the model's limit of tokens"),
        "{:?}",
        answer(&play)
    );
}

#[test]
fn tasks_of_the_first_rules_end_as_they_did() {
    let mut play = Play::new(agent());
    play.rules = 0;
    play.start("write a poem");
    play.reply(Reply { text: None, ..cut("") });
    assert_eq!(
        play.step.decisions[0],
        TaskDecision::Nudged { problem: "the answer was empty".to_owned(), asked: None, time: None }
    );
    play.reply(cut(POEM));
    assert_eq!((play.end(), answer(&play)), (DONE, (POEM, "")));
}
