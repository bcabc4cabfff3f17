//! Who is told what happens: a person, a program, or nobody.

use std::io::Write;

use redial_proto::{Delta, StoredMessage, TaskDecision, TaskReport, TaskState, TaskStep, TaskView};
use redial_queue::QueueError;
use serde::Serialize;

use super::live::Live;
use crate::{
    commands::story::{Narrator, Page, Seen},
    output,
};

/// Where a story goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Out {
    Stdout,
    Stderr,
}

impl Out {
    fn page(self) -> Page {
        match self {
            Self::Stdout => Page::of_stdout(),
            Self::Stderr => Page::of_stderr(),
        }
    }

    /// A reader that went away is no error.
    fn write(self, text: &str) {
        let bytes = text.as_bytes();
        let _ = match self {
            Self::Stdout => std::io::stdout().write_all(bytes).and_then(|()| std::io::stdout().flush()),
            Self::Stderr => std::io::stderr().write_all(bytes),
        };
    }
}

/// Tells what happens.
pub(crate) enum Teller {
    /// A story for a person.
    Story(Box<Story>),
    /// Each step as a line of JSON.
    Json,
    /// Nothing: only the end counts.
    Silent,
}

impl Teller {
    /// A story for a person.
    pub(crate) fn story(out: Out) -> Self {
        Self::Story(Box::new(Story { out, page: out.page(), narrator: None, live: None, noted: None, last_turn: 0 }))
    }

    pub(super) fn report(&mut self, report: &TaskReport) -> anyhow::Result<()> {
        match self {
            Self::Story(story) => {
                let text = story.report(report);
                story.out.write(&text);
                Ok(())
            }
            Self::Json => lines(report).try_for_each(|line| output::json(&line)),
            Self::Silent => Ok(()),
        }
    }

    /// True if this belongs to a turn that was not told yet.
    pub(super) fn is_ahead(&self, delta: &Delta) -> bool {
        matches!(self, Self::Story(story) if delta.turn > story.last_turn)
    }

    pub(super) fn delta(&mut self, delta: &Delta) {
        if let Self::Story(story) = self {
            let text = story.delta(delta);
            story.out.write(&text);
        }
    }

    pub(super) fn end(&mut self, task: &TaskView) {
        if let Self::Story(story) = self
            && let Some(narrator) = &story.narrator
        {
            story.out.write(&narrator.end(task));
        }
    }

    /// Nobody answers now. Said once, until somebody does.
    pub(super) fn unreachable(&mut self, error: &QueueError) {
        if let Self::Story(story) = self {
            let text = story.break_off() + &story.note(Noted::Unreachable, &format!("waiting for an answer: {error}"));
            story.out.write(&text);
        }
    }

    /// The user has seen enough.
    pub(super) fn interrupt(&mut self) {
        if let Self::Story(story) = self {
            let text = story.break_off();
            story.out.write(&text);
        }
    }
}

/// A story as it is told.
pub(crate) struct Story {
    out: Out,
    page: Page,
    /// There once the task is known.
    narrator: Option<Narrator>,
    /// What a model is writing.
    live: Option<Live>,
    /// What was said of a pause.
    noted: Option<Noted>,
    /// The last turn that was told.
    last_turn: u32,
}

/// Why there is nothing to tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Noted {
    Unreachable,
    Waiting,
}

impl Story {
    fn report(&mut self, report: &TaskReport) -> String {
        let mut text = String::new();
        if self.noted == Some(Noted::Unreachable) {
            self.noted = None;
        }
        if self.narrator.is_none() {
            let narrator = Narrator::new(&report.task, self.page);
            text.push_str(&narrator.begin(&report.task));
            self.narrator = Some(narrator);
        } else if report.task.state == TaskState::Waiting {
            // Not at once: each task waits for a moment.
            text.push_str(&self.note(Noted::Waiting, "waits for earlier tasks of its conversation"));
        }
        if let Some(narrator) = &mut self.narrator {
            narrator.learn(&report.messages);
        }
        for step in &report.steps {
            text.push_str(&self.step(step));
        }
        text
    }

    fn step(&mut self, step: &TaskStep) -> String {
        for decision in &step.decisions {
            if let TaskDecision::Turn { turn, .. } = decision {
                self.last_turn = *turn;
            }
        }
        let Some(narrator) = &mut self.narrator else { return String::new() };
        let (text, seen) = match self.live.take() {
            Some(live) => live.close(narrator.said(step)),
            None => (String::new(), Seen::default()),
        };
        text + &narrator.tell(step, seen, Vec::new())
    }

    fn delta(&mut self, delta: &Delta) -> String {
        if self.narrator.as_ref().and_then(Narrator::open_turn) != Some(delta.turn) {
            return String::new();
        }
        self.live.get_or_insert_with(|| Live::new(self.page)).push(delta)
    }

