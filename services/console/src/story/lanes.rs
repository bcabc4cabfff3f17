//! The lanes of a timeline: a row for each turn, each call and each change of course, with its attempts and pauses as bars.

use chrono::{DateTime, TimeDelta, Utc};
use redial_api::TaskCallItem;
use redial_proto::{AgentSpec, AttemptView, CallState, CallView};

use super::{Asked, Story, Turn, chains::was_fed_back, why};
use crate::{
    fold::{Scale, Span},
    record,
    show::{self, Html, escape},
};

/// Percent of the width that a label needs.
const LABEL: f64 = 9.0;
/// A task that waited longer than this before it started has a row for it.
const QUEUED: TimeDelta = TimeDelta::milliseconds(200);

#[derive(Debug)]
pub(crate) struct Lane {
    /// Its anchor: `t2` for a turn, `c2.1` for a call, `n7` for the step of a note.
    pub(crate) key: String,
    /// `turn`, `tool` or `note`.
    pub(crate) kind: &'static str,
    pub(crate) nth: String,
    pub(crate) state: &'static str,
    pub(crate) name: String,
    pub(crate) why: String,
    pub(crate) bars: Html,
    /// By turn and number; a turn has number 0.
    pub(crate) call: Option<(u32, u32)>,
}

/// Returns the lanes of a task, in the order in which things began, and their scale.
pub(crate) fn lanes(
    story: &Story,
    items: &[TaskCallItem],
    agent: Option<&AgentSpec>,
    now: DateTime<Utc>,
) -> (Vec<Lane>, Scale) {
    let begin = story.task.submitted_at;
    let end = story.end().unwrap_or(now).max(begin);
    let scale = Scale::new(begin, end, &busy(story, items, now));
    let drawn = Drawn { scale: &scale, now: end };
    let item = |key: &(u32, u32)| items.iter().find(|item| (item.turn, item.call_index) == *key);
    let mut rows: Vec<(DateTime<Utc>, u32, u32, Lane)> = Vec::new();
    rows.extend(drawn.queued(story, now).map(|lane| (begin, 0, 0, lane)));
    for (n, turn) in &story.turns {
        rows.push((turn.asked_at, *n, 0, drawn.turn(*n, turn, item(&(*n, 0)))));
    }
    for (key, call) in &story.calls {
        rows.push((call.at, key.0, key.1, drawn.call(*key, call, item(key), agent)));
    }
    for note in &story.notes {
        let lane = Lane {
            key: format!("n{}", note.step),
            kind: "note",
            nth: String::new(),
            state: note_state(note.what),
            name: note.what.to_owned(),
            why: show::line(&note.text, 240),
            bars: drawn.mark(note.at, mark_class(note.what)),
            call: None,
        };
        // After what led to it, and before the turn that follows from it.
        let before = story.turns.iter().filter(|(_, turn)| turn.asked_at < note.at).map(|(n, _)| *n).max();
        rows.push((note.at, before.unwrap_or(0), u32::MAX, lane));
    }
    rows.sort_by_key(|row| (row.0, row.1, row.2));
    (rows.into_iter().map(|(.., lane)| lane).collect(), scale)
}

struct Life<'a> {
    state: CallState,
    submitted_at: DateTime<Utc>,
    finished_at: Option<DateTime<Utc>>,
    lease_until: Option<DateTime<Utc>>,
    attempts: &'a [AttemptView],
}

impl<'a> From<&'a TaskCallItem> for Life<'a> {
    fn from(item: &'a TaskCallItem) -> Self {
        let TaskCallItem { state, submitted_at, finished_at, lease_until, .. } = *item;
        Self { state, submitted_at, finished_at, lease_until, attempts: &item.attempts_made }
    }
}

