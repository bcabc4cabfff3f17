//! The output of a command that follows a task: text, JSON or nothing.

use redial_proto::{ApiError, Delta, StoredMessage, TaskDecision, TaskReport, TaskState, TaskStep, TaskView};
use serde::Serialize;

use super::live::LiveMessage;
use crate::{
    output,
    timeline::{Page, Printed, TaskTimeline, totals},
};

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

    fn write(self, text: &str) -> anyhow::Result<()> {
        match self {
            Self::Stdout => output::write(text)?,
            Self::Stderr => output::note_text(text),
        }
        Ok(())
    }
}

pub(crate) enum Printer {
    Text(Box<TextPrinter>),
    /// Each step as a line of JSON.
    Json,
    Silent,
}

impl Printer {
    pub(crate) fn text(out: Out) -> Self {
        Self::Text(Box::new(TextPrinter::new(out, out.page())))
    }

    pub(super) fn report(&mut self, report: &TaskReport) -> anyhow::Result<()> {
        match self {
            Self::Text(printer) => printer.print(|printer| printer.report(report)),
            Self::Json => lines(report).try_for_each(|line| output::json(&line)),
            Self::Silent => Ok(()),
        }
    }

    /// Returns true if this piece belongs to a turn that was not printed yet.
    pub(super) fn is_ahead(&self, delta: &Delta) -> bool {
        matches!(self, Self::Text(printer) if delta.turn > printer.last_turn)
    }

    pub(super) fn delta(&mut self, delta: &Delta) -> anyhow::Result<()> {
        self.text_only(|printer| printer.delta(delta))
    }

    pub(super) fn end(&mut self, task: &TaskView) -> anyhow::Result<()> {
        self.text_only(|printer| printer.page.event(&totals::last(task)))
    }

    /// Reports once that no dispatcher answers, until one does.
    pub(super) fn unreachable(&mut self, error: &ApiError) -> anyhow::Result<()> {
        let note = format!("still waiting: {}", error.message);
        self.text_only(|printer| printer.break_off() + &printer.note(Pause::Unreachable, &note))
    }

    /// Says whether a user reads along.
    pub(super) const fn tells_waits(&self) -> bool {
        matches!(self, Self::Text(_))
    }

    /// Prints what holds the task up.
    pub(super) fn waits(&mut self, lines: &[String]) -> anyhow::Result<()> {
        if lines.is_empty() {
            return Ok(());
        }
        self.text_only(|printer| printer.break_off() + &lines.join("\n") + "\n")
    }

    /// Ends the line that is being printed.
    pub(super) fn interrupt(&mut self) -> anyhow::Result<()> {
        self.text_only(TextPrinter::break_off)
    }

    fn text_only(&mut self, text: impl FnOnce(&mut TextPrinter) -> String) -> anyhow::Result<()> {
        match self {
            Self::Text(printer) => printer.print(text),
            Self::Json | Self::Silent => Ok(()),
        }
    }
}

/// Prints a timeline while it grows.
pub(crate) struct TextPrinter {
    out: Out,
    page: Page,
    /// `None` until the task is read.
    timeline: Option<TaskTimeline>,
    live: Option<LiveMessage>,
    pause: Option<Pause>,
    last_turn: u32,
}

/// Why nothing happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pause {
    Unreachable,
    Waiting,
}

impl TextPrinter {
    fn new(out: Out, page: Page) -> Self {
        Self { out, page, timeline: None, live: None, pause: None, last_turn: 0 }
    }

    fn print(&mut self, text: impl FnOnce(&mut Self) -> String) -> anyhow::Result<()> {
        let text = text(self);
        self.out.write(&text)
    }

    fn report(&mut self, report: &TaskReport) -> String {
        let mut text = String::new();
        if self.pause == Some(Pause::Unreachable) {
            self.pause = None;
        }
        if self.timeline.is_none() {
            self.timeline = Some(TaskTimeline::new(&report.task));
            text.push_str(&self.page.title(&totals::title(&report.task)));
        } else if report.task.state == TaskState::Waiting {
            // Not in the first report: every task waits for a moment.
            text.push_str(&self.note(Pause::Waiting, "waits for earlier tasks of its conversation"));
        }
        if let Some(timeline) = &mut self.timeline {
            timeline.add_messages(&report.messages);
        }
        text.extend(report.steps.iter().map(|step| self.step(step)));
        text
    }

    fn step(&mut self, step: &TaskStep) -> String {
        for decision in &step.decisions {
            if let TaskDecision::Turn { turn, .. } = decision {
                self.last_turn = *turn;
            }
        }
        let Some(timeline) = &mut self.timeline else { return String::new() };
        let (text, printed) = match self.live.take() {
            Some(live) => live.close(timeline.model_message(step)),
            None => (String::new(), Printed::default()),
        };
        text + &self.page.event(&timeline.event(step, printed, Vec::new()))
    }