    /// Ends what a model is writing in mid-line.
    fn break_off(&mut self) -> String {
        self.live.take().map(|live| live.close(None).0).unwrap_or_default()
    }

    fn note(&mut self, what: Noted, words: &str) -> String {
        if self.noted.replace(what) == Some(what) {
            return String::new();
        }
        format!("{words}\n")
    }
}

/// A step as a program gets it.
#[derive(Serialize)]
struct Line<'a> {
    #[serde(flatten)]
    step: &'a TaskStep,
    /// What the step wrote.
    messages: Vec<&'a StoredMessage>,
}

fn lines(report: &TaskReport) -> impl Iterator<Item = Line<'_>> {
    report.steps.iter().map(|step| {
        let wrote =
            |seq: u32| step.decisions.iter().any(|d| matches!(d, TaskDecision::Message { seq: s } if *s == seq));
        Line { step, messages: report.messages.iter().filter(|message| wrote(message.seq)).collect() }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::story::sample;

    fn story() -> Story {
        let page = Page { width: Some(80), colours: false };
        Story { out: Out::Stdout, page, narrator: None, live: None, noted: None, last_turn: 0 }
    }

    /// The sample, cut after so many steps.
    fn until(steps: usize) -> TaskReport {
        let mut report = sample::report();
        report.steps.truncate(steps);
        report.task.state = TaskState::Running;
        report
    }

    fn after(steps: usize) -> TaskReport {
        let mut report = sample::report();
        report.steps.drain(..steps);
        report
    }

    fn says(turn: u32, text: &str) -> Delta {
        Delta { turn, text: text.to_owned(), thought: String::new() }
    }

    #[test]
    fn what_a_model_writes_is_told_at_once_and_once() {
        let mut story = story();
        let mut told = story.report(&until(1));
        for piece in ["好的，", "我先订票，", "同时查询天气。"] {
            told.push_str(&story.delta(&says(1, piece)));
        }
        assert!(told.ends_with("says          好的，我先订票，同时查询天气。"), "{told}");
        told.push_str(&story.report(&after(1)));
        assert_eq!(told.matches("我先订票").count(), 1, "{told}");
        assert_eq!(story.delta(&says(3, "late")), "", "the turn is over");
        assert!(told.contains("thinks") && told.contains("turns_exhausted"), "{told}");
    }

    #[test]
    fn a_turn_that_is_not_known_yet_is_asked_for() {
        let mut teller = Teller::Story(Box::new(story()));
        assert!(teller.is_ahead(&says(1, "a")));
        if let Teller::Story(story) = &mut teller {
            story.report(&until(1));
        }
        assert!(!teller.is_ahead(&says(1, "a")) && teller.is_ahead(&says(2, "a")));
        assert!(!Teller::Json.is_ahead(&says(9, "a")));
    }

    #[test]
    fn a_retry_in_mid_sentence_ends_the_line() {
        let mut story = story();
        story.report(&until(6));
        assert_eq!(story.delta(&says(2, "half a sent")).trim(), "says          half a");
        let told = story.report(&TaskReport { steps: vec![sample::report().steps[5].clone()], ..until(6) });
        assert!(told.starts_with(" sent\n"), "{told}");
        assert!(told.contains("retry 2"), "{told}");
    }

    #[test]
    fn pauses_are_explained_once() {
        let mut story = story();
        let mut waiting = until(0);
        waiting.task.state = TaskState::Waiting;
        let told = [story.report(&waiting), story.report(&waiting), story.report(&waiting)];
        assert!(told[0].starts_with("task ") && told[0].lines().count() == 1, "{told:?}");
        assert_eq!(told[1..], ["waits for earlier tasks of its conversation\n", ""]);
        let gone = |story: &mut Story| story.note(Noted::Unreachable, "gone");
        assert_eq!([gone(&mut story), gone(&mut story)], ["gone\n", ""]);
        story.report(&until(1));
        assert_eq!(gone(&mut story), "gone\n");
    }

    #[test]
    fn a_line_of_json_holds_a_step_and_what_it_wrote() {
        let report = sample::report();
        let lines: Vec<_> = lines(&report).map(|line| serde_json::to_value(&line).unwrap()).collect();
        assert_eq!(lines.len(), report.steps.len());
        assert_eq!((&lines[0]["n"], &lines[0]["input"]["event"]), (&1.into(), &"started".into()));
        let seqs = |line: usize| -> Vec<_> {
            lines[line]["messages"].as_array().unwrap().iter().map(|message| message["seq"].as_u64().unwrap()).collect()
        };
        assert_eq!([seqs(0), seqs(1), seqs(2)], [vec![1, 2], vec![3, 6], vec![]]);
    }
}