/// Draws the ruler of one call, and its bars.
pub(crate) fn of_call(call: &CallView, now: DateTime<Utc>) -> (Html, Html) {
    let CallView { state, submitted_at, finished_at, .. } = *call;
    let life = Life { state, submitted_at, finished_at, lease_until: None, attempts: &call.attempts_made };
    let end = finished_at.unwrap_or(now).max(submitted_at);
    let attempts = life.attempts.iter();
    let busy: Vec<Span> =
        attempts.map(|attempt| Span { from: attempt.started_at, to: attempt.ended_at.unwrap_or(end) }).collect();
    let scale = Scale::new(submitted_at, end, &busy);
    let bars = Drawn { scale: &scale, now: end }.bars(&life, "b-run-good");
    (ruler(&scale), bars)
}

fn note_state(what: &str) -> &'static str {
    match what {
        "succeeded" => "succeeded",
        "failed" => "failed",
        "cancelled" | "cancel" => "cancelled",
        _ => "warn",
    }
}

/// Returns the class of a mark; an end is no change of course.
fn mark_class(what: &str) -> &'static str {
    match what {
        "succeeded" => "b-mark good",
        "failed" => "b-mark bad",
        _ => "b-mark",
    }
}

/// Returns when something happened: attempts, and a moment around each step.
fn busy(story: &Story, items: &[TaskCallItem], now: DateTime<Utc>) -> Vec<Span> {
    let moment = TimeDelta::milliseconds(1);
    let attempts = items.iter().flat_map(|item| &item.attempts_made);
    let mut spans: Vec<Span> =
        attempts.map(|attempt| Span { from: attempt.started_at, to: attempt.ended_at.unwrap_or(now) }).collect();
    let noted = story.notes.iter().map(|note| note.at);
    let turns = story.turns.values().flat_map(|turn| [Some(turn.asked_at), turn.ended_at]).flatten();
    spans.extend(noted.chain(turns).map(|at| Span { from: at, to: at + moment }));
    spans
}

struct Drawn<'a> {
    scale: &'a Scale,
    /// Where what has not ended is cut off.
    now: DateTime<Utc>,
}