    fn delta(&mut self, delta: &Delta) -> String {
        if self.timeline.as_ref().and_then(TaskTimeline::open_turn) != Some(delta.turn) {
            return String::new();
        }
        self.live.get_or_insert_with(|| LiveMessage::new(self.page)).push(delta)
    }

    /// Ends the line that a model is writing.
    fn break_off(&mut self) -> String {
        self.live.take().map(|live| live.close(None).0).unwrap_or_default()
    }

    fn note(&mut self, pause: Pause, text: &str) -> String {
        if self.pause.replace(pause) == Some(pause) {
            return String::new();
        }
        format!("{text}\n")
    }
}

#[derive(Serialize)]
struct Line<'a> {
    #[serde(flatten)]
    step: &'a TaskStep,
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
    use crate::timeline::sample;

    fn printer() -> TextPrinter {
        TextPrinter::new(Out::Stdout, Page::test(Some(80), false))
    }

    /// Cuts the sample after so many steps.
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

    fn piece(turn: u32, text: &str) -> Delta {
        Delta { turn, text: text.to_owned(), ..Delta::default() }
    }

    #[test]
    fn a_models_message_is_printed_at_once_and_once() {
        let mut printer = printer();
        let mut out = printer.report(&until(1));
        let thought = "The user wants a flight and the weather of both places. 先订票。".to_owned();
        out.push_str(&printer.delta(&Delta { thought, ..piece(1, "") }));
        for text in ["好的，", "我先订票，", "同时查询天气。"] {
            out.push_str(&printer.delta(&piece(1, text)));
        }
        assert!(out.ends_with("says          好的，我先订票，同时查询天气。"), "{out}");
        out.push_str(&printer.report(&after(1)));
        assert_eq!([out.matches("我先订票").count(), out.matches("thinks").count()], [1, 1], "{out}");
        assert_eq!(printer.delta(&piece(3, "late")), "", "the turn has ended");
        assert!(out.contains("turns_exhausted"), "{out}");
    }

    #[test]
    fn a_piece_of_an_unknown_turn_is_ahead() {
        let mut printer = Printer::Text(Box::new(printer()));
        assert!(printer.is_ahead(&piece(1, "a")));
        if let Printer::Text(printer) = &mut printer {
            printer.report(&until(1));
        }
        assert!(!printer.is_ahead(&piece(1, "a")) && printer.is_ahead(&piece(2, "a")));
        assert!(!Printer::Json.is_ahead(&piece(9, "a")));
    }

    #[test]
    fn a_retry_in_mid_sentence_ends_the_line() {
        let mut printer = printer();
        printer.report(&until(6));
        assert_eq!(printer.delta(&piece(2, "half a sent")).trim(), "says          half a");
        let out = printer.report(&TaskReport { steps: vec![sample::report().steps[5].clone()], ..until(6) });
        assert!(out.starts_with(" sent\n"), "{out}");
        assert!(out.contains("retry 2"), "{out}");
    }

    #[test]
    fn a_pause_is_reported_once() {
        let mut printer = printer();
        let mut waiting = until(0);
        waiting.task.state = TaskState::Waiting;
        let out = [printer.report(&waiting), printer.report(&waiting), printer.report(&waiting)];
        assert!(out[0].starts_with("task ") && out[0].lines().count() == 1, "{out:?}");
        assert_eq!(out[1..], ["waits for earlier tasks of its conversation\n", ""]);
        let gone = |printer: &mut TextPrinter| printer.note(Pause::Unreachable, "gone");
        assert_eq!([gone(&mut printer), gone(&mut printer)], ["gone\n", ""]);
        printer.report(&until(1));
        assert_eq!(gone(&mut printer), "gone\n");
    }

    #[test]
    fn a_line_of_json_holds_a_step_and_what_it_wrote() {
        let report = sample::report();
        let lines: Vec<_> = lines(&report).map(|line| serde_json::to_value(&line).unwrap()).collect();
        assert_eq!(lines.len(), report.steps.len());
        assert_eq!((&lines[0]["step"], &lines[0]["input"]["event"]), (&1.into(), &"started".into()));
        let seqs = |line: usize| -> Vec<_> {
            lines[line]["messages"].as_array().unwrap().iter().map(|message| message["seq"].as_u64().unwrap()).collect()
        };
        assert_eq!([seqs(0), seqs(1), seqs(2)], [vec![1, 2], vec![3, 6], vec![]]);
    }
}