impl Drawn<'_> {
    /// Draws the time before it started. That tasks before it in its conversation took it is likely, and not on record.
    fn queued(&self, story: &Story, now: DateTime<Utc>) -> Option<Lane> {
        let task = &story.task;
        let started = task.started_at.or(task.finished_at).unwrap_or(now);
        if started - task.submitted_at < QUEUED {
            return None;
        }
        let took = show::span((started - task.submitted_at).num_milliseconds());
        Some(Lane {
            key: "queued".to_owned(),
            kind: "note",
            nth: String::new(),
            state: "waiting",
            name: "waited".to_owned(),
            why: format!("{took} until a dispatcher began it; the tasks of a conversation run one after another"),
            bars: self.strip(&self.wait(task.submitted_at, started), &format!("waited {took}")),
            call: None,
        })
    }

    fn turn(&self, n: u32, turn: &Turn, item: Option<&TaskCallItem>) -> Lane {
        let unless_listed = if turn.ended_at.is_some() { "succeeded" } else { "running" };
        let state = item.map_or(unless_listed, |item| item.state.as_str());
        let bars = match item {
            Some(item) => self.bars(&Life::from(item), "b-run-model"),
            None => self.one(turn.asked_at, turn.ended_at, "b-run-model"),
        };
        Lane {
            key: format!("t{n}"),
            kind: "turn",
            nth: n.to_string(),
            state,
            name: turn.model.clone(),
            why: why::of_turn(turn),
            bars,
            call: Some((n, 0)),
        }
    }

    fn call(&self, key: (u32, u32), call: &Asked, item: Option<&TaskCallItem>, agent: Option<&AgentSpec>) -> Lane {
        let answered = call.answer.as_ref();
        let state = match (item, answered) {
            (Some(item), _) => item.state.as_str(),
            (None, Some(answer)) if answer.class.is_none() => "succeeded",
            (None, Some(answer)) if !answer.ran => "refused",
            (None, Some(_)) => "failed",
            (None, None) => "ready",
        };
        let bars = match item {
            Some(item) if !item.attempts_made.is_empty() || item.finished_at.is_none() => {
                self.bars(&Life::from(item), "b-run-good")
            }
            _ if answered.is_some_and(|answer| !answer.ran) || was_fed_back(call) => self.mark(call.at, "b-mark"),
            _ => self.one(call.at, answered.map(|answer| answer.at), "b-run-good"),
        };
        let mut why = why::of_call(call, agent);
        if let Some(item) = item.filter(|_| answered.is_none()) {
            why = record::standing(item).map_or(why.clone(), |standing| {
                if why.is_empty() { standing.clone() } else { format!("{standing}; {why}") }
            });
        }
        Lane {
            key: format!("c{}.{}", key.0, key.1),
            kind: "tool",
            nth: format!("{}.{}", key.0, key.1),
            state,
            name: call.tool.clone(),
            why,
            bars,
            call: Some(key),
        }
    }

    /// Draws the life of a call: how long it waited, its attempts, the pauses between them.
    fn bars(&self, call: &Life<'_>, good: &'static str) -> Html {
        // Labels come last, so that no pause crosses them.
        let (mut svg, mut labels) = (String::new(), String::new());
        let mut told: Vec<String> = Vec::new();
        let mut at = call.submitted_at;
        let mut paused = false;
        let starts = call.attempts.iter().map(|attempt| attempt.started_at);
        let next = starts.skip(1).map(Some).chain([None]);
        for (attempt, next) in call.attempts.iter().zip(next) {
            if attempt.started_at > at {
                svg += &if paused { self.pause(at, attempt.started_at) } else { self.wait(at, attempt.started_at) };
            }
            let class = bar_class(call.state, attempt, good);
            svg += &self.bar(attempt.started_at, attempt.ended_at, class, &record::told(attempt));
            labels += &self.label(attempt.started_at, attempt.ended_at, next);
            if let (None, Some(until)) = (attempt.ended_at, call.lease_until) {
                svg += &self.lease(until);
            }
            told.push(record::told(attempt));
            at = attempt.ended_at.unwrap_or(self.now);
            paused = attempt.class.is_some();
        }
        if call.finished_at.is_none() && call.attempts.last().is_none_or(|last| last.ended_at.is_some()) {
            svg += &if paused { self.pause(at, self.now) } else { self.wait(at, self.now) };
        }
        self.strip(&(svg + &labels), &told.join("; "))
    }

    fn one(&self, from: DateTime<Utc>, to: Option<DateTime<Utc>>, class: &str) -> Html {
        let took = show::span((to.unwrap_or(self.now) - from).num_milliseconds());
        self.strip(&(self.bar(from, to, class, &took) + &self.label(from, to, None)), &took)
    }

    fn mark(&self, at: DateTime<Utc>, class: &str) -> Html {
        let x = self.scale.x(at);
        self.strip(&format!("<circle class=\"{class}\" cx=\"{x:.3}%\" cy=\"50%\" r=\"4\"/>"), &show::exact(&at))
    }

    fn bar(&self, from: DateTime<Utc>, to: Option<DateTime<Utc>>, class: &str, told: &str) -> String {
        let end = to.unwrap_or(self.now).max(from);
        let (x, x2) = (self.scale.x(from), self.scale.x(end));
        let width = (x2 - x).max(0.35);
        let class = if to.is_none() { "b-run-open" } else { class };
        format!(
            "<g><title>{}</title><rect class=\"{class}\" x=\"{x:.3}%\" y=\"27%\" width=\"{width:.3}%\" height=\"46%\" rx=\"3\"/></g>",
            escape(told)
        )
    }

    /// Says how long a bar took, beside it; nothing if the next bar leaves no room.
    fn label(&self, from: DateTime<Utc>, to: Option<DateTime<Utc>>, next: Option<DateTime<Utc>>) -> String {
        let end = to.unwrap_or(self.now).max(from);
        let (x, x2) = (self.scale.x(from), self.scale.x(end));
        if next.is_some_and(|next| self.scale.x(next) - x2 < LABEL) {
            return String::new();
        }
        let took = show::span((end - from).num_milliseconds());
        let (place, anchor) = if x2 > 88.0 { (x - 0.6, "end") } else { (x2.max(x + 0.35) + 0.6, "start") };
        format!("<text x=\"{place:.3}%\" y=\"50%\" dy=\".35em\" text-anchor=\"{anchor}\">{took}</text>")
    }

    fn wait(&self, from: DateTime<Utc>, to: DateTime<Utc>) -> String {
        let (x, x2) = (self.scale.x(from), self.scale.x(to));
        let took = show::span((to - from).num_milliseconds());
        let width = (x2 - x).max(0.1);
        format!(
            "<rect class=\"b-wait\" x=\"{x:.3}%\" y=\"42%\" width=\"{width:.3}%\" height=\"16%\"><title>waited {took}</title></rect>"
        )
    }

    fn pause(&self, from: DateTime<Utc>, to: DateTime<Utc>) -> String {
        let (x, x2) = (self.scale.x(from), self.scale.x(to));
        let took = show::span((to - from).num_milliseconds());
        format!(
            "<line class=\"b-pause\" x1=\"{x:.3}%\" x2=\"{x2:.3}%\" y1=\"50%\" y2=\"50%\"><title>pause of {took} before the retry</title></line>"
        )
    }

    /// Says until when the worker that runs it holds it.
    fn lease(&self, until: DateTime<Utc>) -> String {
        let x = self.scale.x(until.min(self.now));
        format!(
            "<line class=\"b-now\" x1=\"{x:.3}%\" x2=\"{x:.3}%\" y1=\"15%\" y2=\"85%\"><title>lease until {}</title></line>",
            show::exact(&until)
        )
    }

    fn strip(&self, svg: &str, told: &str) -> Html {
        let mut folds = String::new();
        for tick in self.scale.ticks() {
            folds += &format!("<line class=\"tick\" x1=\"{0:.3}%\" x2=\"{0:.3}%\" y1=\"0\" y2=\"100%\"/>", tick.x);
        }
        for fold in self.scale.folds() {
            folds += &format!(
                "<rect class=\"fold\" x=\"{:.3}%\" width=\"{:.3}%\" y=\"0\" height=\"100%\"/>",
                fold.x, fold.width
            );
        }
        let label = if told.is_empty() { "waits" } else { told };
        Html(format!("<svg role=\"img\" aria-label=\"{}\">{folds}{svg}</svg>", escape(&show::clip(label, 300))))
    }
}

fn bar_class(state: CallState, attempt: &AttemptView, good: &'static str) -> &'static str {
    match (attempt.class.is_some(), state == CallState::Unknown) {
        (_, true) => "b-run-odd",
        (true, _) => "b-run-bad",
        (false, _) => good,
    }
}

/// Draws the ruler above the lanes.
pub(crate) fn ruler(scale: &Scale) -> Html {
    let mut svg = String::from("<svg aria-hidden=\"true\">");
    for fold in scale.folds() {
        let middle = fold.x + fold.width / 2.0;
        svg += &format!(
            "<rect class=\"fold\" x=\"{:.3}%\" width=\"{:.3}%\" y=\"0\" height=\"100%\"/><text x=\"{middle:.3}%\" y=\"50%\" dy=\".35em\" text-anchor=\"middle\">{}</text>",
            fold.x, fold.width, fold.label
        );
    }
    for tick in scale.ticks() {
        svg += &format!(
            "<line class=\"tick\" x1=\"{0:.3}%\" x2=\"{0:.3}%\" y1=\"0\" y2=\"100%\"/><text x=\"{1:.3}%\" y=\"50%\" dy=\".35em\">{2}</text>",
            tick.x,
            tick.x + 0.5,
            tick.label
        );
    }
    svg += "</svg>";
    Html(svg)
}
